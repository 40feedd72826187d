PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: install demo test lint tree faults bench clean

demo: .venv/demo
	$(BIN)/heedful study rotten-tomatoes --steps 300 --out runs/demo

test: .venv/dev
	$(BIN)/python -m pytest -n auto --dist loadgroup

lint: .venv/dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

tree: .venv/dev
	$(BIN)/python -m tests.tree

faults: .venv/dev
	$(BIN)/python -m tests.faults.long_kills
	$(BIN)/python -m tests.faults.long_damage
	$(BIN)/python -m tests.faults.long_disk
	$(BIN)/python -m tests.faults.long_lock
	$(BIN)/python -m tests.faults.ledger

bench: .venv/bench
	$(BIN)/python -m benchmarks.run
	$(BIN)/python -m benchmarks.scale

install: .venv/dev

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/demo: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing heedful into .venv (a few minutes the first time) …"
	$(PIP) --editable '.[demo]'
	@touch $@

.venv/dev: .venv/bin/python pyproject.toml constraints.txt
	@echo "installing heedful and its test tools into .venv (a few minutes the first time) …"
	$(PIP) --editable '.[demo,hf,dev]'
	@touch $@

.venv/bench: .venv/dev
	$(PIP) --editable '.[demo,hf,dev,bench]'
	@touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache
