# Everything from a fresh machine: each target sets up what it needs.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test test-all test-faults test-docs lint docs docs-serve results clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "coplay needs Python 3.11 or newer; try make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# Train four players until they cooperate, and leave a run to look at in runs/demo.
demo: setup
	rm -rf runs/demo
	$(BIN)/coplay train ppo --game stag-hunt --steps 600000 --seed 0 --out runs/demo
	@echo "(to have the coplay command at hand: source .venv/bin/activate)"

test: setup lint
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal -m 'not slow and not docs and not faults'

# Also the tests that take long: whole runs, every environment of a registry.
test-all: setup lint
	$(BIN)/python -m pytest --numprocesses auto --maxprocesses 4 --dist worksteal -m 'not docs and not faults'

# Every tutorial, and all Python of the how-to pages.
test-docs: setup
	$(BIN)/python -m pytest -m docs

# Crashes, kills, flipped bits, failing disks and fuzz, by the hundred and thousand: an hour on two cores.
test-faults: setup
	$(BIN)/python -m pytest -s --numprocesses auto --maxprocesses 4 --dist worksteal -m faults

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site, in build/site; docs-serve also shows it on http://127.0.0.1:8000.
docs: setup
	$(BIN)/python -m tools.docs

docs-serve: setup
	$(BIN)/python -m tools.docs --serve

# Which command, commit, seeds, machine and time gave each result; tables and pictures of the pages.
results: setup
	$(BIN)/python -m tools.docs.results

clean:
	rm -rf .venv build *.egg-info .pytest_cache .mypy_cache .ruff_cache
