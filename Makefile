# Two commands matter: `make up` starts everything on this machine, `make test` tests everything.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
WORKERS ?= 2
PACKAGES := schemas policy certs webhook kube controller history signalbox

.PHONY: up down test kueue check lint generate lock clean

up: $(STAMP)
	$(BIN)/signalbox up

down: $(STAMP)
	$(BIN)/signalbox down

# Tests that stop and kill the run's one Signalbox come last and one at a time.
test: check
	$(BIN)/pytest -n $(WORKERS) -m "not site"
	$(BIN)/pytest -m site

# Not part of `test`: Kueue's build takes minutes.
kueue: $(STAMP)
	$(BIN)/pytest -s tests/e2e/kueue/real.py

check: $(STAMP) lint
	$(BIN)/signalbox manifests generate --check
	$(BIN)/bandit -q -ll -r $(PACKAGES)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

generate: $(STAMP)
	$(BIN)/signalbox manifests generate

# The locked files hold versions and hashes, and no address of any registry.
# What runs is what was tested: the other versions are those of the tests.
lock: $(STAMP)
	$(BIN)/uv pip compile -q pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header -o requirements/dev.txt
	$(BIN)/uv pip compile -q pyproject.toml --constraint requirements/dev.txt --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header -o requirements/runtime.txt
	$(BIN)/uv pip compile -q pyproject.toml --all-extras --constraint requirements/dev.txt --universal \
		--python-version 3.11 --generate-hashes --no-emit-index-url --no-header -o requirements/image.txt
	echo "hatchling>=1.27" | $(BIN)/uv pip compile -q - --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header -o requirements/build.txt

$(STAMP): requirements/dev.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "Signalbox needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps -e .
	touch $@

clean:
	rm -rf $(VENV) .signalbox .mypy_cache .ruff_cache .pytest_cache .hypothesis
