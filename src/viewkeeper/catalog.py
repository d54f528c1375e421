"""Delta tables put into a session's own catalog, without a look at their logs.

``CREATE TABLE … LOCATION`` reads the log of each table and runs jobs for it, at each connect. What
the catalog then holds of a Delta table is no more than its name and its folder.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from viewkeeper.lake.sources import quoted


def register(spark: Any, schema: str, table: str, folder: Path) -> None:
    """Puts a Delta table into the catalog, as one that owns its folder: DROP TABLE deletes it.

    Examples
    --------
    >>> register(spark, "default", "t", Path("/lake/t"))                  # doctest: +SKIP
    """
    try:
        entry = _entry(spark, schema, table, folder)
    except (Py4JError, TypeError):  # another Spark than we know, with other fields
        place = str(folder).replace("\\", "\\\\").replace("'", "\\'")
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {quoted(schema)}.{quoted(table)}"
            f" USING delta LOCATION '{place}'"
        )
        set_kind(spark, schema, table, "MANAGED")
        return
    _external(spark).createTable(entry, True)


def set_kind(spark: Any, schema: str, table: str, kind: str) -> None:
    """Says whether the catalog owns a table's folder: it deletes those of MANAGED tables.

    Examples
    --------
    >>> set_kind(spark, "default", "t", "EXTERNAL")                       # doctest: +SKIP
    """
    found = _external(spark).getTable(schema, table)
    parts = [found.productElement(i) for i in range(found.productArity())]
    kinds = spark._jvm.org.apache.spark.sql.catalyst.catalog.CatalogTableType
    parts[1] = getattr(kinds, kind)()
    _external(spark).alterTable(found.copy(*parts))


def _external(spark: Any) -> Any:
    return spark._jsparkSession.sessionState().catalog().externalCatalog()


def _entry(spark: Any, schema: str, table: str, folder: Path) -> Any:
    """The entry that CREATE TABLE would make: Delta keeps columns and all else in the log."""
    jvm, some = spark._jvm, spark._jvm.scala.Some
    catalyst = jvm.org.apache.spark.sql.catalyst
    catalog = catalyst.catalog
    name = catalyst.TableIdentifier(table, some(schema), some("spark_catalog"))
    storage = catalog.CatalogStorageFormat.empty()
    places = [storage.productElement(i) for i in range(storage.productArity())]
    places[0] = some(jvm.java.net.URI("file", None, str(folder), None))
    columns = jvm.org.apache.spark.sql.types.StructType()
    parts = [name, catalog.CatalogTableType.MANAGED(), storage.copy(*places), columns]
    return new_entry(spark, [*parts, some("delta")])


def new_entry(spark: Any, parts: list[Any]) -> Any:
    """An entry of the catalog from the first of its fields; the others have their defaults.

    >>> new_entry(spark, [name, kind, storage, columns])                  # doctest: +SKIP
    """
    entry, fields = spark._jvm.org.apache.spark.sql.catalyst.catalog.CatalogTable, list(parts)
    with suppress(Py4JError):  # there is no such default any more: all fields are there
        while True:
            fields.append(getattr(entry, f"apply$default${len(fields) + 1}")())
    return entry(*fields)
