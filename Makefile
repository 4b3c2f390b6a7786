# make test sets everything up and runs every check; make demo sets everything up and runs the main job.
# make test-lowest runs the core of the suite with the oldest libraries that pyproject.toml allows, and on each newer
# Python that is there with the newest; make fuzz tries many more generated calls and mutated files than make test does
# (others with FUZZ_SEED=1 and so on).
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

# The core of the suite, and what it needs beside the extras that users install.
CORE := tests/test_package.py tests/data tests/fairness tests/maxent tests/files tests/fit tests/engines/test_lazy.py
CORE_NEEDS := '.[cli,distributed,report,sklearn]' cvxpy duckdb hypothesis pyarrow pytest
NEWER_PYTHONS := 3.12 3.13 3.14
# How much make fuzz tries; each test tries some of it in make test, too.
FUZZ := FUZZ_CALLS=100000 FUZZ_FILES=20000 FUZZ_MODELS=100000 FUZZ_CONFIGS=5000

.PHONY: test test-all test-lowest fuzz lint demo bench docs clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint
	$(BIN)/pytest -n 2 -m "not slow"

test-all: lint
	$(BIN)/pytest -n 2

.venv-lowest/ready: pyproject.toml scripts/lowest.py
	$(PYTHON) -m venv .venv-lowest
	$(PYTHON) scripts/lowest.py > .venv-lowest/lowest.txt
	.venv-lowest/bin/pip install --quiet --constraint .venv-lowest/lowest.txt --editable $(CORE_NEEDS)
	touch $@

.venv-%/ready: pyproject.toml
	python$* -m venv .venv-$*
	.venv-$*/bin/pip install --quiet --editable $(CORE_NEEDS)
	touch $@

test-lowest: .venv-lowest/ready
	.venv-lowest/bin/python -m pytest -m "not slow" -W default $(CORE)  # old libraries warn of each other
	for version in $(NEWER_PYTHONS); do \
		python$$version -c "" 2> /dev/null || { echo "no Python $$version here"; continue; }; \
		$(MAKE) .venv-$$version/ready && .venv-$$version/bin/python -m pytest -m "not slow" -W default $(CORE) || exit 1; \
	done

fuzz: $(READY)
	env $(FUZZ) $(BIN)/pytest -n 2 tests/fuzz

demo: $(READY)
	$(BIN)/fairmaxent demo --force

bench: $(READY)
	$(BIN)/python benchmarks/run.py

# Strict: a broken link is an error.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) .venv-* demo reproduction site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
