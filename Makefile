# Everything these targets install, cache or write stays in .failsafe, which git ignores.

PYTHON ?= python3
RUN := .failsafe/venv/bin/python
FAILSAFE := .failsafe/venv/bin/failsafe
UV := .failsafe/tools/bin/uv

export PYTHONPYCACHEPREFIX := $(CURDIR)/.failsafe/pycache
export UV_CACHE_DIR := $(CURDIR)/.failsafe/uv-cache
export UV_PROJECT_ENVIRONMENT := $(CURDIR)/.failsafe/venv
export UV_PYTHON_DOWNLOADS := never

.PHONY: help demo test check faults machine twins dev bench bench-resume wheel setup clean
.DEFAULT_GOAL := help

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: setup ## receipts through the whole machine in a minute, worker killed midway; ends with a table
	@$(FAILSAFE) demo $(ARGS)

test: setup ## all tests, on a PostgreSQL of their own or on FAILSAFE_TEST_DATABASE_URL (ARGS="-k name" for some)
	@$(RUN) -m pytest --numprocesses auto --dist worksteal $(ARGS)

check: setup ## format, lint, types, import contract and file sizes, without changing anything
	@$(UV) lock --check --quiet
	@$(RUN) -m ruff format --check --output-format concise .
	@$(RUN) -m ruff check --output-format concise .
	@$(RUN) -m mypy
	@.failsafe/venv/bin/lint-imports --cache-dir .failsafe/import-linter
	@find . -name .failsafe -prune -o -name '*.py' -print | xargs wc -l | \
		awk '$$2 != "total" && $$1 > 400 {print $$2 " has " $$1 " lines, over 400: split it by concept"; bad = 1} END {exit bad}'

faults: setup ## kill, stop and starve real workers at every point, one JSON line last (ARGS=--quick for minutes)
	@$(RUN) -m tests.faults $(ARGS)

machine: setup ## the state machine in tests/statemachine for 10,000 generated steps
	@FAILSAFE_MACHINE_STEPS=10000 $(RUN) -m pytest tests/statemachine -q -s $(ARGS)

twins: setup ## remove each guard from a copy of the code; a named test must fail for each; one JSON line last
	@$(RUN) -m tests.twins $(ARGS)

dev: setup ## Dagster with the example, in a home of its own that is kept
	@$(FAILSAFE) dev $(ARGS)

bench: setup ## the benchmark, one JSON line last
	@$(RUN) -m benchmarks $(ARGS)

bench-resume: setup ## how soon a vote is carried out by a real Dagster: four minutes, one JSON line last
	@$(RUN) -m benchmarks.resume $(ARGS)

wheel: setup ## the wheel in .failsafe/dist, installed into a clean environment and imported there
	@rm -rf .failsafe/dist .failsafe/wheel
	@$(UV) build --quiet --wheel --out-dir .failsafe/dist
	@$(UV) export --quiet --locked --no-emit-project --no-hashes --output-file .failsafe/dist/versions.txt
	@$(UV) venv --quiet --python $(RUN) .failsafe/wheel
	@$(UV) pip install --quiet --python .failsafe/wheel/bin/python --constraint .failsafe/dist/versions.txt .failsafe/dist/*.whl
	@cd .failsafe/wheel && bin/python -c 'import dagster_failsafe; print("imported", dagster_failsafe.__version__, "from", dagster_failsafe.__file__)'

clean: ## stop this checkout's databases and remove everything it installed or wrote
	@if [ -x $(RUN) ]; then $(RUN) -c 'from pathlib import Path; from resources import embedded_postgres; embedded_postgres.remove_all(Path(".failsafe"))'; fi
	@rm -rf .failsafe

setup: .failsafe/venv/synced

.failsafe/venv/synced: uv.lock pyproject.toml | $(UV)
	@echo "Installing into .failsafe ..."
	@mkdir -p .failsafe/tmp
	@TMPDIR=.failsafe/tmp $(UV) sync --quiet --locked --all-extras --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')"
	@touch $@

# pip alone is enough: Debian's own Python has no ensurepip, so that its `python3 -m venv` fails.
$(UV):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) is $$($(PYTHON) --version 2>&1), but Python 3.11 or later is needed: make PYTHON=/path/to/python3.11 ..."; exit 1; }
	@$(PYTHON) -m pip --version > /dev/null || { echo "pip is missing for $(PYTHON): install it (Debian: python3-pip)"; exit 1; }
	@mkdir -p .failsafe/tmp
	@TMPDIR=.failsafe/tmp PIP_USER=0 PIP_ROOT_USER_ACTION=ignore $(PYTHON) -m pip install --quiet --no-cache-dir --disable-pip-version-check --target .failsafe/tools uv
