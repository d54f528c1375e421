"""A view's query compiled: read by the frontend, pruned, and the way it is stored decided."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import DataType, NullType, StructType

from viewkeeper.algebra.nodes import Empty, Project, Query, Table
from viewkeeper.algebra.scalars import NULL, Col, Opaque, Scalar
from viewkeeper.algebra.simplify.rewrite import simplify
from viewkeeper.algebra.sql import to_sql
from viewkeeper.algebra.walk import postorder, tables
from viewkeeper.errors import UnknownTableError
from viewkeeper.frontend import Definition, read
from viewkeeper.frontend.comparing import as_shown, as_stored, is_stored_otherwise
from viewkeeper.frontend.jvm import orderable
from viewkeeper.plan.bags import COUNT, BagStore
from viewkeeper.plan.groups import GroupStore
from viewkeeper.plan.prune import prune
from viewkeeper.plan.pushdown import push_down
from viewkeeper.plan.rough import in_order, unordered_part
from viewkeeper.plan.shapes import Store, bag_store, store_of
from viewkeeper.plan.stable import unstable_part
from viewkeeper.plan.steps import OWN_NAMES, store_leaf
from viewkeeper.plan.untyped import doubtful
from viewkeeper.records import InvalidQueryError

_MISSING = (
    "TABLE_OR_VIEW_NOT_FOUND",
    "SCHEMA_NOT_FOUND",
    "DELTA_TABLE_NOT_FOUND",
    "PATH_NOT_FOUND",
)


_NOT_STORED = re.compile(r"interval|string collate ")


@dataclass(frozen=True)
class Compiled:
    """What a refresh needs to know of a view's query."""

    definition: Definition
    store: Store
    blocked: str | None  # why the view cannot be kept incrementally
    incomparable: str | None = None  # why it cannot be where rows are deleted

    @property
    def query(self) -> Query:
        return self.store.query

    @property
    def leaves(self) -> dict[str, Table]:
        """The leaves of the query, with the columns it uses, by source name."""
        return {t.name: t for t in tables(self.query)} if self.definition.query else {}

    @property
    def names(self) -> str | None:
        """What tells whether a view or function in the query was redefined; None without any."""
        texts = self.definition.stands_for
        return sha256("\n".join(texts).encode()).hexdigest()[:16] if texts else None

    @property
    def columns(self) -> tuple[tuple[str, str], ...]:
        """The view's columns and their types."""
        return tuple((f.name, f.dataType.simpleString()) for f in self.definition.schema)

    @property
    def steady(self) -> bool:
        """Whether the result stays the same while no source has a new version."""
        found = self.definition
        of_delta = all(ref.provider == "delta" for ref in found.sources.values())
        return found.volatile is None and found.complete and of_delta

    def build(
        self, spark: SparkSession, frame: Callable[[Query], DataFrame], sql: str
    ) -> DataFrame:
        """The rows of the store, from scratch."""
        if self.definition.query is None:
            return spark.sql(sql).selectExpr("*", f"1L AS {COUNT}")
        return frame(self.store.build())

    def reader_sql(self, store: str) -> str:
        """What stands behind the view's name: the query's columns and rows, from the store."""
        leaf = store_leaf(self.store.columns)
        return to_sql(self.store.visible(leaf), tables={leaf: store})


def compile_view(spark: SparkSession, query: str | DataFrame) -> Compiled:
    """Reads a query and decides how the view is stored.

    Raises
    ------
    InvalidQueryError, UnknownTableError
        Spark cannot analyse the query.
    """
    definition = read_definition(spark, query)
    for name in definition.schema.names:
        if OWN_NAMES.fullmatch(name):
            raise InvalidQueryError(
                f"the column {name} has a name that viewkeeper uses for its own columns",
                text=query if isinstance(query, str) else None,
                hint="Give it another name with AS.",
            )
    _check_stored(definition.schema, query)
    kinds = [f.dataType for f in definition.schema.fields]
    blocked = definition.unsupported or definition.volatile
    others = [f.name for f in definition.schema.fields if not _but_for_maps(f.dataType)]
    blocked = blocked or _incomparable(definition.schema, others)  # maps can be grouped
    if definition.query is None:
        names = tuple(definition.schema.names)
        return Compiled(definition, bag_store(Table("#query", names, "")), blocked)
    if not blocked:
        for ref in definition.sources.values():
            if ref.provider != "delta":
                blocked = (
                    f"{ref.sql} is a {ref.provider} table: only Delta tables tell what changed"
                )
    narrow = prune(push_down(_simplified(spark, definition, definition.query)))
    store = store_of(narrow)
    if not isinstance(store, BagStore) and not _can_hold(spark, definition, store):
        store = bag_store(narrow)
    root = store.group if isinstance(store, GroupStore) else None
    unstable = unstable_part(narrow, root) or unordered_part(narrow, root)
    blocked = blocked or definition.unstable or unstable or _taken(narrow)
    blocked = blocked or _untyped(spark, definition, narrow)
    ordered = in_order(narrow, root)
    if ordered is not narrow:
        store = bag_store(ordered) if isinstance(store, BagStore) else store_of(ordered)
    if isinstance(store, BagStore):
        return Compiled(definition, _comparable(store, kinds), blocked)
    incomparable = _incomparable(definition.schema)
    if incomparable and isinstance(store, GroupStore):  # groups are found by their keys alone
        incomparable = _incomparable(_schema(spark, definition, store.build()), store.keys)
    return Compiled(definition, store, blocked, incomparable)


def _but_for_maps(kind: DataType) -> bool:
    """Whether values of a type could be sorted if its maps were arrays."""
    return orderable(kind.simpleString().replace("map<", "array<"))


def _comparable(store: BagStore, kinds: list[DataType]) -> BagStore:
    """The store, with values that Spark can compare in the place of those that it cannot."""
    if not any(map(is_stored_otherwise, kinds)):
        return store
    items = tuple(_written(as_stored, i, kind) for i, kind in enumerate(kinds))
    shown = tuple(_written(as_shown, i, kind) for i, kind in enumerate(kinds))
    return BagStore(Project(store.query, items, store.query.columns), store.names, shown)


def _written(how: Callable[[str, DataType], str], column: int, kind: DataType) -> Scalar:
    """A text over a column, as a scalar."""
    text = how("\0", kind)
    if text == "\0":
        return Col(column)
    pieces = tuple(text.split("\0"))
    return Opaque(pieces, (Col(column),) * (len(pieces) - 1))


def _simplified(spark: SparkSession, definition: Definition, query: Query) -> Query:
    """The simplified query, if its columns have the types of the query's still: a part that has
    been proved empty, or is NULL in every row, has none of its own."""
    found = simplify(query)
    if not any(isinstance(q, Empty) or NULL in getattr(q, "items", ()) for q in postorder(found)):
        return found
    kinds = [f.dataType for f in _schema(spark, definition, found).fields]
    same = kinds == [f.dataType for f in definition.schema.fields]
    return found if same and not _untyped(spark, definition, found) else query


def _untyped(spark: SparkSession, definition: Definition, query: Query) -> str | None:
    """A sentence that names a column by which Spark could not join, or None."""
    for part in doubtful(query):
        for field in _schema(spark, definition, part).fields:
            if isinstance(field.dataType, NullType):
                return (
                    f"the column {field.name} is NULL and has no type, and rows are compared by it;"
                    " write CAST(NULL AS …)"
                )
    return None


def _schema(spark: SparkSession, definition: Definition, query: Query) -> StructType:
    """The columns of a query over the sources of a definition, by Spark."""
    refs = definition.sources
    names: dict[Query, str] = {t: refs[t.name].stand_in or refs[t.name].sql for t in tables(query)}
    return spark.sql(to_sql(query, tables=names)).schema


def _check_stored(schema: StructType, query: str | DataFrame) -> None:
    """Raises where a Delta table cannot hold a column."""
    for field in schema.fields:
        kind = field.dataType.simpleString()
        if _NOT_STORED.search(kind):
            raise InvalidQueryError(
                f"the column {field.name} is of type {kind}, which a Delta table cannot hold",
                text=query if isinstance(query, str) else None,
                hint="Cast it, for example to STRING, or take it out of the query.",
            )


def _can_hold(spark: SparkSession, definition: Definition, store: Store) -> bool:
    """Whether a Delta table can hold all columns as they are, and find rows by them."""
    kinds = [f.dataType.simpleString() for f in _schema(spark, definition, store.build()).fields]
    return not any(_NOT_STORED.search(kind) or "void" in kind for kind in kinds)


def _taken(query: Query) -> str | None:
    """A sentence that names a column of a source that a change could not have, or None."""
    for leaf in tables(query):
        if any(name.lower() == "__weight" for name in leaf.names):
            return f"{leaf.name} has a column __weight, a name that changes have for their own"
    return None


def _incomparable(schema: StructType, columns: Collection[str] | None = None) -> str | None:
    """A sentence that names a column whose values Spark cannot compare, or None."""
    for field in schema.fields:
        kind = field.dataType.simpleString()
        if (columns is None or field.name in columns) and not orderable(kind):
            return f"the column {field.name} is of type {kind}, and Spark compares no such values"
    return None


def read_definition(spark: SparkSession, query: str | DataFrame) -> Definition:
    """The frontend's answer, with Spark's complaints turned into ours."""
    try:
        return read(spark, query)
    except (AnalysisException, ParseException) as e:
        what = _first_line(e)
        text = query if isinstance(query, str) else None
        if any(mark in (e.getCondition() or "") for mark in _MISSING):
            raise UnknownTableError(
                what, text=text, hint="Check the name, the schema and the catalog."
            ) from e
        raise InvalidQueryError(what, text=text, hint="Try the query with spark.sql first.") from e


def _first_line(e: Any) -> str:
    lines = [line for line in str(e).splitlines() if line.strip()]
    return lines[0].strip() if lines else type(e).__name__
