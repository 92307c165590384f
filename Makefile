# Everything from a fresh machine: each target sets up what it needs.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo demo-ppo test fast-tests test-all test-faults test-docs test-oldest lint dist docs docs-serve \
	results clean

setup: .venv/ready

.venv/ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "coplay needs Python 3.11 or newer; try make PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@

# A player is trained, shortened, and meets three strangers; results in runs/demo and runs/demo-strangers.
DEMO := runs/demo-partners@partner=
STRANGERS := $(DEMO)1,$(DEMO)2,$(DEMO)3
demo: setup
	rm -rf runs/demo runs/demo-partners runs/demo-strangers
	@echo "1 of 4: HOP+ is trained, shorter than by its defaults"
	$(BIN)/coplay train hop-plus --game stag-hunt --recordings.samples 50000 --steps 140000 --episodes 500 --out runs/demo
	@echo "2 of 4: three strangers are made, from another seed than the partners that HOP+ knows"
	$(BIN)/coplay partners make --game stag-hunt --families rules --rules 4 --seed 1000 --out runs/demo-partners
	@echo "3 of 4: it meets them, beside random play and a best response"
	$(BIN)/coplay adapt runs/demo --against $(STRANGERS) --seeds 1 --steps 1200 --best.stage 200000 \
		--best.most 200000 --best.seeds 1 --out runs/demo-strangers
	@echo "4 of 4: a page that shows what it believes, predicts and plans"
	$(BIN)/coplay watch runs/demo --against $(STRANGERS) --episodes 3 --out runs/demo-strangers/replay.html
	@echo "open runs/demo/index.html, the page of the run, and runs/demo-strangers/replay.html in a browser; to have the coplay command: source .venv/bin/activate"

# Four PPO players learn to hunt the stag together, and leave a run to look at in runs/demo-ppo.
demo-ppo: setup
	rm -rf runs/demo-ppo
	$(BIN)/coplay train ppo --game stag-hunt --steps 600000 --seed 0 --out runs/demo-ppo

# Lint and tests side by side: the type checker uses one core only.
test: setup
	+$(MAKE) --no-print-directory --jobs=2 lint fast-tests

fast-tests: setup
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

# The lowest versions that pyproject.toml allows, in an environment of their own. JaxMARL needs newer ones.
OLDEST := build/oldest/bin/python
test-oldest:
	test -x $(OLDEST) || $(PYTHON) -m venv build/oldest
	$(OLDEST) -m pip install --quiet --constraint constraints-oldest.txt --editable '.[test,hub,mctx,pettingzoo,web]'
	$(OLDEST) -m pytest --numprocesses 1 -m 'not slow and not docs and not faults'

# Wheel and source archive in dist/, checked: what a release holds.
dist: setup
	$(BIN)/python -m tools.release

lint: setup
	$(BIN)/hadolint Dockerfile
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
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache
