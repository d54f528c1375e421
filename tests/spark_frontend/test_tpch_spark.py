"""Agrees: the 22 queries of TPC-H at scale 0.01, read and written back."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tables import bag, types

from viewkeeper.frontend import read

pytestmark = pytest.mark.slow  # `make tpch` keeps the same queries as views

HERE = Path(__file__).parent.parent / "tpch"
NAMES = ("customer", "lineitem", "nation", "orders", "part", "partsupp", "region", "supplier")


@pytest.fixture(scope="module")
def _tpch(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    program = Path(sys.executable).with_name("tpcgen-cli")
    if not program.exists() and shutil.which("tpcgen-cli") is None:
        pytest.skip("tpcgen-cli is not installed")
    data = tmp_path_factory.mktemp("tpch")
    where = ["-s", "0.01", "--output-dir", str(data)]
    subprocess.run([str(program), "tpch", "parquet", *where], check=True, capture_output=True)
    spark.sql("CREATE DATABASE IF NOT EXISTS tpch")
    spark.sql("USE tpch")
    for name in NAMES:
        rows = spark.read.parquet(str(data / f"{name}.parquet"))
        rows.write.format("delta").mode("overwrite").saveAsTable(name)
    yield
    spark.sql("USE default")


@pytest.mark.parametrize("number", range(1, 23))
def test_tpch_agrees(spark: Any, _tpch: None, number: int) -> None:
    query = (HERE / f"q{number:02}.sql").read_text()
    definition = read(spark, query)
    assert definition.unsupported is None
    assert definition.volatile is None
    again, once = spark.sql(definition.to_sql()), spark.sql(query)
    assert types(again) == types(once)
    assert bag(again) == bag(once)
