# make test sets everything up and runs every check; make demo sets everything up and runs the main job.
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready

.PHONY: test test-all lint demo bench docs clean

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

demo: $(READY)
	$(BIN)/fairmaxent demo --force

bench: $(READY)
	$(BIN)/python benchmarks/run.py

# Strict: a broken link is an error.
docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

clean:
	rm -rf $(VENV) demo reproduction site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
