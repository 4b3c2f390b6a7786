"""``python -m fairmaxent`` is the command line."""

from fairmaxent.cli import main

if __name__ == "__main__":
    main()
