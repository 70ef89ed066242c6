# Every verb of the project. Each one sets up what it needs, so any of them may be the first.

PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
TOOLS := $(VENV)/.tools
STAMP := $(VENV)/.project
DEMO := build/demo/.runtime

# The parts of the project that hold Python. Those that do not exist yet are left out.
CODE := $(wildcard src tests bench examples release docs)

# The locker lives outside of .venv: it is needed only by whoever changes a dependency.
# `make lock LOCK_FLAGS=--upgrade` takes the newest versions; without it, what is locked stays.
UV_VERSION := 0.13.7
LOCKER := build/lock
LOCK_FLAGS ?=
COMPILE = uv pip compile --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-emit-find-links --quiet --custom-compile-command "make lock" $(LOCK_FLAGS)

export PIP_DISABLE_PIP_VERSION_CHECK := 1

define check-python
@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Bridgehead needs Python 3.11 or newer, and '$(PYTHON)' is not that." \
			"Name another one: make setup PYTHON=python3.12" >&2; exit 1; }
endef

.DEFAULT_GOAL := help
.PHONY: adversary fuzz soak help setup test coverage check docs pictures site demo bench compare conformance interop browser scale stores frameworks mutants dist smoke pythons windows lock clean deploy

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv with the locked tools and the project itself

# Two steps, so that a change in pyproject.toml costs a second and only a change of versions costs more.
$(TOOLS): requirements/dev.txt
	$(check-python)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements/dev.txt
	@touch $@

$(STAMP): $(TOOLS) pyproject.toml src/bridgehead/__init__.py
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --no-index --editable .
	@touch $@

# Measuring child processes takes twice the CPU time, so only CI asks `make test` for it.
ifdef COVERAGE
test: coverage
else
test: $(STAMP) ## run the tests
	$(BIN)/pytest -n 4 --dist loadfile
endif

coverage: $(STAMP) ## run the tests, child processes measured too; fails below 95 % coverage
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest -n 4 --dist loadfile
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

check: $(STAMP) ## lint, format, types, layers, generated documents
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy $(CODE)
	$(BIN)/lint-imports --no-logo
	$(BIN)/python docs/generate.py --check
	$(BIN)/python -m release.install_links --check

docs: $(STAMP) ## make .env.example, docs/configuration.md, docs/api.md and the README's buttons from the code
	$(BIN)/python docs/generate.py
	$(BIN)/python -m release.install_links

pictures: $(STAMP) ## draw the pictures in docs/images
	$(BIN)/python -m docs.pictures

# The generator of the website lives outside of .venv too: no other verb needs it.
SITE := build/site/tools
$(SITE)/.installed: requirements/site.txt
	$(check-python)
	$(PYTHON) -m venv $(SITE)
	$(SITE)/$(notdir $(BIN))/python -m pip install --quiet --require-hashes -r requirements/site.txt
	@touch $@

site: $(SITE)/.installed ## make a website of the documents in build/site/html; fails on a broken link
	$(SITE)/$(notdir $(BIN))/python docs/site.py

# The demo needs only what people install, so it does not wait for the tools of development.
$(DEMO): requirements/runtime.txt
	@echo "Getting ready, once: about 20 seconds and 80 MB in build/demo. The demo itself takes about 10 seconds."
	$(check-python)
	$(PYTHON) -m venv build/demo
	build/demo/$(notdir $(BIN))/python -m pip install --quiet --require-hashes -r requirements/runtime.txt
	@touch $@

demo: $(DEMO) ## see every bridge at work in the terminal, offline
	@PYTHONPATH=src build/demo/$(notdir $(BIN))/python -m bridgehead demo

bench: $(STAMP) ## measure the engine beside its peers; OF=aoc, bitburner, mercury, host, scale or tasks measures that
	$(BIN)/python -m bench$(addprefix .,$(OF))

compare: $(STAMP) ## measure this tree beside another state of it; BASE=REVISION names that
	$(BIN)/python -m bench.before_after $(or $(BASE),HEAD~1)

conformance: $(STAMP) ## run the official conformance suite (needs Node)
	$(BIN)/python -m tests.conformance

# Everything that replicas share, each noun's suite over all its versions.
STORES := tests/runtime/stores tests/runtime/tasks tests/aoc/database tests/mercury/calling/test_postgres_usage.py tests/mercury/calling/test_postgres_budget.py tests/host/replicas \
	tests/host/auth/test_shared_throttle.py tests/host/auth/test_token_database.py tests/host/auth/test_revocation.py \
	tests/host/test_database.py tests/host/telemetry/test_audit.py tests/commands/test_db.py \
	$(addprefix tests/mercury/calling/test_,budget.py postgres_budget.py rate_limits.py cache.py)
stores: $(STAMP) ## run the tests of what replicas share on the system's redis-server, PostgreSQL and PgBouncer
	BRIDGEHEAD_STORES=1 BRIDGEHEAD_TEST_REDIS_SERVER="$$(command -v redis-server || command -v valkey-server)" \
		$(BIN)/pytest -n 4 --dist loadfile $(STORES)

scale: $(STAMP) ## run two replicas behind HAProxy: conformance, rolling restart (needs Node and haproxy)
	$(BIN)/python -m tests.scale

interop: $(STAMP) ## talk to the official clients and the Inspector (needs Node)
	$(BIN)/python -m tests.interop

deploy: $(STAMP) ## run balancers in front of replicas, and check manifests, compose files and units
	$(BIN)/python -m pip install --quiet --require-hashes --requirement requirements/deploy.txt
	BRIDGEHEAD_DEPLOY=1 $(BIN)/pytest -n 0 tests/deploy

browser: $(STAMP) ## show the apps and the dashboard in Chromium (needs Node; ARGS=--pictures keeps pictures)
	$(BIN)/python -m tests.browser $(ARGS)

mutants: $(STAMP) ## see that the tests notice faults in the modules that matter most; OF=durable tries one, OF=--changed what is not measured
	$(BIN)/python -m tests.mutants $(OF)

adversary: $(STAMP) ## send raw bad requests to the HTTP server and to its peers, and compare
	$(BIN)/python -m tests.adversary

fuzz: $(STAMP) ## search for bytes that break the HTTP server or JSON-RPC; SECONDS=3600 searches for an hour
	$(BIN)/python -m tests.fuzz --seconds $(or $(SECONDS),120) $(ARGS)

soak: $(STAMP) ## treat the host badly for half an hour and see that it does not grow; SECONDS=300 is shorter
	$(BIN)/python -m bench.host.soak --seconds $(or $(SECONDS),1800)

pythons: $(STAMP) ## run the engine's tests on the newer Pythons of this machine
	$(BIN)/python -m tests.pythons $(ARGS)

windows: $(STAMP) ## run the tests on CPython for Windows (needs Wine; ARGS='tests/aoc --python 3.12' runs some)
	$(BIN)/python -m tests.windows $(ARGS)

frameworks: $(STAMP) ## talk to the clients of agent frameworks (ARGS=--ci for those that CI tries)
	$(BIN)/python -m tests.frameworks $(ARGS)

dist: $(STAMP) ## build what people install into dist: wheel, sdist, archive, bundles
	$(BIN)/python -m release dist

smoke: $(STAMP) ## build it, install it outside of the project and use every bridge
	$(BIN)/python -m release smoke

lock: ## remake requirements/ from pyproject.toml
	@test -x $(LOCKER)/bin/uv || { $(PYTHON) -m venv $(LOCKER) && $(LOCKER)/bin/pip install --quiet uv==$(UV_VERSION); }
	$(LOCKER)/bin/$(COMPILE) pyproject.toml --output-file requirements/runtime.txt
	$(LOCKER)/bin/$(COMPILE) pyproject.toml --extra oauth --extra otel --extra postgres --extra redis --constraint requirements/runtime.txt --output-file requirements/team.txt
	$(LOCKER)/bin/$(COMPILE) pyproject.toml --group dev --constraint requirements/runtime.txt --output-file requirements/dev.txt
	$(LOCKER)/bin/$(COMPILE) --group deploy --constraint requirements/dev.txt --output-file requirements/deploy.txt
	$(LOCKER)/bin/$(COMPILE) --group site --constraint requirements/dev.txt --output-file requirements/site.txt
	$(LOCKER)/bin/$(COMPILE) --group installers --constraint requirements/dev.txt --output-file requirements/installers.txt
	$(LOCKER)/bin/$(COMPILE) --group build --constraint requirements/dev.txt --output-file requirements/build.txt

clean: ## remove everything that a verb made
	rm -rf $(VENV) .node .bench build dist htmlcov .coverage .coverage.* .hypothesis
	rm -rf .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
