# Everything a fresh machine needs is made from the lock files into .venv; see CONTRIBUTING.md.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUNS   := $(VENV)/runs
READY  := $(VENV)/ready
WEB    := web/node_modules/.package-lock.json
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
CORPUS ?= $(wildcard tests/oracle/corpora/*.ndjson.gz)
# More workers than the two cores of a small machine: many tests wait for what other processes do.
PYTEST_ARGS ?= -n 4 --dist loadgroup

# Many tests start programs: bytecode is kept, so that not each of them compiles all anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup system demo test unit long lint format docs site manifests oracle bench lock proto web weblint packages clean
.DEFAULT_GOAL := help

help: ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## Make the virtual environment with all that checks and tests need

# Enough to run Bayplan. The rest, most of which only tests need, comes on top of it when asked for.
$(RUNS): requirements/runtime.lock requirements/build.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Bayplan needs Python 3.11 or newer; set PYTHON=")'
	@echo "Installing what is locked in requirements/runtime.lock into $(VENV); this takes half a minute."
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements/runtime.lock -r requirements/build.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $(RUNS)

$(READY): requirements/dev.lock $(RUNS)
	@echo "Installing what is locked in requirements/dev.lock into $(VENV); this takes a minute."
	$(PIP) --require-hashes -r requirements/dev.lock
	touch $(READY)

system: ## Install the Debian packages that some tests talk to (as root, only those missing)
	sh requirements/install-debian-packages

demo: $(RUNS) ## Tell what Bayplan is for, on clusters in one process (DEMO_ARGS="--story 5" for one)
	$(BIN)/bayplan demo $(DEMO_ARGS)

test: $(READY) system packages ## Run the tests
	$(BIN)/python -m pytest $(PYTEST_ARGS)

unit: $(READY) ## Run the tests that are quick: in about a minute and a half on two cores
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "not whole"

long: $(READY) ## Run the tests that try a sample with many: kills, full disks, mutated requests
	$(BIN)/python -m pytest --long --timeout 0 tests/embedded/test_killed.py tests/embedded/test_mutations.py \
		tests/images/store/test_kills.py tests/lab/simulating/test_hashes.py tests/packaging/test_clone.py \
		tests/fit/batches/test_batch_properties.py tests/autoscaler/scaleup/test_orchestrator_properties.py \
		tests/oracle/test_live_queues.py

lint: $(READY) system weblint ## Check style, types and the rooms' imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Users need no Node, since the built page is checked in; whoever works on the page does, and so does CI.
packages: system
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(WEB); fi

weblint: packages
	@if command -v npm >/dev/null; then cd web && npm run --silent lint; \
	elif [ -n "$$CI" ]; then echo "the page's sources cannot be checked without Node 20 and npm" >&2; exit 1; \
	else echo "the page's sources were not checked: Node 20 and npm are not here"; fi

web: $(WEB) ## Build the page of bayplan ui into the package (needs Node 20 and npm)
	cd web && npm run --silent format && npm run --silent build

$(WEB): web/package.json web/package-lock.json
	cd web && npm ci --silent --ignore-scripts
	touch $(WEB)

format: $(READY) ## Rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY) ## Write the commands' help and what they print into docs/
	$(BIN)/python -m tests.docs --runs

site: $(READY) ## Build the documentation as a site into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

manifests: $(READY) ## Write the Helm chart, the Kustomize base and the dashboard anew
	$(BIN)/python -m tests.deploy

oracle: $(READY) ## Compare with what Kubernetes decided: make oracle CORPUS=file.ndjson.gz
	$(BIN)/python -m tests.oracle $(CORPUS)

bench: $(READY) ## Measure; one JSON line a case
	$(BIN)/python -m bench

lock: ## Resolve the dependencies anew (needs uv)
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
		pyproject.toml --group dev --all-extras -o requirements/dev.lock
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
		pyproject.toml -c requirements/dev.lock -o requirements/runtime.lock
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
		--group build -c requirements/dev.lock -o requirements/build.lock

proto: $(READY) ## Generate the gRPC messages from their .proto files anew
	$(BIN)/python -m grpc_tools.protoc -I src --python_out=src --pyi_out=src $$(find src -name '*.proto')

clean: ## Remove what the other targets made
	rm -rf $(VENV) web/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
