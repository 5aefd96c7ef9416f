# Two commands on a fresh machine: `make demo` and `make test`. Linux, Python 3.11 or newer.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Extras for the trainer hooks' tests, e.g. EXTRAS=trl,prime,openenv,swebench (with a CPU build of torch first)
EXTRAS ?=
PYTEST_ARGS ?=

.PHONY: demo test check campaign clean extras

demo: $(VENV)/.base
	$(BIN)/acidtest demo

test: $(VENV)/.installed
	$(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Full measurements: hours, not minutes. docs/measurements.md says what each of them measures.
campaign: $(VENV)/.installed
	$(BIN)/python -m pytest -m campaign --timeout=0 -s $(PYTEST_ARGS)

extras: $(VENV)/.installed
	$(BIN)/python -m pip install -q -c constraints.txt torch
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev,inflation,$(EXTRAS)]'

$(VENV)/.base: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	touch $@

$(VENV)/.installed: $(VENV)/.base
	$(BIN)/python -m pip install -q -c constraints.txt -e '.[dev,inflation]'
	touch $@

clean:
	rm -rf $(VENV) .demo build dist src/*.egg-info .mypy_cache .ruff_cache .pytest_cache
