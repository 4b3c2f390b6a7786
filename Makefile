# make demo installs what it needs and runs the main job. make test installs the tools of contributors beside that, and
# proves every part once, in a few minutes; make test-more runs second proofs and pages of the documentation; make
# test-process runs what starts others: interpreters, terminals, clusters, browsers. What needs an engine of its own (Spark,
# AIF360, the documentation's builder) is skipped unless `make engines` has installed it. make test-all installs all of it,
# and runs everything, the exhaustive checks too. make quick WING=fairness runs the quick tests of one wing within a minute.
# make test-lowest runs the core of the suite with the oldest libraries that pyproject.toml allows, and on each newer
# Python that is there with the newest; make fuzz tries many more generated calls and mutated files than make test does
# (others with FUZZ_SEED=1 and so on). make recipes runs docs/recipes.md with the tools that it is about. make dist
# builds the packages and tries them in empty environments.

# Any Python from 3.11 on: the plain one, or else the first that has its version in its name.
NEW_ENOUGH := import ensurepip, sys; sys.exit(sys.version_info < (3, 11))
PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11 python3.14 python,\
	$(shell $(name) -c '$(NEW_ENOUGH)' 2> /dev/null && echo $(name))))
VENV := .venv
BIN := $(VENV)/bin
# Compiling every module takes longer than compiling those that are used.
INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt --editable

# The core of the suite, and what it needs beside the extras that users install.
CORE := tests/test_package.py tests/data tests/fairness tests/maxent tests/files tests/fit tests/engines/test_lazy.py \
        tests/app tests/privacy tests/raking
CORE_NEEDS := '.[app,cli,distributed,plots,private,sklearn]' cvxpy duckdb hypothesis pyarrow pytest
NEWER_PYTHONS := 3.12 3.13 3.14
# How much make fuzz tries; each test tries some of it in make test, too.
FUZZ := FUZZ_CALLS=100000 FUZZ_FILES=20000 FUZZ_MODELS=100000 FUZZ_CONFIGS=5000

# What make test runs.
QUICK := not more and not slow and not process

# Checkers of the page's JavaScript, which nobody needs to use or to build the package.
JAVASCRIPT := npx --yes --package typescript@7.0.2 --package oxlint@1.93.0

.PHONY: test test-more test-process quick test-all test-lowest recipes fuzz lint demo engines bench reproduce reproduce-all docs dist coverage audit clean

# Each environment builds on the one before.
$(VENV)/users: pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "fairmaxent needs Python 3.11 or newer, with venv; say where it is: make PYTHON=..."; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) '.[app,cli,sklearn]'
	touch $@

# Tests start many interpreters, each of which would compile what it imports where nothing may be written beside it;
# a few files of other people cannot be compiled.
$(VENV)/contributors: $(VENV)/users
	$(INSTALL) '.[dev]'
	-$(BIN)/python -m compileall -q -j 2 $(VENV)/lib > /dev/null
	touch $@

$(VENV)/documentation: $(VENV)/contributors
	$(INSTALL) '.[docs]'
	touch $@

$(VENV)/engines: $(VENV)/documentation
	$(INSTALL) '.[engines]'
	touch $@

engines: $(VENV)/engines

demo: $(VENV)/users
	$(BIN)/fairmaxent demo --force

lint: $(VENV)/contributors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/size.py
	@if ! command -v npx > /dev/null; then echo "no node here: the JavaScript of the page is not checked"; \
	elif ! $(JAVASCRIPT) -- tsc --version > /dev/null 2>&1; then \
	echo "the checkers of JavaScript cannot be had from here: that of the page is not checked"; else \
	$(JAVASCRIPT) -- tsc -p jsconfig.json && \
	$(JAVASCRIPT) -- oxlint --quiet --deny-warnings src/fairmaxent/app/static --ignore-pattern '**/preact.js'; fi

test: lint
	$(BIN)/pytest -n 2 -m "$(QUICK)"

test-more: $(VENV)/contributors
	$(BIN)/pytest -n 2 -m "more and not slow and not process" tests

# A wing is a folder or a file of src/fairmaxent; its tests have its name.
quick: $(VENV)/contributors
	@test -n "$(wildcard src/fairmaxent/$(WING).py $(if $(WING),src/fairmaxent/$(WING)))" || \
	{ echo "name a wing: make quick WING=fairness"; exit 1; }
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/python scripts/size.py
	$(BIN)/pytest -m "$(QUICK)" $(foreach place,tests/$(WING) tests/test_$(WING).py src/fairmaxent/$(WING) src/fairmaxent/$(WING).py,\
	$(wildcard $(place)))

test-process: $(VENV)/contributors
	$(BIN)/pytest -n 2 -m "process and not slow"

test-all: engines lint
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

.venv-recipes/ready: pyproject.toml
	$(PYTHON) -m venv .venv-recipes
	.venv-recipes/bin/pip install --quiet --editable $(CORE_NEEDS) \
		datasets great_expectations lightgbm mlflow onnxruntime pandera skl2onnx skops surgeo torch xgboost
	touch $@

recipes: .venv-recipes/ready
	.venv-recipes/bin/python -m pytest -W default tests/test_docs.py -k recipes

fuzz: $(VENV)/contributors
	env $(FUZZ) $(BIN)/pytest -n 2 tests/fuzz

bench: $(VENV)/contributors
	$(BIN)/python benchmarks/run.py

# The paper's experiments: a quick version, and the whole, which repeats Table 2 as often as the paper does.
reproduce: $(VENV)/contributors
	$(BIN)/python -m reproduction --quick $(if $(DATA),--data $(DATA)) $(if $(METHODS),--methods $(METHODS))

reproduce-all: $(VENV)/contributors
	$(BIN)/python -m reproduction

# Strict: a broken link is an error.
docs: $(VENV)/documentation
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The packages as an index would get them, tried outside this folder in empty environments of every Python that is here.
# Those that are not called python3.12 and so on are named: make dist PYTHONS="/opt/python/bin/python ...".
dist: $(VENV)/contributors
	rm -rf dist
	$(INSTALL) '.[release]'
	PIP_CONSTRAINT=$(CURDIR)/constraints.txt $(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python scripts/check_dist.py $(PYTHONS)

# Which lines and branches the quick tests run; pyproject.toml has the least share that is accepted.
coverage: $(VENV)/contributors
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 2 -m "not slow and not process"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --sort=cover

# Known vulnerabilities of what constraints.txt pins.
audit: $(VENV)/contributors
	$(INSTALL) '.[release]'
	$(BIN)/pip-audit --strict --disable-pip --no-deps --requirement constraints.txt

clean:
	rm -rf $(VENV) .venv-* dist demo reproduction/out site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage*
