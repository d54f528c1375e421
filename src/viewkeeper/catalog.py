"""Delta tables put into a session's own catalog, without a look at their logs.

``CREATE TABLE … LOCATION`` reads the log of each table and runs jobs for it, at each connect. What
the catalog then holds of a Delta table is no more than its name and its folder.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError

from viewkeeper.algebra.texts import constant_text
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
        spark.sql(
            f"CREATE TABLE IF NOT EXISTS {quoted(schema)}.{quoted(table)}"
            f" USING delta LOCATION {constant_text(str(folder))}"
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
    kinds = spark._jvm.org.apache.spark.sql.catalyst.catalog.CatalogTableType
    _external(spark).alterTable(copied(found, tableType=getattr(kinds, kind)()))


def delta_folder(entry: Any) -> Path | None:
    """The folder of a Delta table; None for all else in the catalog.

    >>> delta_folder(catalog.getTable("default", "t"))                    # doctest: +SKIP
    PosixPath('/lake/t')
    """
    place, kind = entry.storage().locationUri(), entry.provider()
    delta = kind.isDefined() and str(kind.get()).lower() == "delta"
    return Path(place.get().getPath()) if delta and place.isDefined() else None


def copied(record: Any, **changed: Any) -> Any:
    """A Scala record with some fields changed.

    >>> copied(entry, comment=none)                                       # doctest: +SKIP
    """
    names = record.productElementNames().toSeq()
    parts = [record.productElement(i) for i in range(names.size())]
    for i in range(len(parts)):
        parts[i] = changed.get(names.apply(i), parts[i])
    return record.copy(*parts)


def _external(spark: Any) -> Any:
    return spark._jsparkSession.sessionState().catalog().externalCatalog()


def _entry(spark: Any, schema: str, table: str, folder: Path) -> Any:
    """The entry that CREATE TABLE would make: Delta keeps columns and all else in the log."""
    jvm, some = spark._jvm, spark._jvm.scala.Some
    catalyst = jvm.org.apache.spark.sql.catalyst
    catalog = catalyst.catalog
    name = catalyst.TableIdentifier(table, some(schema), some("spark_catalog"))
    place = some(jvm.java.net.URI("file", None, str(folder), None))
    storage = copied(catalog.CatalogStorageFormat.empty(), locationUri=place)
    columns = jvm.org.apache.spark.sql.types.StructType()
    parts = [name, catalog.CatalogTableType.MANAGED(), storage, columns]
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
