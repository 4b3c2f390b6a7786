"""What is measured of fairmaxent: one module per subject, all run by ``make bench``."""
