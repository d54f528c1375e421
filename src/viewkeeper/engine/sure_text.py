"""Expressions that came as Spark's text, where they are arithmetic that DuckDB does alike."""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

_WIDTHS = {"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64()}
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_PLACE = re.compile(r"place(\d+)_")


class UnsureError(Exception):
    """Spark must run the query."""


def arithmetic(
    parts: tuple[str, ...], kinds: list[pa.DataType]
) -> tuple[tuple[str, ...], pa.DataType]:
    """The text for DuckDB, in the same parts, and the type that Spark gives it.

    >>> arithmetic(("(", " * (CAST(1 AS DECIMAL(1,0)) - ", "))"), [pa.decimal128(15, 2)] * 2)
    (('(', ' * (CAST(1 AS DECIMAL(1, 0)) - ', '))'), Decimal128Type(decimal128(32, 4)))
    """
    return _arithmetic(parts, tuple(kinds))


@lru_cache(maxsize=4096)
def _arithmetic(
    parts: tuple[str, ...], kinds: tuple[pa.DataType, ...]
) -> tuple[tuple[str, ...], pa.DataType]:
    text = parts[0] + "".join(f"place{i}_{part}" for i, part in enumerate(parts[1:]))
    if re.search("place|try_", "".join(parts), re.IGNORECASE):
        raise UnsureError("a name like ours, or errors that become NULL")
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError as error:
        raise UnsureError(str(error)) from error
    kind = _kind(tree, kinds)
    # sqlglot takes a cast of Spark's for one that gives NULL; here it must be an error
    written = tree.transform(_strict).sql(dialect="duckdb")
    found = _PLACE.split(written)
    if [int(n) for n in found[1::2]] != list(range(len(kinds))):
        raise UnsureError("the arguments in another order")
    return tuple(found[::2]), kind


def _strict(e: exp.Expr) -> exp.Expr:
    return exp.Cast(this=e.this, to=e.to) if isinstance(e, exp.TryCast) else e


def _kind(e: exp.Expr, kinds: tuple[pa.DataType, ...]) -> pa.DataType:
    match e:
        case exp.Paren():
            return _kind(e.this, kinds)
        case exp.Column():
            place = _PLACE.fullmatch(e.name)
            if place is None:
                raise UnsureError(e.name)
            return kinds[int(place[1])]
        case exp.Null():
            return pa.null()
        case exp.Boolean():
            return pa.bool_()
        case exp.Cast():
            return _cast(e, kinds)
        case exp.Literal() if not e.is_string and re.fullmatch(r"\d+", e.name):
            return pa.int32() if int(e.name) < 2**31 else pa.int64()
        case exp.Mul() | exp.Add() | exp.Sub():
            return _sum(e, _decimal(_kind(e.this, kinds)), _decimal(_kind(e.expression, kinds)))
        case exp.Neg():
            return _kind(e.this, kinds)
        case _:
            raise UnsureError(e.sql())


def _sum(e: exp.Expr, a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """Decimals only, and no digit more than 38, so that nothing is rounded."""
    if isinstance(e, exp.Mul):
        precision, scale = a.precision + b.precision + 1, a.scale + b.scale
    else:
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
    if precision > 38:
        raise UnsureError("more digits than a decimal has")
    return pa.decimal128(precision, scale)


def _decimal(kind: pa.DataType) -> pa.DataType:
    if not pa.types.is_decimal(kind):
        raise UnsureError(f"arithmetic of {kind}")
    return kind


def _cast(e: exp.Cast, kinds: tuple[pa.DataType, ...]) -> pa.DataType:
    """Casts that lose nothing, or are errors in DuckDB where they would."""
    to = e.to
    literal = e.this
    if isinstance(literal, exp.Literal) and not literal.is_string:
        digits = re.fullmatch(r"(\d+)(?:\.(\d+))?", literal.name)
        if digits is None:
            raise UnsureError(literal.name)
        whole, rest = digits[1].lstrip("0"), digits[2] or ""
        inner = pa.decimal128(max(len(whole) + len(rest), 1), len(rest))
    elif isinstance(literal, exp.Literal) and to.this == exp.DType.DATE:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", literal.name):  # DuckDB also reads 2024/01/02
            raise UnsureError(literal.name)
        return pa.date32()
    else:
        inner = _kind(literal, kinds)
    if to.this == exp.DType.DECIMAL:
        if to.expressions:
            precision, scale = (int(x.name) for x in to.expressions)
        elif pa.types.is_decimal(
            inner
        ):  # a literal 0.05BD, which has the digits it is written with
            precision, scale = inner.precision, inner.scale
            to.set(
                "expressions",
                [exp.DataTypeParam(this=exp.Literal.number(n)) for n in (precision, scale)],
            )
        else:
            raise UnsureError(e.sql())
        if inner in _DIGITS:
            inner = pa.decimal128(_DIGITS[inner], 0)
        if not pa.types.is_decimal(inner) or scale < inner.scale:
            raise UnsureError(e.sql())
        return pa.decimal128(precision, scale)
    width = _WIDTHS.get(to.this.value)
    if width is not None and (inner in _DIGITS or isinstance(literal, exp.Literal)):
        if pa.types.is_decimal(inner) and inner.scale:
            raise UnsureError(e.sql())
        return width
    raise UnsureError(e.sql())
