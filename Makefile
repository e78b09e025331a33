# `make run` trains the first example, `make test` runs every test; both set up `.venv` themselves.
PYTHON ?= python3
VENV ?= .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif

.PHONY: run test quick lint format clean

run: $(VENV)/.installed-examples
	$(BIN)/ocn run examples/digits.ocn

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto

quick: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n auto -m "not slow"

lint: $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

format: $(VENV)/.installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	touch $@

$(VENV)/.installed-examples: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[examples]"
	touch $@

$(VENV)/.installed-test: $(VENV)/.created pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[examples,test]"
	touch $@
