"""Commands: one file for each command of `fairmaxent`."""
