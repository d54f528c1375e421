"""Names of views: one to three parts, read as Spark reads them."""

from __future__ import annotations

from pyspark.sql import SparkSession

from viewkeeper.lake.sources import quoted
from viewkeeper.records import InvalidOptionError


def current(spark: SparkSession) -> tuple[str, str]:
    """The session's current catalog and schema.

    >>> current(spark)                                                    # doctest: +SKIP
    ('spark_catalog', 'default')
    """
    return spark.catalog.currentCatalog(), spark.catalog.currentDatabase()


def full_name(spark: SparkSession, name: str) -> str:
    """A name in full, each part in lower case and in backquotes.

    Raises
    ------
    InvalidOptionError
        When it is not a name of one to three parts.

    >>> full_name(spark, "Totals")                                        # doctest: +SKIP
    '`spark_catalog`.`default`.`totals`'
    """
    full = full_name_or_none(spark, name)
    if full is None:
        raise InvalidOptionError(
            f"{name!r} is not a name", hint="Use one, two or three parts: catalog.schema.view."
        )
    return full


def full_name_or_none(spark: SparkSession, name: str) -> str | None:
    """The same; None for a text that is not a name.

    >>> full_name_or_none(spark, "SELECT 1") is None                      # doctest: +SKIP
    True
    """
    try:
        parser = spark._jsparkSession.sessionState().sqlParser()
        parts = parser.parseMultipartIdentifier(name)
    except Exception:
        return None
    given = [parts.apply(i) for i in range(parts.size())]
    if not 1 <= len(given) <= 3:
        return None
    return ".".join(quoted(p.lower()) for p in completed(given, *current(spark)))


def completed(given: list[str], catalog: str, schema: str) -> list[str]:
    """One to three parts of a name, with the parts that are missing in front.

    >>> completed(["v"], "c", "s"), completed(["t", "v"], "c", "s")
    (['c', 's', 'v'], ['c', 't', 'v'])
    """
    return [catalog, schema][: 3 - len(given)] + given
