"""What is measured of fairmaxent: one module per subject, run by ``make bench``, and
the frontier on its own.
"""
