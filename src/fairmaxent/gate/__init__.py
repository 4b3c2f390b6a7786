"""The gate: a check that fails a build, and the documents to file."""

from fairmaxent.gate.checking import check as check
from fairmaxent.gate.checking import fair_test as fair_test
