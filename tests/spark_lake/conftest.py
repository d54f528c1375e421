"""A session for the tests of the lake: their queries are small, so compiling them does not pay."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

QUICK = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.autoBroadcastJoinThreshold": "10mb",
}


@pytest.fixture(scope="session")
def lake_spark(spark: Any) -> Any:
    """A session of its own on the shared one: same tables, other settings."""
    session = spark.newSession()
    for key, value in QUICK.items():
        session.conf.set(key, value)
    return session


@pytest.fixture
def table(lake_spark: Any) -> Iterator[str]:
    """The name of a table that is gone after the test."""
    name = "lake_table"
    lake_spark.sql(f"DROP TABLE IF EXISTS {name}")
    yield name
    lake_spark.sql(f"DROP TABLE IF EXISTS {name}")
