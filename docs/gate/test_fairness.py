"""A test of every policy in pyproject.toml, for pytest."""

from fairmaxent.gate import fair_test

test_fairness = fair_test("pyproject.toml")
