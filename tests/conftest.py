"""The Spark session that all tests with the mark ``spark`` share."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

# short runs on few cores: one thread for garbage, and code compiled quickly rather than well. Such
# a JVM has 48 MB for compiled code unless told otherwise, and then throws away what it needs again.
QUICK_JVM = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A local session with Delta Lake; its warehouse is a folder of this run."""
    home = tmp_path_factory.mktemp("spark")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pyspark's own, while its modules load
        from pyspark.sql import SparkSession

        from viewkeeper.jars import delta_session

        catalog = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        builder = (
            SparkSession.builder.master("local[2]")
            .appName("viewkeeper-tests")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
            .config("spark.sql.catalog.spark_catalog", catalog)
            .config("spark.sql.warehouse.dir", str(home / "warehouse"))
            .config("spark.driver.extraJavaOptions", f"-Dderby.system.home={home} {QUICK_JVM}")
            # tiny data: compiling and adapting plans would cost more than running them
            .config("spark.sql.shuffle.partitions", "1")
            .config("spark.sql.adaptive.enabled", "false")
            .config("spark.sql.codegen.wholeStage", "false")
            .config("spark.databricks.delta.snapshotPartitions", "1")
        )
        session = delta_session(builder)
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Each test that uses the session is marked ``spark``."""
    if "spark" in getattr(item, "fixturenames", ()):
        item.add_marker(pytest.mark.spark)
