# Everything a fresh machine needs is made from the lock files into .venv; see CONTRIBUTING.md.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/ready
CORPUS ?= $(wildcard tests/oracle/corpora/*.ndjson.gz)
PYTEST_ARGS ?= -n 2 --dist loadgroup

.PHONY: help setup system demo test long lint format docs site oracle bench lock proto clean
.DEFAULT_GOAL := help

help: ## List the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(READY) ## Make the virtual environment from the lock file

$(READY): requirements/dev.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Bayplan needs Python 3.11 or newer; set PYTHON=")'
	@echo "Installing what is locked in requirements/dev.lock into $(VENV); this takes a minute or two."
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $(READY)

system: ## Install the Debian packages that some tests talk to (as root, only those missing)
	sh requirements/install-debian-packages

demo: $(READY) ## Explain a shipped example cluster
	BIN=$(BIN) sh examples/demo

test: $(READY) system ## Run the tests
	$(BIN)/python -m pytest $(PYTEST_ARGS)

long: $(READY) ## Run the tests that try a sample with many: kills, full disks, mutated requests
	$(BIN)/python -m pytest --long tests/embedded/test_killed.py tests/embedded/test_mutations.py \
		tests/images/store/test_kills.py

lint: $(READY) ## Check style, types and the rooms' imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## Rewrite the sources in the house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY) ## Write the commands' help and what they print into docs/
	$(BIN)/python -m tests.docs

site: $(READY) ## Build the documentation as a site into build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

oracle: $(READY) ## Compare with what Kubernetes decided: make oracle CORPUS=file.ndjson.gz
	$(BIN)/python -m tests.oracle $(CORPUS)

bench: $(READY) ## Measure; one JSON line a case
	$(BIN)/python -m bench

lock: ## Resolve the dependencies anew (needs uv)
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
		pyproject.toml --group dev --all-extras -o requirements/dev.lock
	uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --python-version 3.11 \
		pyproject.toml -c requirements/dev.lock -o requirements/runtime.lock

proto: $(READY) ## Generate the gRPC messages from their .proto files anew
	$(BIN)/python -m grpc_tools.protoc -I src --python_out=src --pyi_out=src $$(find src -name '*.proto')

clean: ## Remove what the other targets made
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
