"""The leaves of a plan: stored tables, given rows, ranges."""

from __future__ import annotations

import datetime
import json
import re
from typing import Any

from viewkeeper.algebra.nodes import Empty, Literal, Plus, Project, Query, Table, Unnest
from viewkeeper.algebra.scalars import NULL, Col, Opaque, Scalar
from viewkeeper.algebra.scope import Column
from viewkeeper.frontend.definition import SourceRef
from viewkeeper.frontend.frames import Frame
from viewkeeper.frontend.jvm import Jvm, Unsupported, expr_id, items, option

# One row, for SELECT without FROM.
ONE_ROW = Literal(("one",), ((1,),))
STAND_IN = "__vk_stand_in"  # in the metadata of an empty relation that stands for a table
_FILES = "org.apache.spark.sql.execution.datasources.HadoopFsRelation"
_LONG_RANGE = 100
_MOST_GIVEN = 1000
_GIVEN = {"ParallelCollectionRDD", "PythonRDD", "MapPartitionsRDD"}  # what createDataFrame makes
_EPOCH = datetime.datetime(1970, 1, 1)


def relation(plan: Any, kind: str, sources: dict[str, SourceRef], jvm: Jvm) -> Frame:
    """A table as a leaf that has all its columns."""
    match kind:
        case "LogicalRelation":
            source = _file_source(plan, jvm)
        case "HiveTableRelation":
            source = SourceRef(_table_parts(plan.tableMeta()), "hive")
        case _:
            source = _v2_source(plan)
    attributes = items(plan.output())
    hidden = [str(a.name()) for a in attributes if _is_hidden(a)]
    if hidden:
        raise Unsupported(
            f"The hidden column {hidden[0]} of {source.name} tells how rows are stored, which"
            " changes without the rows changing."
        )
    sources[source.name] = source
    names = tuple(str(a.name()) for a in attributes)
    query: Query = Table(source.name, names)
    if "void" in str(plan.schema().simpleString()):
        kinds = [str(a.dataType().simpleString()) for a in attributes]
        items_ = tuple(NULL if kind == "void" else Col(i) for i, kind in enumerate(kinds))
        query = Project(query, items_, names)
    return Frame(query, tuple(expr_id(a) for a in attributes))


def _is_hidden(attribute: Any) -> bool:
    metadata = attribute.metadata()
    return bool(metadata.contains("__metadata_col"))


def _table_parts(table: Any) -> tuple[str, ...]:
    identifier = table.identifier()
    database = option(identifier.database()) or "default"
    catalog = option(identifier.catalog()) or "spark_catalog"
    return (str(catalog), str(database), str(identifier.table()))


def _file_source(plan: Any, jvm: Jvm) -> SourceRef:
    inner = plan.relation()
    simple = str(inner.getClass().getName()).rsplit(".", 1)[-1]
    if "CDF" in simple or "CDC" in simple:
        raise Unsupported("A change feed (table_changes) as a source has no translation.")
    table = option(plan.catalogTable())
    location = inner.location() if jvm.is_a(inner, _FILES) else None
    index = "" if location is None else str(location.getClass().getSimpleName())
    name = ".".join(_table_parts(table)) if table is not None else _only_path(location, simple)
    if index.startswith("Tahoe"):
        if index != "TahoeLogFileIndex" or plan.relation().location().isTimeTravelQuery():
            raise Unsupported(
                f"The view reads a fixed version of {name} (VERSION or TIMESTAMP AS OF), which"
                " never changes; read the table itself, or copy that version into a table."
            )
        if table is None:
            return SourceRef((), "delta", name)
        return SourceRef(_table_parts(table), "delta")
    if table is not None:
        return SourceRef(_table_parts(table), str(option(table.provider()) or "hive"))
    provider = str(inner.fileFormat().toString()).lower()
    if provider not in ("parquet", "orc"):
        raise Unsupported(
            f"Files of {name} are read with options that SQL text cannot hold; create a table over"
            " them and read that."
        )
    return SourceRef((), provider, name)


def _only_path(location: Any, simple: str) -> str:
    paths = [] if location is None else items(location.rootPaths())
    if len(paths) != 1:
        raise Unsupported(
            f"The source {simple} has no name that SQL text could give; create a table over it."
        )
    return str(paths[0].toString())


def _v2_source(plan: Any) -> SourceRef:
    catalog, identifier = option(plan.catalog()), option(plan.identifier())
    table = plan.table()
    if catalog is None or identifier is None:
        raise Unsupported(f"The source {table.name()} has no name in a catalog.")
    parts = (str(catalog.name()), *(str(p) for p in identifier.namespace()), identifier.name())
    provider = table.properties().get("provider") or str(catalog.getClass().getSimpleName())
    return SourceRef(tuple(str(p) for p in parts), str(provider))


def numbers(plan: Any) -> Frame:
    """A range: its numbers as rows, or as an unnested sequence where it is long."""
    start, end, step = int(plan.start()), int(plan.end()), int(plan.step())
    values = range(start, end, step)
    attribute = items(plan.output())[0]
    name, ids = str(attribute.name()), (expr_id(attribute),)
    if not values:
        return Frame(Project(Empty((Column(name),)), (_cast(0, "BIGINT"),), (name,)), ids)
    if len(values) > _LONG_RANGE:
        text = f"explode(sequence({start}L, {values[-1]}L, {step}L))"
        query: Query = Unnest(ONE_ROW, Opaque((text,), ()), (name,), False)
        return Frame(query, (-1, *ids))
    rows = Literal((name,), tuple((v,) for v in values))
    return Frame(Project(rows, (_cast(0, "BIGINT"),), (name,)), ids)


def stand_in(attributes: list[Any], sources: dict[str, SourceRef]) -> Frame | None:
    """The table that an empty relation stands for; None if it stands for itself."""
    if not attributes or not attributes[0].metadata().contains(STAND_IN):
        return None
    said = json.loads(str(attributes[0].metadata().json()))
    source = SourceRef(tuple(said["parts"]), "delta", said["path"] or None, said[STAND_IN])
    sources[source.name] = source
    names = tuple(str(a.name()) for a in attributes)
    return Frame(Table(source.name, names), tuple(expr_id(a) for a in attributes))


def rows(plan: Any, jvm: Jvm, sources: dict[str, SourceRef]) -> Frame:
    """Given rows: plain values under a cast to their exact types, or one SELECT for each row."""
    attributes = items(plan.output())
    table = stand_in(attributes, sources)
    if table is not None:
        return table
    return _given(attributes, items(plan.data()), jvm)


def session_rows(plan: Any, jvm: Jvm) -> Frame:
    """The few rows that a user made a DataFrame of, which become part of the query."""
    lineage = set(re.findall(r"(\w+)\[\d+\]", str(plan.rdd().toDebugString())))
    if not lineage <= _GIVEN:
        raise Unsupported(
            "Rows that only this session holds, and that it computed from other rows (an RDD, a"
            " checkpoint), have no translation; save them as a table."
        )
    frame = jvm.named("org.apache.spark.sql.classic.Dataset").ofRows(jvm.spark._jsparkSession, plan)
    data = list(frame.limit(_MOST_GIVEN + 1).collect())
    if len(data) > _MOST_GIVEN:
        raise Unsupported(
            f"A DataFrame of more than {_MOST_GIVEN} rows (createDataFrame) cannot be part of a"
            " view; save it as a table."
        )
    converters = jvm.object("org.apache.spark.sql.catalyst.CatalystTypeConverters")
    convert = converters.createToCatalystConverter(plan.schema())
    return _given(items(plan.output()), [convert.apply(row) for row in data], jvm)


def _given(attributes: list[Any], data: list[Any], jvm: Jvm) -> Frame:
    names = tuple(str(a.name()) for a in attributes)
    ids = tuple(expr_id(a) for a in attributes)
    types = [a.dataType() for a in attributes]
    kinds = [str(t.catalogString()) for t in types]
    if not data:
        nothing: Query = Empty(tuple(Column(n) for n in names))
        casts = tuple(_cast(i, str(t.sql())) for i, t in enumerate(types))
        return Frame(Project(nothing, casts, names), ids)
    if not all(_is_plain(k) for k in kinds):
        return Frame(_selected(data, types, names, jvm), ids)
    values = tuple(
        tuple(_plain(row.get(i, t), k) for i, (t, k) in enumerate(zip(types, kinds, strict=True)))
        for row in data
    )
    items_ = tuple(
        Col(i)
        if k in ("int", "string", "boolean") and any(v[i] is not None for v in values)
        else _cast(i, str(t.sql()))
        for i, (t, k) in enumerate(zip(types, kinds, strict=True))
    )
    return Frame(Project(Literal(names, values), items_, names), ids)


def _selected(data: list[Any], types: list[Any], names: tuple[str, ...], jvm: Jvm) -> Query:
    literal = jvm.named("org.apache.spark.sql.catalyst.expressions.Literal")
    found: Query | None = None
    for row in data:
        texts = [_literal_text(literal(row.get(i, t), t), t) for i, t in enumerate(types)]
        one = Project(ONE_ROW, tuple(Opaque((t,), ()) for t in texts), names)
        found = one if found is None else Plus(found, one)
    assert found is not None
    return found


def _literal_text(literal: Any, type_: Any) -> str:
    """A value as text; a decimal's has only the digits that the value needs."""
    text, kind = str(literal.sql()), str(type_.sql())
    return f"CAST({text} AS {kind})" if "DECIMAL" in kind else text


def _is_plain(kind: str) -> bool:
    return kind in (
        "tinyint",
        "smallint",
        "int",
        "bigint",
        "float",
        "double",
        "boolean",
        "string",
        "date",
    ) or kind.startswith("decimal")


def _plain(value: Any, kind: str) -> Any:
    if value is None or kind in ("tinyint", "smallint", "int", "bigint", "boolean"):
        return value
    if kind == "date":
        return str((_EPOCH + datetime.timedelta(days=int(value))).date())
    if kind in ("float", "double"):
        return repr(float(value))
    return str(value.toString())


def _cast(index: int, type_: str) -> Scalar:
    return Opaque(("CAST(", f" AS {type_})"), (Col(index),))
