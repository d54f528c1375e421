# Two commands do everything: `make demo` and `make test`. Both make the environment themselves.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed

.PHONY: env test test-fast lint fuzz mutate bench-compile clean

env: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade pip
	$(PY) -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

test: env  ## everything; under 15 minutes on two cores
	$(PY) -m pytest

test-fast: env  ## what needs no JVM; under a minute
	$(PY) -m pytest -m 'not spark and not slow'

lint: env
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

fuzz: env  ## 100,000 random queries and changes against the reference
	$(PY) tools/fuzz.py --cases 100000

mutate: env  ## breaks each rule in turn: no mutant may survive
	$(PY) tools/mutate.py

bench-compile: env  ## how long changes take to compile
	$(PY) tools/bench_compile.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
