"""Queries of which DuckDB is sure to give what Spark would give, with the same types.

Numbers, texts, dates, times and truth values; comparisons, logic, + - *, counts, sums, averages of
decimals and extrema. Sums that do not fit are errors in DuckDB, and then Spark decides. Whatever
else a query holds — sums of floating point numbers, most functions, windows — makes it Spark's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
from pyspark.sql.types import StructType

from viewkeeper.algebra.nodes import (
    Anti,
    Distinct,
    Empty,
    Full,
    GroupBy,
    Join,
    Left,
    Max,
    Min,
    Monus,
    Net,
    Plus,
    Product,
    Project,
    Query,
    Right,
    Select,
    Semi,
    Table,
    Top,
    Unnest,
    children,
    with_children,
)
from viewkeeper.algebra.orders import plain_order
from viewkeeper.algebra.repeats import counted
from viewkeeper.algebra.scalars import COMPARISONS, Agg, Call, Col, Const, Opaque, Scalar
from viewkeeper.algebra.walk import postorder
from viewkeeper.engine.sure_text import UnsureError, arithmetic, quotient, whole_numbers
from viewkeeper.lake.arrow import arrow_schema
from viewkeeper.plan import finish

Kinds = tuple[pa.DataType, ...]
_WIDTHS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_FLOATS = (pa.float32(), pa.float64())
_SAFE = (pa.bool_(), *_WIDTHS, *_FLOATS, pa.string(), pa.binary(), pa.date32(), pa.null())


def translate(query: Query, leaves: Callable[[Table], Kinds]) -> tuple[Query, Kinds]:
    """The query with expressions that DuckDB reads, and the types that Spark would give it.

    Raises
    ------
    UnsureError
        When Spark must run the query.
    """
    made: dict[Query, Query] = {}
    kinds: dict[Query, Kinds] = {}
    for q in postorder(query):
        below = tuple(made[c] for c in children(q))
        made[q], kinds[q] = _node(q, below, [kinds[c] for c in children(q)], leaves)
    return made[query], kinds[query]


def _node(
    q: Query, below: tuple[Query, ...], kinds: list[Kinds], leaves: Callable[[Table], Kinds]
) -> tuple[Query, Kinds]:
    match q:
        case Table():
            found = leaves(q)
            for kind in found:
                _check(kind)
            return q, found
        case Empty():
            return q, (pa.null(),) * q.arity
        case Select(_, predicate):
            p, kind = _scalar(predicate, kinds[0])
            return Select(below[0], _truth(p, kind)), kinds[0]
        case Project(_, items, names):
            typed = [_scalar(e, kinds[0]) for e in items]
            return Project(below[0], tuple(e for e, _ in typed), names), tuple(k for _, k in typed)
        case Plus() | Monus() | Min() | Max():
            return with_children(q, below), tuple(map(_same, *kinds))
        case Distinct():
            return with_children(q, below), kinds[0]
        case Net():
            return with_children(q, below), kinds[0][:-1]
        case Product():
            return with_children(q, below), kinds[0] + kinds[1]
        case Join() | Left() | Right() | Full():
            both = kinds[0] + kinds[1]
            return type(q)(below[0], below[1], _truth(*_scalar(q.on, both))), both
        case Semi() | Anti():
            on = _truth(*_scalar(q.on, kinds[0] + kinds[1]))
            return type(q)(below[0], below[1], on), kinds[0]
        case Unnest(_, generator, _, False) if (number := counted(generator)) is not None:
            if _scalar(number, kinds[0])[1] not in _WIDTHS:
                raise UnsureError("rows repeated by what is no whole number")
            return with_children(q, below), (*kinds[0], pa.int32())
        case GroupBy():
            return _grouped(q, below[0], kinds[0])
        case Top(_, order) if all(plain_order(o) for o in order):
            return with_children(q, below), kinds[0]
        case _:
            raise UnsureError(type(q).__name__)


def _check(kind: pa.DataType) -> None:
    if kind not in _SAFE and not pa.types.is_decimal(kind) and not pa.types.is_timestamp(kind):
        raise UnsureError(str(kind))


def _truth(e: Scalar, kind: pa.DataType) -> Scalar:
    if kind not in (pa.bool_(), pa.null()):
        raise UnsureError("a condition that is no truth value")
    return e


# ── expressions ──


def _scalar(e: Scalar, kinds: Kinds) -> tuple[Scalar, pa.DataType]:
    match e:
        case Col(index):
            return e, kinds[index]
        case Const(value):
            return e, _constant(value)
        case Opaque(parts, args) if (found := finish.averaged(parts)) is not None:
            total, number = (_scalar(args[i], kinds) for i in (found.total, found.number))
            return _average(total, number[0], pa.decimal128(found.precision, found.scale))
        case Opaque(parts, args):
            typed = [_scalar(a, kinds) for a in args]
            text, order, kind = arithmetic(parts, [k for _, k in typed])
            return Opaque(text, tuple(typed[i][0] for i in order)), kind
        case Call(op, args):
            typed = [_scalar(a, kinds) for a in args]
            kind = _call(op, [k for _, k in typed])
            values = tuple(a for a, _ in typed)
            if op in ("+", "-", "*", "neg") and kind in _WIDTHS:
                return _whole(op, values, kind), kind
            return Call(op, values), kind
    raise UnsureError(str(e))


def _whole(op: str, args: tuple[Scalar, ...], kind: pa.DataType) -> Opaque:
    """Arithmetic of whole numbers, with an error where the result does not fit."""
    wide, narrow = whole_numbers(kind)
    if op == "neg":
        return Opaque(("CAST(-CAST(", f" AS {wide}) AS {narrow})"), args)
    middle = f" AS {wide}) {op} CAST("
    return Opaque(("CAST(CAST(", middle, f" AS {wide}) AS {narrow})"), args)


def _constant(value: Any) -> pa.DataType:
    if value is None:
        return pa.null()
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, int):
        return pa.int32() if -(2**31) <= value < 2**31 else pa.int64()
    if isinstance(value, str):
        return pa.string()
    raise UnsureError(f"constant {value!r}")


def _call(op: str, kinds: list[pa.DataType]) -> pa.DataType:
    match op:
        case "and" | "or" | "not":
            if all(k in (pa.bool_(), pa.null()) for k in kinds):
                return pa.bool_()
        case "is_null":
            return pa.bool_()
        case "in" | "<=>":
            for k in kinds[1:]:
                _comparable(kinds[0], k)
            return pa.bool_()
        case _ if op in COMPARISONS:
            if pa.binary() not in kinds:
                _comparable(kinds[0], kinds[1])
                return pa.bool_()
        case "coalesce":
            return _unified(kinds)
        case "case":
            conditions, values = kinds[:-1:2], [*kinds[1::2], kinds[-1]]
            if all(k in (pa.bool_(), pa.null()) for k in conditions):
                return _unified(values)
        case "+" | "-" | "*":
            return _sum(op, kinds)
        case "neg":
            if kinds[0] in (*_WIDTHS, *_FLOATS) or pa.types.is_decimal(kinds[0]):
                return kinds[0]
    raise UnsureError(op)


def _comparable(a: pa.DataType, b: pa.DataType) -> None:
    whole = a in _WIDTHS and b in _WIDTHS
    exact = pa.types.is_decimal(a) and (b in _WIDTHS or pa.types.is_decimal(b))
    double = a == pa.float64() and b in _WIDTHS
    if a != b and pa.null() not in (a, b) and not whole and not exact and not double:
        raise UnsureError(f"{a} against {b}")


def _same(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    """The type of columns that stand under one another."""
    if a == b or b == pa.null():
        return a
    if a == pa.null():
        return b
    if a in _WIDTHS and b in _WIDTHS:
        return max(a, b, key=lambda k: k.bit_width)
    if pa.types.is_decimal(a) and pa.types.is_decimal(b) and a.scale == b.scale:
        return max(a, b, key=lambda k: k.precision)
    raise UnsureError(f"{a} above {b}")


def _unified(kinds: list[pa.DataType]) -> pa.DataType:
    found = pa.null()
    decimals = [k for k in kinds if pa.types.is_decimal(k)]
    for k in kinds:
        # a whole constant beside a decimal: Spark widens the decimal for its digits
        if decimals and k in _WIDTHS:
            k = pa.decimal128(_DIGITS[k.bit_width], 0)
        found = _wider(found, k) if decimals else _same(found, k)
    return found


_DIGITS = {8: 3, 16: 5, 32: 10, 64: 20}


def _wider(a: pa.DataType, b: pa.DataType) -> pa.DataType:
    if pa.null() in (a, b):
        return b if a == pa.null() else a
    if not (pa.types.is_decimal(a) and pa.types.is_decimal(b)):
        raise UnsureError(f"{a} with {b}")
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    if whole + scale > 38:
        whole = 38 - scale  # Spark keeps the scale here, DuckDB too: an overflow is an error
    return pa.decimal128(whole + scale, scale)


def _sum(op: str, kinds: list[pa.DataType]) -> pa.DataType:
    a, b = kinds
    if (a in _WIDTHS and b in _WIDTHS) or a == b == pa.float64():
        return max(a, b, key=lambda k: k.bit_width)
    if not (pa.types.is_decimal(a) or pa.types.is_decimal(b)):
        raise UnsureError(f"{a} {op} {b}")
    a, b = _as_decimal(a), _as_decimal(b)
    if op == "*":
        precision, scale = a.precision + b.precision + 1, a.scale + b.scale
    else:
        scale = max(a.scale, b.scale)
        precision = max(a.precision - a.scale, b.precision - b.scale) + scale + 1
    if precision > 38 and scale > 6:
        raise UnsureError("more digits than a decimal has")
    return pa.decimal128(min(precision, 38), scale)


def _as_decimal(kind: pa.DataType) -> pa.DataType:
    if kind in _WIDTHS:
        return pa.decimal128(_DIGITS[kind.bit_width], 0)
    if not pa.types.is_decimal(kind):
        raise UnsureError(str(kind))
    return kind


def _grouped(q: GroupBy, below: Query, kinds: Kinds) -> tuple[Query, Kinds]:
    """Γ, with a Π above for averages, from sums and counts, since those of DuckDB are not exact,
    and for sums of whole numbers, which DuckDB would let grow beyond what Spark can hold."""
    aggs: list[Agg] = []
    items: list[Scalar] = [Col(i) for i in range(len(q.keys))]
    held = [kinds[k] for k in q.keys]
    for a in q.aggs:
        at = Col(len(q.keys) + len(aggs))
        if isinstance(a, Agg) and a.function == "avg" and not a.distinct:
            total, summed = _aggregate(Agg("sum", a.args, False, a.type), kinds)
            number, _ = _aggregate(Agg("count", a.args, False, a.type), kinds)
            aggs += [total, number]
            of = _scalar(a.args[0], kinds)[1]
            if not pa.types.is_decimal(of) or of.precision > 34:
                raise UnsureError(f"avg of {of}")
            wanted = pa.decimal128(of.precision + 4, of.scale + 4)
            item, kind = _average((at, summed), Col(at.index + 1), wanted)
        else:
            made, kind = _aggregate(a, kinds)
            aggs.append(made)
            whole = made.function == "sum" and kind == pa.int64()
            item = Opaque(("CAST(", " AS BIGINT)"), (at,)) if whole else at
        items.append(item)
        held.append(kind)
    if all(isinstance(item, Col) for item in items):
        return GroupBy(below, q.keys, tuple(aggs), q.names), tuple(held)
    names = tuple(f"a{i}" for i in range(len(aggs)))
    return Project(GroupBy(below, q.keys, tuple(aggs), names), tuple(items), q.columns), tuple(held)


def _average(
    total: tuple[Scalar, pa.DataType], number: Scalar, kind: pa.DataType
) -> tuple[Scalar, pa.DataType]:
    """An average of decimals from its sum, rounded half up; ``kind`` is its own type."""
    of, summed = total
    if not pa.types.is_decimal(summed):
        raise UnsureError(f"an average of {summed}")
    scales = (summed.scale, 0)
    text = quotient("@total", "NULLIF(@number, 0)", scales, kind.precision, kind.scale)
    pieces = re.split("@(total|number)", text)
    args = tuple(of if name == "total" else number for name in pieces[1::2])
    return Opaque(tuple(pieces[::2]), args), kind


def _aggregate(a: Agg | Opaque, kinds: Kinds) -> tuple[Agg, pa.DataType]:
    if isinstance(a, Opaque) or (a.distinct and a.function not in ("min", "max", "count")):
        raise UnsureError("an aggregate of the engine")
    typed = [_scalar(x, kinds) for x in a.args]
    made = Agg(a.function, tuple(x for x, _ in typed), a.distinct, a.type)
    if a.function == "count":
        if len(typed) > 1:
            raise UnsureError("count of several columns")
        return made, pa.int64()
    kind = typed[0][1]
    if a.function in ("min", "max") and kind != pa.binary():
        return made, kind
    if a.function == "sum" and kind in _WIDTHS:
        return made, pa.int64()
    if a.function == "sum" and pa.types.is_decimal(kind):
        return made, pa.decimal128(min(kind.precision + 10, 38), kind.scale)
    raise UnsureError(f"{a.function} of {kind}")


def kinds_of(schema: StructType) -> Kinds | None:
    """The types of a Spark schema; None where Arrow's would say less."""
    if "collate" in schema.simpleString():
        return None
    return tuple(arrow_schema(schema.fields).types)
