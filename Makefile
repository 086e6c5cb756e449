# Two commands on a fresh machine that has python3 and make: `make demo` and `make test`.
.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint types imports pytest coverage docs bench bench-compare bench-scale race race-against paper golden fuzz audit constraints wheel sbom clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
APP := $(VENV)/.app
READY := $(VENV)/.ready
RACE_VENV := .venv-race
RACE := $(RACE_VENV)/.ready
RACE_ARGUMENTS ?=
PAPER ?= all
PAPER_ARGUMENTS ?= --out build/paper
AUDIT_VENV := .venv-audit
AGAINST ?=
FUZZ := $(VENV)/.fuzz
FUZZ_SECONDS ?= 600
FUZZ_PROBLEMS ?= 20000
FUZZ_SEED ?= 2026
# The workers of the tests and the processes they start share compiled modules.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(APP) ## simulate a cohort, fit, print a table (the first run installs into .venv)
	@$(BIN)/deeptobit demo

test: lint imports ## everything that must be green: ruff, import-linter, and mypy beside pytest
	@$(MAKE) --no-print-directory --jobs 2 types pytest

lint: $(READY) ## ruff: style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY) ## mypy, strict
	$(BIN)/mypy

imports: $(READY) ## import-linter: allowed imports
	$(BIN)/lint-imports

pytest: $(READY) ## unit tests, doctests, README examples
	$(BIN)/pytest -n 2 --dist loadfile -q -m 'not slow'

test-all: test ## the same, and the slow tests
	$(BIN)/pytest -n 2 -q -m slow

coverage: $(READY) ## all tests with the lines they run
	$(BIN)/pytest -n 2 -q --cov=src/deeptobit --cov-report=term:skip-covered --cov-fail-under=95

docs: $(READY) ## build the documentation into build/site; warnings are errors
	$(BIN)/python scripts/build_gallery.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

bench: $(READY) ## measure what this project promises; each number is one line
	$(BIN)/python -m benchmarks

race: $(RACE) ## race against XGBoost, NGBoost, R and others, in .venv-race (about two hours on two cores)
	$(RACE_VENV)/bin/python -m benchmarks.race $(RACE_ARGUMENTS)

race-against: $(RACE) ## race the default alone against itself at AGAINST=revision; RACE_ARGUMENTS="--data help --splits 2"
	$(RACE_VENV)/bin/python -m benchmarks.race.against $(or $(AGAINST),HEAD) $(RACE_ARGUMENTS)

paper: $(READY) ## the paper's tables and figures into build/paper; PAPER="table-rank fig-network" for some of them
	$(BIN)/python -m paper $(PAPER) $(PAPER_ARGUMENTS)

bench-scale: $(READY) ## the same for rows beyond memory and workers: tables of some gigabytes
	$(BIN)/python -m benchmarks scale cost

bench-compare: $(READY) ## time the working tree against the last tag, or AGAINST=revision, with one thread
	$(BIN)/python -m benchmarks.compare $(if $(AGAINST),--against $(AGAINST))

golden: $(READY) ## store the numbers of tests/golden anew, and say what changed
	$(BIN)/python -m tests.golden.store

fuzz: $(FUZZ) ## generated problems, then atheris on everything that reads files (about two and a half hours)
	$(BIN)/python -m tests.properties.many --problems $(FUZZ_PROBLEMS) --seed $(FUZZ_SEED)
	$(BIN)/python -m fuzz models --seconds $(FUZZ_SECONDS)
	$(BIN)/python -m fuzz checkpoints --seconds $(FUZZ_SECONDS)
	$(BIN)/python -m fuzz studies --seconds $(FUZZ_SECONDS)
	for kind in csv xlsx ods xls sav dta parquet arrow; do $(BIN)/python -m fuzz $$kind --seconds $(FUZZ_SECONDS) || exit 1; done

audit: ## known vulnerabilities of constraints.txt (asks an advisory service, and fails without its answer)
	$(PYTHON) -m venv $(AUDIT_VENV)
	$(AUDIT_VENV)/bin/python -m pip install --quiet pip-audit
	$(AUDIT_VENV)/bin/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip
	rm -rf $(AUDIT_VENV)

constraints: $(READY) ## rewrite constraints.txt from what is installed in .venv
	$(BIN)/python scripts/write_constraints.py

wheel: $(READY) ## build the wheel twice: the same bytes, and not too large
	$(BIN)/python -m scripts.wheel

sbom: $(READY) ## bill of materials of the application (CycloneDX) into build/sbom.json
	mkdir -p build
	$(BIN)/python -m scripts.sbom > build/sbom.json

clean: ## remove virtual environments and caches
	rm -rf $(VENV) $(RACE_VENV) build docs/gallery .fuzz .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis

$(APP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt pip hatchling editables
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[app]'
	@touch $@

$(READY): $(APP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dev]'
	@touch $@

$(FUZZ): $(READY)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[fuzz]'
	@touch $@

$(RACE): pyproject.toml constraints.txt benchmarks/race/requirements.txt
	$(PYTHON) -m venv $(RACE_VENV)
	$(RACE_VENV)/bin/python -m pip install --quiet --constraint constraints.txt pip hatchling editables
	$(RACE_VENV)/bin/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[app,datasets]'
	$(RACE_VENV)/bin/python -m pip install --quiet --constraint constraints.txt --requirement benchmarks/race/requirements.txt
	@touch $@
