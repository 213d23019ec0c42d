# make run     the whole service on this machine; PORT=8001 for another port, NODES=1 with real nodes; Ctrl-C ends it, a second one at once
# make test    everything that is checked: style, types, the direction of imports, every test
# make sweep   the fault sweeps as far as they go (three hours)
# make rehearse   a clean clone deployed to the local AWS stand-in, upgraded, rolled back and taken down; FRESH=1 with its own environment
# make quick   the unit tests that need neither nodes nor much time
# make coverage   which branches of the domain and the use cases no test takes
# Needs Python 3.13, or 3.11, with venv; PYTHON=/path/to/python picks one. Functions are deployed with the Python of .venv, 3.13 unless
# .chalice/config.json says otherwise. For the tests on the other one: make test PYTHON=python3.11 VENV=.venv-3.11

PYTHON ?= $(shell python3.13 -c 'print("python3.13")' 2>/dev/null || echo python3)
VENV := .venv
BIN := $(VENV)/bin
# The stamp's name carries a checksum of what is pinned: installing happens when a pin changes, and only then. Another Python is taken
# over with `make clean`.
STAMP := $(VENV)/.installed-$(shell cat requirements.txt requirements-dev.txt | cksum | tr ' ' '-')
# Half as many again as there are cores: tests of nodes wait for them. Each more collects all tests once more (on two cores 7:20 with
# three, 7:50 to 8:15 with four).
WORKERS := $(shell cores=$$(nproc 2>/dev/null || echo 2); echo $$(((cores * 3 + 1) / 2)))

# Bytecode is kept: without it each worker compiles every test again, half a minute of each core.
unexport PYTHONDONTWRITEBYTECODE

PYTEST := $(BIN)/pytest -n $(WORKERS) --dist worksteal
LINT := $(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports && $(BIN)/cfn-lint infra/*.yaml infra/platform/*.yaml

.PHONY: run test sweep rehearse quick coverage lint format bench policies assets deps clean
.DEFAULT_GOAL := run

# exec: Ctrl-C reaches the service itself, and no shell stands between it and make.
run: $(STAMP)
	@exec $(BIN)/python -m infra.local.run

# worksteal: each worker begins with its share of the tests, in order, and takes of the others' when it has none left.
# Style and types are checked meanwhile. What they complain of is shown at once, and said again at the end; either fails the check.
test: $(STAMP)
	@mkdir -p .local
	@{ { $(LINT); } >.local/lint.log 2>&1 || { echo; echo "== make lint failed:"; cat .local/lint.log; false; }; } & lint=$$!; \
	$(PYTEST); tests=$$?; \
	if wait $$lint; then echo "make lint passed."; else echo "make lint failed: see .local/lint.log"; tests=1; fi; exit $$tests

# Every call of the main paths fails once in every way, properties are tried on new examples, and what is marked `sweep` runs: longer
# than a check has time for. Beside the next version every second call fails, in one of the ways, beside the release before every fifth,
# and of a deploy's way back every fourth: in each run others.
sweep: $(STAMP)
	SWEEP=full $(PYTEST) tests/faults tests/unit tests/concurrency \
		$$(grep -rlE --include='test_*.py' 'SWEEP|mark\.sweep' tests/contract tests/nodes tests/browser tests/deploy)

# See a deployment happen before there is an account: with the operator's commands, and payments through the package as Lambda has it.
rehearse: $(STAMP)
	@exec $(BIN)/python -m infra.rehearse $(if $(FRESH),--fresh)

# Without the contract tests: thousands of them ask the whole service, which takes minutes.
quick: $(STAMP)
	$(PYTEST) tests/unit -m "not slow and not nodes and not browser"

# Branches of the domain and the use cases that no test takes; the workers are measured too (`tool.coverage` in pyproject.toml).
coverage: $(STAMP)
	rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest -n $(WORKERS) --dist worksteal -m "not browser"; tests=$$?; \
	$(BIN)/coverage combine -q && $(BIN)/coverage report --skip-covered || tests=1; exit $$tests

lint: $(STAMP)
	$(LINT)

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Benchmarks print figures and compare them with a floor of the same run: one at a time, nothing beside them. The tables of docs/scale.md
# and its plot are made anew.
bench: $(STAMP)
	$(BIN)/python -m tests.bench.page

policies: $(STAMP)
	$(BIN)/python -m infra.policies

# The explorer's files, from the pinned package into chalicelib/web/static.
assets: $(STAMP)
	$(BIN)/python -m infra.assets

deps: $(STAMP)

$(STAMP):
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.13 is needed, or 3.11 at least; make PYTHON=/path/to/python")'
	@echo "Installing what is pinned into $(VENV): about a minute, this once."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements-dev.txt
	@rm -f $(VENV)/.installed-*
	@touch $@

clean:
	rm -rf $(VENV) .local build .chalice/deployments .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
