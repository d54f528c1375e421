# Two commands do everything: `make demo` and `make test`. Both make the environment themselves.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed

.PHONY: env java demo test test-fast lint fuzz mutate bench-compile clean
.PHONY: fuzz-spark scenarios tpch tpcds tpcds-run fuzz-closure bench bench-large bench-tpch bench-closure
.PHONY: bench-choice bench-graph bench-growth test-long bench-constraint bank kills

env: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade pip
	$(PY) -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

java:
	@java -version >/dev/null 2>&1 || "$$JAVA_HOME/bin/java" -version >/dev/null 2>&1 || { \
	  echo "Spark needs Java 17 and none was found: apt-get install openjdk-17-jre-headless (Debian), brew install openjdk@17 (macOS), or set JAVA_HOME." >&2; exit 1; }

demo: java env  ## a small shop with views, changed and refreshed; under two minutes, downloads aside
	@$(PY) -m viewkeeper.demo

test: java env  ## everything; under 15 minutes on two cores
	$(PY) -m pytest -n 2 --dist loadfile --durations=15

test-long: java env  ## with the long runs too: every crash point, all scenarios, real executors
	$(PY) -m pytest -n 2 --dist loadfile -m ''

test-fast: env  ## what needs no JVM; under a minute
	$(PY) -m pytest -m 'not spark and not slow'

lint: env
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

fuzz: env  ## 100,000 random queries and changes against the reference
	$(PY) tools/fuzz.py --cases 100000

fuzz-spark: java env  ## thousands of random Spark SQL views and changes against recomputation
	$(PY) tools/fuzz_spark.py --cases 3000

scenarios: java env  ## the scenario files on Spark and on the reference, with what was checked where
	$(PY) -m pytest tests/test_scenarios_spark.py -s -m ''

tpch: java env  ## the 22 TPC-H queries as views, through five rounds of changes
	$(PY) tools/tpch.py --scale 0.01 --rounds 5

tpcds: java env  ## how each query of TPC-DS would be kept, and what it is blocked by
	$(PY) tools/tpcds.py

tpcds-run: java env  ## the same queries as views over rows, through rounds of changes
	$(PY) tools/tpcds_run.py

fuzz-closure: env  ## random batches on random graphs against a graph library
	$(PY) tools/fuzz_closure.py

mutate: env  ## breaks each rule in turn: no mutant may survive
	$(PY) tools/mutate.py

bench: java env  ## a refresh against recomputing, by hand, and DuckDB, at TPC-H scale 1
	$(PY) tools/bench.py --scale 1 --rounds 5

bench-large: java env  ## the same at scale 10, ten times the change
	$(PY) tools/bench.py --scale 10 --rounds 3 --orders 1000 --builds 2 --memory 8g

bench-growth: java env  ## the same change at scale 1 and at scale 10
	$(PY) tools/bench_growth.py

bench-choice: java env  ## does the cost model choose well: changes of 0.01 % to 50 %
	$(PY) tools/bench_choice.py --scale 1

bench-graph: java env  ## twenty views in three levels
	$(PY) tools/bench_graph.py --scale 1

bench-tpch: java env  ## the 22 TPC-H queries as views at scale 1: full against refresh
	$(PY) tools/bench_tpch.py --scale 1

bench-constraint: java env  ## a foreign key on 10 million rows: by the change against in full
	$(PY) tools/bench_constraint.py --rows 10000000

bank: java env  ## 2,000 random transfers from 4 processes: no money is made or lost
	$(PY) tools/bank.py --processes 4 --transfers 2000

kills: java env  ## transactions killed at every point and at 100 random moments; about an hour
	VIEWKEEPER_KILLS=100 $(PY) -m pytest tests/test_transaction_crash_spark.py -s -m ''

bench-closure: java env  ## closures: a refresh against computing them again on Spark
	$(PY) tools/bench_closure.py

bench-compile: env  ## how long changes take to compile
	$(PY) tools/bench_compile.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache
