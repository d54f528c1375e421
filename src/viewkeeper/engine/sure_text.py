"""Expressions that came as Spark's text, where DuckDB gives the same: arithmetic, parts of dates
and of texts."""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

_WIDTHS = {"TINYINT": pa.int8(), "SMALLINT": pa.int16(), "INT": pa.int32(), "BIGINT": pa.int64()}
_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
Text = tuple[tuple[str, ...], tuple[int, ...], pa.DataType]
_PLACE = re.compile(r"place(\d+)_")


class UnsureError(Exception):
    """Spark must run the query."""


def arithmetic(parts: tuple[str, ...], kinds: list[pa.DataType]) -> Text:
    """The text for DuckDB, which argument stands in each of its gaps, and the type that Spark gives
    it.

    >>> arithmetic(("(", " + ", ")"), [pa.decimal128(15, 2), pa.decimal128(9, 4)])
    (('(', ' + ', ')'), (0, 1), Decimal128Type(decimal128(18, 4)))
    """
    return _arithmetic(parts, tuple(kinds))


def quotient(a: str, b: str, scales: tuple[int, int], precision: int, scale: int) -> str:
    """DuckDB's text for a / b of decimals, rounded half up, in whole numbers: its own quotient is a
    floating point number. Without a divisor, or with a result that does not fit, it is an error."""
    power = scale + scales[1]
    top = f"CAST(ABS(CAST({a} AS DECIMAL(38,{scales[0]}))) * {_power(power)} AS HUGEINT)"
    below = f"CAST(ABS(CAST({b} AS DECIMAL(38,{scales[1]}))) * {_power(scales[1])} AS HUGEINT)"
    sign = f"CASE WHEN ({a} < 0) <> ({b} < 0) THEN -1 ELSE 1 END"
    whole = f"{sign} * (({top} * 2 + {below}) // (2 * {below}))"
    unit = f"CAST('0.{'0' * (scale - 1)}1' AS DECIMAL({scale},{scale}))"
    return f"CAST(CAST({whole} AS DECIMAL(38,0)) * {unit} AS DECIMAL({precision},{scale}))"


def whole_numbers(kind: pa.DataType) -> tuple[str, str]:
    """The types of DuckDB in which whole numbers of a type are added or multiplied, and to which
    the result is cast, so that one that does not fit is an error. DuckDB's own arithmetic is not
    to be relied on: for n + 1 > 0 it computes n > -1.

    >>> whole_numbers(pa.int32())
    ('BIGINT', 'INT')
    """
    name = next(name for name, width in _WIDTHS.items() if width == kind)
    return "HUGEINT" if kind == pa.int64() else "BIGINT", name


def _power(n: int) -> str:
    return f"CAST('1{'0' * n}' AS DECIMAL({n + 1},0))"


@lru_cache(maxsize=4096)
def _arithmetic(parts: tuple[str, ...], kinds: tuple[pa.DataType, ...]) -> Text:
    text = parts[0] + "".join(f"place{i}_{part}" for i, part in enumerate(parts[1:]))
    if re.search(r"place|try_|\\", "".join(parts), re.IGNORECASE):
        raise UnsureError("a name like ours, errors that become NULL, or escaped characters")
    try:
        tree = sqlglot.parse_one(text, dialect="spark")
    except SqlglotError as error:
        raise UnsureError(str(error)) from error
    kind = _kind(tree, kinds)
    # sqlglot takes a cast of Spark's for one that gives NULL; here it must be an error
    written = tree.transform(lambda e: _strict(e, kinds)).sql(dialect="duckdb")
    found = _PLACE.split(written)
    return tuple(found[::2]), tuple(int(n) for n in found[1::2]), kind


def _strict(e: exp.Expr, kinds: tuple[pa.DataType, ...]) -> exp.Expr:
    if isinstance(e, exp.Div):
        a, b = (_decimal(_kind(side, kinds)) for side in (e.this, e.expression))
        result = _divided(a, b)
        top, below = (
            f"({side.transform(lambda x: _strict(x, kinds)).sql(dialect='duckdb')})"
            for side in (e.this, e.expression)
        )
        text = quotient(top, below, (a.scale, b.scale), result.precision, result.scale)
        return sqlglot.parse_one(text, dialect="duckdb")
    if isinstance(e, exp.Mul) and pa.types.is_decimal(a := _kind(e.this, kinds)):
        # DuckDB would multiply in 18 digits, if both sides fit into them
        side = e.this.transform(lambda x: _strict(x, kinds))
        wide = exp.Cast(this=side, to=exp.DataType.build(f"DECIMAL(38, {a.scale})"))
        other = e.expression.transform(lambda x: _strict(x, kinds))
        return exp.Mul(this=wide, expression=other)
    if isinstance(e, exp.TryCast):  # a node that is replaced is not gone into
        return exp.Cast(this=e.this.transform(lambda x: _strict(x, kinds)), to=e.to)
    if isinstance(e, exp.Neg) and (kind := _kind(e.this, kinds)) in _DIGITS:
        inner = exp.Paren(this=e.this.transform(lambda x: _strict(x, kinds)))
        to_wide, to = (exp.DataType.build(n, dialect="duckdb") for n in whole_numbers(kind))
        return exp.Cast(this=exp.Neg(this=exp.Cast(this=inner, to=to_wide)), to=to)
    return e


def _divided(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """The type of a quotient of decimals, as Spark cuts it to 38 digits."""
    scale = max(6, a.scale + b.precision + 1)
    precision = a.precision - a.scale + b.scale + scale
    if precision > 38:
        scale = max(38 - (precision - scale), min(scale, 6))
    return pa.decimal128(min(precision, 38), scale)


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
        case exp.Literal() if e.is_string:
            return pa.string()
        case exp.Literal() if re.fullmatch(r"\d+", e.name):
            return pa.int32() if int(e.name) < 2**31 else pa.int64()
        case exp.Mul() | exp.Add() | exp.Sub():
            a, b = _kind(e.this, kinds), _kind(e.expression, kinds)
            return a if a == b == pa.float64() else _sum(e, _decimal(a), _decimal(b))
        case exp.Div():
            a, b = (_decimal(_kind(side, kinds)) for side in (e.this, e.expression))
            return _divided(a, b)
        case exp.Neg():
            return _kind(e.this, kinds)
        case exp.TsOrDsToDate() | exp.Year() | exp.Quarter() | exp.Month() | exp.Day():
            _need(_kind(e.this, kinds), pa.date32())
            return pa.date32() if isinstance(e, exp.TsOrDsToDate) else pa.int32()
        case exp.Like() if isinstance(e.expression, exp.Literal):
            _need(_kind(e.this, kinds), pa.string())
            return pa.bool_()
        case exp.StartsWith() | exp.EndsWith() | exp.Contains():
            _need(_kind(e.this, kinds), pa.string())
            _need(_kind(e.expression, kinds), pa.string())
            return pa.bool_()
        case exp.Substring() if _at_least(e.args.get("start"), 1) and _at_least(
            e.args.get("length"), 0
        ):
            _need(_kind(e.this, kinds), pa.string())
            return pa.string()
        case exp.Length():
            _need(_kind(e.this, kinds), pa.string())
            return pa.int32()
        case exp.DPipe():
            _need(_kind(e.this, kinds), pa.string())
            _need(_kind(e.expression, kinds), pa.string())
            return pa.string()
        case exp.Not():
            _need(_kind(e.this, kinds), pa.bool_())
            return pa.bool_()
        case _:
            raise UnsureError(type(e).__name__)  # sqlglot cannot write all that it reads


def _need(kind: pa.DataType, wanted: pa.DataType) -> None:
    if kind != wanted:
        raise UnsureError(f"{kind} for {wanted}")


def _at_least(e: exp.Expr | None, least: int) -> bool:
    """Whether an argument is a whole number, written as such, and not below another."""
    if not isinstance(e, exp.Literal) or e.is_string or not e.name.isdigit():
        return False
    return int(e.name) >= least


def _sum(e: exp.Expr, a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """Decimals only, and so few digits after the point that Spark keeps them all."""
    if isinstance(e, exp.Mul):
        precision, scale = a.precision + b.precision + 1, a.scale + b.scale
    else:
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
    if precision > 38 and scale > 6:
        raise UnsureError("more digits than a decimal has")
    return pa.decimal128(min(precision, 38), scale)


def _decimal(kind: pa.DataType) -> pa.DataType:
    if not pa.types.is_decimal(kind):
        raise UnsureError(f"arithmetic of {kind}")
    return kind


def _cast(e: exp.Cast, kinds: tuple[pa.DataType, ...]) -> pa.DataType:
    """Casts that lose nothing, or are errors in DuckDB where they would."""
    to = e.to
    literal = e.this
    decimal = to.this == exp.DType.DECIMAL  # 0.05BD is read as the cast of a text
    if isinstance(literal, exp.Literal) and (decimal or not literal.is_string):
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
    if to.this == exp.DType.DATE and inner == pa.date32():
        return inner
    if to.this == exp.DType.DOUBLE and inner in (*_DIGITS, pa.float64()):
        return pa.float64()
    if decimal:
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
            raise UnsureError(type(e).__name__)
        if inner in _DIGITS:
            inner = pa.decimal128(_DIGITS[inner], 0)
        if not pa.types.is_decimal(inner) or scale < inner.scale:
            raise UnsureError(type(e).__name__)
        return pa.decimal128(precision, scale)
    width = _WIDTHS.get(to.this.value)
    # DuckDB also reads 1.5, which it rounds, and 1_000 and 0x10
    number = isinstance(literal, exp.Literal) and re.fullmatch(r"[+-]?\d+", literal.name)
    if width is not None and (inner in _DIGITS or number):
        return width
    raise UnsureError(e.sql())
