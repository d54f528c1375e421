"""What ``Keeper.sql`` answers to statements about materialized views, as rows."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession

from viewkeeper.records import RefreshReport, View

_REPORT = {
    "view": "STRING",
    "strategy": "STRING",
    "inserted": "BIGINT",
    "deleted": "BIGINT",
    "seconds": "DOUBLE",
    "reason": "STRING",
}


def of_reports(spark: SparkSession, reports: Sequence[RefreshReport]) -> DataFrame:
    """A row for each refresh: CREATE, REFRESH.

    >>> of_reports(spark, keeper.refresh()).show()                        # doctest: +SKIP
    """
    told = [r.as_dict() for r in reports]
    rows = [tuple(r[name] for name in _REPORT) for r in told]
    return spark.createDataFrame(rows, ", ".join(f"{n} {t}" for n, t in _REPORT.items()))


def of_views(spark: SparkSession, views: Sequence[View]) -> DataFrame:
    """A row for each view: SHOW.

    >>> of_views(spark, keeper.views()).show()                            # doctest: +SKIP
    """
    rows = [(str(v), v.refresh, v.sql) for v in views]
    return spark.createDataFrame(rows, "view STRING, refresh STRING, sql STRING")


def of_plan(spark: SparkSession, explained: object) -> DataFrame:
    """One row with the whole text: EXPLAIN.

    >>> of_plan(spark, keeper.explain("v")).show()                        # doctest: +SKIP
    """
    return spark.createDataFrame([(str(explained),)], "plan STRING")


def of_drop(spark: SparkSession) -> DataFrame:
    """No rows: DROP.

    >>> of_drop(spark).show()                                             # doctest: +SKIP
    """
    return spark.createDataFrame([], "view STRING")
