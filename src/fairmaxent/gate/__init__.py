"""The gate: a check that fails a build, from Python, pytest, the command line or a
file, and the documents to file.
"""

from fairmaxent.gate.checking import check as check
from fairmaxent.gate.checking import fair_test as fair_test
