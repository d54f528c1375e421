"""The tables that transactions write: what is allowed there, and what the table itself demands."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import Row, SparkSession
from pyspark.sql.types import StructField

from viewkeeper.engine.overlay import COME, COPIES, GONE, Overlay, writable
from viewkeeper.engine.vector import Pin
from viewkeeper.errors import UnknownColumnError, suggestion
from viewkeeper.lake.arrow import WEIGHT, arrow_schema, repeated
from viewkeeper.lake.lanes import OP
from viewkeeper.lake.nested import as_arrow, local_frame, loosened, type_sql
from viewkeeper.lake.sources import GENERATED, IDENTITY, quoted
from viewkeeper.transactions.errors import RowError, UnsupportedTableError

_TEXT = "__CHAR_VARCHAR_TYPE_STRING"
_DEFAULT = "CURRENT_DEFAULT"
_RESERVED = {GONE, COME, COPIES, OP, WEIGHT, "__n", "__less"}


@dataclass(frozen=True)
class Target:
    """A table that is to be changed."""

    name: str  # as the user gave it
    pin: Pin
    fields: tuple[StructField, ...]

    @property
    def columns(self) -> list[str]:
        return [f.name for f in self.fields]

    def field(self, name: str) -> StructField:
        """A column, without regard to case, as in Spark."""
        for f in self.fields:
            if f.name.lower() == name.lower():
                return f
        raise UnknownColumnError(
            f"{self.name} has no column {name!r}", hint=suggestion(name, self.columns)
        )

    def default(self, field: StructField) -> str:
        """What a column gets that a statement does not name, as SQL."""
        return str(field.metadata.get(_DEFAULT) or "NULL")

    def value(self, text: str, field: StructField) -> str:
        """What a statement sets a column to, as SQL; DEFAULT is a word, not an expression."""
        return self.default(field) if is_default(text) else text

    @property
    def generated(self) -> dict[str, str]:
        """The columns that are computed from others, with their expressions in SQL."""
        return generated(self.fields)

    def computed(self, given: Collection[str]) -> dict[str, str]:
        """Those of them that are not among the columns that a statement gives."""
        return {n: cast(e, self.field(n)) for n, e in self.generated.items() if n not in given}


def is_default(text: str) -> bool:
    """Whether a statement sets a column to its default."""
    return text.strip().upper() == "DEFAULT"


def generated(fields: Iterable[StructField]) -> dict[str, str]:
    """The columns that a table computes from others, with their expressions in SQL."""
    return {f.name: str(f.metadata[GENERATED]) for f in fields if GENERATED in f.metadata}


def target(name: str, pin: Pin, *, own: bool = False) -> Target:
    """A table, if a transaction may change it; viewkeeper's ``own`` it may not."""
    fields = tuple(pin.columns)
    if own:
        raise _refused(name, "it belongs to viewkeeper", "Change the tables that the view reads.")
    for f in fields:
        kind = f.metadata
        if f.name.lower() in _RESERVED:
            raise _refused(name, f"its column {f.name} has a name that viewkeeper uses itself")
        if "`" in f.name:  # Delta's MERGE with a change feed fails, when it is in the journal
            raise _refused(name, f"its column {f.name} has a backquote in its name")
        if any(k.startswith(IDENTITY) for k in kind):
            raise _refused(name, f"its column {f.name} is an identity column")
        text = str(kind.get(_TEXT, ""))
        if "char" in text and not text.startswith("varchar("):
            raise _refused(name, f"its column {f.name} is of type {text}")
        if f.dataType != loosened(f.dataType):
            raise _refused(name, f"its column {f.name} has values inside that are NOT NULL")
    odd = writable(fields)
    if odd is not None:
        kind_ = next(f.dataType.simpleString() for f in fields if f.name == odd)
        raise _refused(name, f"its column {odd} is of type {kind_}")
    return Target(name, pin, fields)


def _refused(name: str, why: str, hint: str = "") -> UnsupportedTableError:
    return UnsupportedTableError(
        f"a transaction cannot change {name}: {why}",
        hint=hint or "Write it with Spark, then keeper.refresh() and keeper.check().",
    )


def rows_from(given: Any, into: Target, zone: str = "UTC") -> tuple[pa.Table, set[str]]:
    """Rows that the user gave, and the columns that they have values for: tuples by position; dicts
    and Spark's rows by name; or an Arrow or pandas table, whose times without a zone are of
    ``zone``, the session's. Other times without a zone are local, as in PySpark.

    Raises
    ------
    RowError
        When a row does not fit the table.
    """
    schema = arrow_schema(list(into.fields))
    try:
        if isinstance(given, pa.Table):
            return _by_name(given, into, schema, zone)
        if hasattr(given, "columns") and hasattr(given, "to_dict"):  # pandas
            return rows_from(pa.Table.from_pandas(given, preserve_index=False), into, zone)
        listed = [_named(row) for row in given]
        if all(isinstance(row, Mapping) for row in listed):
            spelled = {n: into.field(str(n)).name for n in {n for row in listed for n in row}}
            for row in listed:
                _check_once(row, [spelled[n] for n in row])
            listed = [{spelled[n]: v for n, v in row.items()} for row in listed]
            names = set(spelled.values())
            for f in into.fields:
                some = f.name in names and not all(f.name in row for row in listed)
                if some and into.default(f) != "NULL":
                    raise _wrong(into, f"some of the rows have no {f.name}, which has a default")
                if some and f.name in into.generated:
                    raise _wrong(into, f"some of the rows have no {f.name}, which is generated")
            columns = [[row.get(f.name) for row in listed] for f in schema]
        else:
            names = set(into.columns)
            for row in listed:
                if isinstance(row, (str, bytes)) or not isinstance(row, Sequence):
                    raise _wrong(into, f"{row!r} is not a row")
                if len(row) != len(into.fields):
                    raise _wrong(into, f"{row!r} has {len(row)} values")
            columns = [[row[i] for row in listed] for i in range(len(into.fields))]
        arrays = [_array(values, f.type) for values, f in zip(columns, schema, strict=True)]
        return pa.table(arrays, schema=schema), names
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        raise _wrong(into, str(error).splitlines()[0]) from error


def _named(row: Any) -> Any:
    """A row of Spark's as a dict, if it knows its columns.

    >>> _named(Row(b=1, a=2)), _named(Row(1, 2)), _named((1, 2))
    ({'b': 1, 'a': 2}, <Row(1, 2)>, (1, 2))
    """
    if not isinstance(row, Row) or not hasattr(row, "__fields__"):
        return row
    _check_once(row.__fields__, row.__fields__)
    return row.asDict()


def _check_once(given: Iterable[Any], columns: Sequence[str]) -> None:
    """Each column may be there once; ``given`` are the names as the user wrote them."""
    if len(set(columns)) < len(columns):
        raise ValueError(f"a column is there twice: {', '.join(map(str, given))}")


def stored(rows: pa.Table, into: Target) -> pa.Table:
    """Rows as a table keeps them: the empty text in a column that it is partitioned by is NULL."""
    for name in into.pin.metadata.get("partitionColumns") or ():
        place = rows.schema.get_field_index(into.field(name).name)
        kind = rows.schema.field(place).type
        if pa.types.is_string(kind) or pa.types.is_binary(kind):
            column = rows.column(place)
            empty = pc.equal(pc.binary_length(column), 0)
            column = pc.if_else(empty, pa.scalar(None, kind), column)
            rows = rows.set_column(place, rows.schema.field(place), column)
    return rows


def _array(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values as a column.

    >>> _array([4.5], pa.int32())  # Arrow would take the 4
    Traceback (most recent call last):
    ValueError: 4.5 is not a whole number
    """
    return pa.array([as_arrow(v, kind) for v in values], kind)


def _by_name(
    given: pa.Table, into: Target, schema: pa.Schema, zone: str
) -> tuple[pa.Table, set[str]]:
    names = [into.field(n).name for n in given.schema.names]
    _check_once(given.schema.names, names)
    named = dict(zip(names, given.columns, strict=True))
    rows = len(next(iter(named.values()))) if named else 0
    for f in schema:
        kind = named[f.name].type if f.name in named else f.type
        if pa.types.is_timestamp(kind) and kind.tz is None and getattr(f.type, "tz", None):
            named[f.name] = pc.assume_timezone(named[f.name], zone)
    columns = [
        named[f.name].cast(f.type) if f.name in named else pa.nulls(rows, f.type) for f in schema
    ]
    return pa.table(columns, schema=schema), set(named)


def _wrong(into: Target, why: str) -> RowError:
    columns = ", ".join(f"{f.name} {f.dataType.simpleString()}" for f in into.fields)
    return RowError(f"rows that do not fit {into.name}: {why}", hint=f"It has ({columns}).")


def check_rows(spark: SparkSession, overlay: Overlay) -> None:
    """What Delta would check at the commit: NOT NULL, CHECK, the length of text, append only, that
    generated columns are as their expressions say."""
    config = overlay.pin.metadata.get("configuration") or {}
    name = overlay.pin.source.name
    rows = overlay.rows
    fewer = pc.less(rows.column(COME), rows.column(GONE))
    if config.get("delta.appendOnly") == "true" and pc.any(fewer).as_py():
        raise RowError(
            f"{name} is append-only (delta.appendOnly), and the transaction deletes from it",
            hint="Take the deletion out, or change the table's property.",
        )
    more = rows.filter(pc.greater(rows.column(COME), rows.column(GONE)))
    if not more.num_rows:
        return
    for f in overlay.fields:
        column = more.column(f.name)
        if not f.nullable and column.null_count:
            raise RowError(f"NULL in {f.name} of {name}, which is NOT NULL", hint="Give a value.")
        kind = str(f.metadata.get(_TEXT, ""))
        if kind.startswith("varchar("):
            longest = pc.max(pc.utf8_length(column)).as_py() or 0
            if longest > int(kind[8:-1]):
                raise RowError(
                    f"a value of {longest} characters in {f.name} of {name}, which is {kind}",
                    hint="Shorten it.",
                )
    checks = {k: v for k, v in config.items() if k.startswith("delta.constraints.")}
    for column, text in generated(overlay.fields).items():
        checks[f"{column} is generated"] = f"{quoted(column)} <=> ({text})"
    if checks:
        _check_expressions(spark, overlay, more, checks)


def _check_expressions(
    spark: SparkSession, overlay: Overlay, more: pa.Table, checks: Mapping[str, str]
) -> None:
    times = pa.array([1] * more.num_rows, pa.int64())
    rows = repeated(more.select(overlay.names), times)
    frame = local_frame(spark, rows, overlay.pin.schema(overlay.names))
    for key, text in checks.items():
        try:
            wrong = frame.where(f"NOT coalesce(({text}), false)").first()
        except AnalysisException as error:
            raise _refused(overlay.pin.source.name, f"its check {text} fails: {error}") from error
        except PySparkException as error:
            raise RowError(
                f"CHECK ({text}) of {overlay.pin.source.name} fails: {str(error).splitlines()[0]}",
                hint="Change the rows, or drop the table's check.",
            ) from error
        if wrong is not None:
            raise RowError(
                f"{tuple(wrong)} violates CHECK ({text}) of {overlay.pin.source.name}"
                f" ({key.removeprefix('delta.constraints.')})",
                hint="Change the row, or drop the table's check.",
            )


def cast(text: str, field: StructField) -> str:
    """An expression as a value of a column, in SQL."""
    return f"CAST(({text}\n) AS {type_sql(field.dataType)})"


def may_lose(spark: SparkSession) -> bool:
    """Whether a cast may lose a value where Spark would refuse to store it: without ANSI's rules
    for expressions, Spark still has them for what it writes."""
    policy = str(spark.conf.get("spark.sql.storeAssignmentPolicy")).upper()
    return str(spark.conf.get("spark.sql.ansi.enabled")).lower() == "false" and policy != "LEGACY"


def lost(values: Iterable[tuple[str, StructField]], into: Target, when: str = "true") -> list[str]:
    """The cases in which a value is lost by the cast to its column, each with the column's place,
    as branches of a CASE in SQL."""
    found = []
    for text, f in values:
        tried = f"TRY_CAST(({text}\n) AS {type_sql(f.dataType)})"
        bad = f"({text}\n) IS NOT NULL AND {tried} IS NULL"
        found.append(f"WHEN {when} AND {bad} THEN {into.columns.index(f.name)}")
    return found


def selected(names: Iterable[str]) -> str:
    """Columns, in SQL."""
    return ", ".join(quoted(n) for n in names)
