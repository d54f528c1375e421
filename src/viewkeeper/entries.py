"""What the catalog of a folder lake holds besides its Delta tables: plain views, SQL functions, and
tables of other formats or in other places. Each is a file, so other processes find it.
"""

from __future__ import annotations

import contextlib
import json
import os
import time as clock
import urllib.parse
import uuid
import warnings
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from viewkeeper.catalog import copied, delta_folder, new_entry, set_kind
from viewkeeper.frontend.jvm import OURS
from viewkeeper.lake import jvm
from viewkeeper.lake.sources import quoted

_FOLDER = "_catalog"
_TABLE, _FUNCTION = "table", "function"
_UNREAD = (ValueError, KeyError, TypeError, AttributeError)  # of what is no entry
_TICK = 2_000_000_000  # nanoseconds: no file system's clock is coarser
Key = tuple[str, str, str]  # kind, schema, name
Mark = tuple[int, int]  # a file's time, and its number: each write makes a new file


class Entries:
    """The entries that a session and the folder have in common, as they were last seen.

    Parameters
    ----------
    spark : SparkSession
    lake : Path
        The folder of the lake.
    """

    def __init__(self, spark: Any, lake: Path) -> None:
        self.spark = spark
        self.lake = lake
        self._here: dict[Key, str] = {}  # as the session tells it
        self._there: dict[Key, Mark] = {}  # which file it was
        self._seen = 0  # the folder's time

    def keep(self) -> None:
        """Writes what is new in the session, and takes out what was dropped there."""
        now = self._found()
        for key, text in now.items():
            if self._here.get(key) != text:
                self._write(key, text)
        for key in self._here.keys() - now.keys():
            self._path(key).unlink(missing_ok=True)
            self._there.pop(key, None)
        self._here = now

    def keep_at_end(self) -> None:
        """The same when a process ends, where Spark may have ended already."""
        with contextlib.suppress(Py4JError, PySparkException, OSError):
            self.keep()

    def load(self) -> None:
        """Brings the session up to what other processes wrote."""
        folder = self.lake / _FOLDER
        try:
            time = folder.stat().st_mtime_ns
        except OSError:
            return
        if time == self._seen:
            return
        files = {key: path for path in folder.iterdir() if (key := _key(path)) is not None}
        for key, path in sorted(files.items()):
            with contextlib.suppress(FileNotFoundError):  # dropped just now
                mark = _mark(path)
                if self._there.get(key) != mark:
                    self._there[key] = mark
                    self._put_if_read(key, path.read_text(encoding="utf-8"))
        for key in self._there.keys() - files.keys():
            self._drop(key)
            del self._there[key]
            self._here.pop(key, None)
        # a folder may change again within one tick of its clock
        self._seen = time if clock.time_ns() - time > _TICK else 0

    # ── files ──

    def _path(self, key: Key) -> Path:
        name = ".".join(urllib.parse.quote(part, safe="").replace(".", "%2E") for part in key[1:])
        return self.lake / _FOLDER / f"{name}.{key[0]}"

    def _write(self, key: Key, text: str) -> None:
        path = self._path(key)
        path.parent.mkdir(exist_ok=True)
        half = path.parent / f".{uuid.uuid4().hex}"
        half.write_text(text, encoding="utf-8")
        os.replace(half, path)
        self._there[key] = _mark(path)

    # ── the session ──

    @property
    def _catalog(self) -> Any:
        return self.spark._jsparkSession.sessionState().catalog()

    def _found(self) -> dict[Key, str]:
        """What the session's catalog holds, without what is kept elsewhere."""
        catalog = self._catalog.externalCatalog()
        found: dict[Key, str] = {}
        for schema in _list(catalog.listDatabases()):
            for name in _list(catalog.listTables(schema)):
                entry = catalog.getTable(schema, name)
                if not self._is_elsewhere(entry):
                    found[_TABLE, schema, name] = self._table_text(entry)
            for name in _list(catalog.listFunctions(schema, "*")):
                function = catalog.getFunction(schema, name)
                found[_FUNCTION, schema, name] = _function_text(function)
        return found

    def _is_elsewhere(self, entry: Any) -> bool:
        """Whether an entry is a Delta table of the folder, or the name of one of our own views."""
        if entry.properties().contains(OURS) or entry.bucketSpec().isDefined():
            return True
        folder = delta_folder(entry)
        return folder is not None and self.lake in folder.parents

    def _table_text(self, entry: Any) -> str:
        place = entry.storage().locationUri()
        told = {
            "type": entry.tableType().name(),
            "location": str(place.get().toString()) if place.isDefined() else None,
            "options": self._dict(entry.storage().properties()),
            "schema": json.loads(entry.schema().json()),
            "provider": _value(entry.provider()),
            "partitions": _list(entry.partitionColumnNames()),
            "created": entry.createTime(),
            "version": entry.createVersion(),
            "properties": self._dict(entry.properties()),
            "comment": _value(entry.comment()),
            "text": _value(entry.viewText()),
            "original": _value(entry.viewOriginalText()),
        }
        return json.dumps(told, sort_keys=True)

    def _dict(self, held: Any) -> dict[str, str]:
        """A Scala map, in one call."""
        java = self.spark._jvm
        mapper = java.com.fasterxml.jackson.databind.ObjectMapper()
        given = java.scala.jdk.javaapi.CollectionConverters.asJava(held)
        found: dict[str, str] = json.loads(mapper.writeValueAsString(given))
        return found

    def _put_if_read(self, key: Key, text: str) -> None:
        try:
            self._put(key, text)
        except (
            ValueError,
            KeyError,
            TypeError,
            AttributeError,
            Py4JError,
            PySparkException,
        ) as error:
            name = ".".join(key[1:])
            said = f"{self._path(key)}, which tells of the {key[0]} {name}, cannot be read: {error}"
            warnings.warn(said, RuntimeWarning, stacklevel=2)

    def _put(self, key: Key, text: str) -> None:
        """An entry that another process made or changed."""
        kind, schema, name = key
        told = json.loads(text)
        catalog = self._catalog.externalCatalog()
        if not catalog.databaseExists(schema):
            self.spark.sql(f"CREATE SCHEMA IF NOT EXISTS {quoted(schema)}")
        if kind == _FUNCTION:
            function = self._function(schema, name, told)
            if catalog.functionExists(schema, name):
                catalog.alterFunction(schema, function)
                self._forget_function(function)
            else:
                catalog.createFunction(schema, function)
            self._here[key] = _function_text(catalog.getFunction(schema, name))
            return
        entry = self._table(schema, name, told)
        if catalog.tableExists(schema, name):
            catalog.alterTable(entry)
        else:
            catalog.createTable(entry, True)
        self._catalog.refreshTable(entry.identifier())
        self._here[key] = self._table_text(catalog.getTable(schema, name))

    def _drop(self, key: Key) -> None:
        """An entry that another process dropped, which saw to its files."""
        kind, schema, name = key
        catalog = self._catalog.externalCatalog()
        if kind == _FUNCTION:
            if catalog.functionExists(schema, name):
                self._forget_function(catalog.getFunction(schema, name))
                catalog.dropFunction(schema, name)
        elif catalog.tableExists(schema, name):
            entry = catalog.getTable(schema, name)
            if entry.tableType().name() == "MANAGED":
                set_kind(self.spark, schema, name, "EXTERNAL")
            catalog.dropTable(schema, name, True, False)
            self._catalog.refreshTable(entry.identifier())

    def _forget_function(self, function: Any) -> None:
        with contextlib.suppress(Py4JError):  # not used yet
            self._catalog.unregisterFunction(function.identifier())

    def _table(self, schema: str, name: str, told: dict[str, Any]) -> Any:
        """The entry that a text tells of; what it leaves out is as in any other entry."""
        spark, java = self.spark, self.spark._jvm
        catalyst = java.org.apache.spark.sql.catalyst
        some, catalog = java.scala.Some, catalyst.catalog
        maps = java.org.apache.spark.api.python.PythonUtils

        def option(value: Any) -> Any:
            return jvm.none(spark) if value is None else some(value)

        storage = catalog.CatalogStorageFormat.empty()
        place = None if told["location"] is None else java.java.net.URI(told["location"])
        types = catalog.CatalogTableType
        parts = [
            catalyst.TableIdentifier(name, some(schema), some("spark_catalog")),
            getattr(types, told["type"])(),
            copied(storage, locationUri=option(place), properties=maps.toScalaMap(told["options"])),
            java.org.apache.spark.sql.types.DataType.fromJson(json.dumps(told["schema"])),
        ]
        return copied(
            new_entry(spark, parts),
            provider=option(told["provider"]),
            partitionColumnNames=jvm.seq(spark, told["partitions"]),
            createTime=told["created"],
            createVersion=told["version"],
            properties=maps.toScalaMap(told["properties"]),
            comment=option(told["comment"]),
            viewText=option(told["text"]),
            viewOriginalText=option(told["original"]),
            tracksPartitionsInCatalog=False,  # they are found in the folders
        )

    def _function(self, schema: str, name: str, told: dict[str, Any]) -> Any:
        catalyst = self.spark._jvm.org.apache.spark.sql.catalyst
        catalog, some = catalyst.catalog, self.spark._jvm.scala.Some
        kinds = catalog.FunctionResourceType
        resources = [
            catalog.FunctionResource(kinds.fromString(kind), uri) for kind, uri in told["resources"]
        ]
        identifier = catalyst.FunctionIdentifier(name, some(schema), some("spark_catalog"))
        return catalog.CatalogFunction(identifier, told["class"], jvm.seq(self.spark, resources))


def _function_text(function: Any) -> str:
    resources = _list(function.resources())
    told = {
        "class": function.className(),
        "resources": [[r.resourceType().resourceType(), r.uri()] for r in resources],
    }
    return json.dumps(told, sort_keys=True)


def _key(path: Path) -> Key | None:
    """What a file is about; None for one that is being written.

    >>> _key(Path("lake/_catalog/default.a%2Eb.table"))
    ('table', 'default', 'a.b')
    """
    parts = path.name.split(".")
    if len(parts) != 3 or not all(parts):
        return None
    schema, name = map(urllib.parse.unquote, parts[:2])
    return parts[2], schema, name


def _mark(path: Path) -> Mark:
    found = path.stat()
    return found.st_mtime_ns, found.st_ino


def _list(items: Any) -> list[Any]:
    return [items.apply(i) for i in range(items.size())]


def _value(option: Any) -> str | None:
    return str(option.get()) if option.isDefined() else None
