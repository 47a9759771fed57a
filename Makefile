# Every target installs what it needs from the lock files into .venv; see CONTRIBUTING.md.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
RUNS   := $(VENV)/runs
READY  := $(VENV)/ready
WEB    := web/node_modules/.package-lock.json
ENGINE ?= docker
IMAGE  ?= bayplan:dev
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
CORPUS ?= $(wildcard tests/oracle/corpora/*.ndjson.gz)
# More workers than the two cores of a small machine: many tests wait for other processes.
PYTEST_ARGS ?= -n 4 --dist loadgroup

# Many tests start programs: keep the bytecode, so that each of them does not compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup system demo test unit long lint format docs site manifests oracle bench lock proto web weblint packages wheel image clean
.DEFAULT_GOAL := help

help: ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## Create the virtual environment with everything that checks and tests need

# Enough to run Bayplan; $(READY) adds what only checks and tests need.
$(RUNS): requirements/runtime.lock requirements/build.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Bayplan needs Python 3.11 or newer; set PYTHON=")'
	@echo "Installing requirements/runtime.lock into $(VENV); this takes half a minute."
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements/runtime.lock -r requirements/build.lock
	$(PIP) --no-deps --no-build-isolation --editable .
	touch $(RUNS)

$(READY): requirements/dev.lock $(RUNS)
	@echo "Installing requirements/dev.lock into $(VENV); this takes a minute."
	$(PIP) --require-hashes -r requirements/dev.lock
	touch $(READY)

system: ## List the Debian packages that tests use and that are missing; as root, install them
	@sh requirements/install-debian-packages

demo: $(RUNS) ## Run the eight stories on simulated clusters (DEMO_ARGS="--story 5" for one)
	$(BIN)/bayplan demo $(DEMO_ARGS)

test: system $(READY) packages ## Run all tests; begins with what `make system` does
	$(BIN)/python -m pytest $(PYTEST_ARGS)

unit: $(READY) ## Run the quick tests: about a minute and a half on two cores
	$(BIN)/python -m pytest $(PYTEST_ARGS) -m "not whole"

long: $(READY) ## Run sampled tests with many more cases: kills, full disks, mutated requests
	$(BIN)/python -m pytest --long --timeout 0 tests/embedded/apiserver/store/test_kills.py tests/embedded/apiserver/test_mutations.py \
		tests/images/store/test_kills.py tests/lab/simulation/test_hashes.py tests/packaging/test_clone.py \
		tests/fit/batches/test_batch_properties.py tests/autoscaler/scaleup/test_orchestrator_properties.py \
		tests/oracle/test_live_queues.py

lint: system $(READY) weblint ## Check style, types and imports between packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The built page is checked in, so users need no Node; work on the page and CI do.
packages: system
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory $(WEB); fi

weblint: packages
	@if command -v npm >/dev/null; then cd web && npm run --silent lint; \
	elif [ -n "$$CI" ]; then echo "web/ cannot be checked: Node 20 and npm are not installed" >&2; exit 1; \
	else echo "web/ was not checked: Node 20 and npm are not installed"; fi

web: $(WEB) ## Build the page of bayplan ui into the package (needs Node 20 and npm)
	cd web && npm run --silent format && npm run --silent build

$(WEB): web/package.json web/package-lock.json
	cd web && npm ci --silent --ignore-scripts
	touch $(WEB)

format: $(READY) ## Fix and format the sources with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY) ## Write the generated parts of docs/: help, reference tables, printed output
	$(BIN)/python -m tests.docs --runs

site: $(READY) ## Build the documentation site into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

manifests: $(READY) ## Generate the Helm chart, the Kustomize base and the dashboard
	$(BIN)/python -m tests.deploy

oracle: $(READY) ## Compare with recorded decisions of Kubernetes, CAS and Volcano (CORPUS=file.ndjson.gz)
	$(BIN)/python -m tests.oracle $(CORPUS)

bench: $(READY) ## Run the benchmarks; one JSON line for each case
	$(BIN)/python -m bench

wheel: $(READY) ## Build the wheel into dist/
	$(BIN)/python -m hatchling build --target wheel --directory dist

image: ## Build the container image (IMAGE=bayplan:dev, ENGINE=docker or podman)
	$(ENGINE) build -f Containerfile -t $(IMAGE) .

lock: ## Resolve the dependencies and write the lock files (needs uv)
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
		pyproject.toml --group dev --all-extras -o requirements/dev.lock
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
		pyproject.toml -c requirements/dev.lock -o requirements/runtime.lock
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
		--group build -c requirements/dev.lock -o requirements/build.lock

proto: $(READY) ## Generate the gRPC messages from their .proto files
	$(BIN)/python -m grpc_tools.protoc -I src --python_out=src --pyi_out=src $$(find src -name '*.proto')

clean: ## Remove what the other targets created
	rm -rf $(VENV) web/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
