"""Aggregate functions and window functions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from viewkeeper.algebra.scalars import Agg, Call, Const, Opaque, Scalar
from viewkeeper.frontend.expressions import Scalars
from viewkeeper.frontend.jvm import Unsupported, children, class_name, items, option
from viewkeeper.frontend.text import joined, splice

_AGGREGATES = {
    "Sum": "sum",
    "Average": "avg",
    "Min": "min",
    "Max": "max",
    "BoolAnd": "min",
    "BoolOr": "max",
    "VariancePop": "var_pop",
    "VarianceSamp": "var_samp",
    "StddevPop": "stddev_pop",
    "StddevSamp": "stddev_samp",
}
# Aggregates whose answer depends on the order of rows.
_ORDERED = (
    "First", "Last", "AnyValue", "CollectList", "CollectSet", "Mode", "MaxBy", "MinBy", "ListAgg",
    "ApproximatePercentile",
)  # fmt: skip
_RANKS = ("RowNumber", "NTile", "Lead", "Lag", "NthValue")
_FRAMELESS = ("RowNumber", "NTile", "Lead", "Lag", "Rank", "DenseRank", "PercentRank", "CumeDist")
_WHOLE = "UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_MOST_DIGITS, _MORE_DIGITS = 38, 10  # of a decimal; that a sum has more than its terms
_NULLS = ("First", "Last", "AnyValue")


def aggregates(scalars: Scalars, e: Any, notes: list[str]) -> tuple[Agg | Opaque, ...]:
    """What an aggregate expression is made of: itself, or for PIVOT one aggregate per value.

    Spark groups by the pivot's column first, so a group has one row per value at most, and the
    greatest of them is that row.
    """
    function = e.aggregateFunction()
    if class_name(function) != "PivotFirst":
        return (aggregate(scalars, e, notes),)
    by, held = children(function)
    row, kind = scalars(held), str(held.dataType().catalogString())
    return tuple(
        Agg("max", (Call("case", (Call("<=>", (scalars(by), v)), row, Const(None))),), False, kind)
        for v in scalars.of(scalars.jvm.literals(function.pivotColumnValues(), by.dataType()))
    )


def aggregate(scalars: Scalars, e: Any, notes: list[str]) -> Agg | Opaque:
    """An aggregate expression: DISTINCT, FILTER and function."""
    function, condition = e.aggregateFunction(), option(e.filter())
    kind, distinct = class_name(function), bool(e.isDistinct())
    where = None if condition is None else scalars(condition)
    args = children(function)
    text = str(function.sql())
    if kind == "Count":
        return _count(scalars, args, where, distinct)
    if kind == "CountIf" and not distinct:
        return _count_where([scalars(args[0])] + ([] if where is None else [where]))
    type_ = "" if not args else str(args[0].dataType().catalogString())
    silent = text.startswith("try_") or (kind == "Sum" and _overflows(function, type_))
    if kind in _AGGREGATES and not silent:
        arg = scalars(args[0])
        if where is not None:
            arg = Call("case", (where, arg, Const(None)))
        return Agg(_AGGREGATES[kind], (arg,), distinct and kind not in ("Min", "Max"), type_)
    if kind in _ORDERED:
        notes.append(f"{function.prettyName()} depends on the order of the rows of a group.")
    call = _call(scalars, function, kind, distinct)
    return call if where is None else splice([call, " FILTER (WHERE ", where, ")"])


def _overflows(function: Any, type_: str) -> bool:
    """Whether a sum can be too large, and then is NULL instead of an error: decimals of so many
    digits, without ANSI. From such a sum the next one does not follow."""
    digits = re.match(r"decimal\((\d+)", type_)
    if digits is None or int(digits[1]) <= _MOST_DIGITS - _MORE_DIGITS:
        return False
    return str(function.evalContext().evalMode().toString()) != "ANSI"


def _count(scalars: Scalars, args: list[Any], where: Scalar | None, distinct: bool) -> Agg:
    type_ = str(args[0].dataType().catalogString())
    if distinct:
        found = list(scalars.of(args))
        if where is not None:
            found[0] = Call("case", (where, found[0], Const(None)))
        return Agg("count", tuple(found), True, type_)
    given = [a for a in args if a.nodeName() != "Literal" or a.nullable()]
    if len(given) == 1 and where is None:
        return Agg("count", (scalars(given[0]),), False, type_)
    conditions: list[Scalar] = [Call("not", (Call("is_null", (scalars(g),)),)) for g in given]
    return _count_where(conditions + ([] if where is None else [where]))


def _count_where(conditions: list[Scalar]) -> Agg:
    if not conditions:
        return Agg("count", (), False, "")
    both = conditions[0] if len(conditions) == 1 else Call("and", tuple(conditions))
    return Agg("count", (Call("case", (both, Const(1), Const(None))),), False, "int")


def _call(scalars: Scalars, function: Any, kind: str, distinct: bool) -> Opaque:
    """The text of a call to an aggregate or window function that we carry as it is."""
    name = str(function.prettyName())
    args = children(function)
    if kind in _NULLS:
        flag = ", true)" if function.ignoreNulls() else ")"
        return splice([f"{name}(", "DISTINCT " if distinct else "", scalars(args[0]), flag])
    if kind == "Mode" and function.reverseOpt().isDefined():  # its own text has the other order
        end = ")" if function.reverseOpt().get() else " DESC)"
        return splice(["mode() WITHIN GROUP (ORDER BY ", scalars(args[0]), end])
    if kind == "HyperLogLogPlusPlus":
        rsd = f", {float(function.relativeSD())!r}D)"
        return splice([f"{name}(", "DISTINCT " if distinct else "", scalars(args[0]), rsd])
    if kind in ("CollectList", "CollectSet") and not function.ignoreNulls():
        raise Unsupported(f"{name} RESPECT NULLS cannot be written back as SQL.")
    if scalars.jvm.is_a(function, "org.apache.spark.sql.execution.aggregate.ScalaAggregator") or (
        kind in ("PythonUDAF", "ScalaUDAF", "TypedAggregateExpression")
    ):
        raise Unsupported(
            f"The aggregate {name} lives in this session only and cannot be stored as SQL."
        )
    return scalars.text(function, distinct)


def window_function(
    scalars: Scalars,
    e: Any,
    notes: list[str],
    unstable: list[str],
    ties: Callable[[], Sequence[Opaque]],
) -> Opaque:
    """A window expression as text: the function and its OVER clause.

    Where the order of rows with equal sort keys matters, ``ties`` says which comes first. Where
    it is the frame that knows such rows as peers (RANGE), they stay what they are.
    """
    function, spec = e.windowFunction(), e.windowSpec()
    partition = list(scalars.of(items(spec.partitionSpec())))
    order = [scalars.order(o) for o in items(spec.orderSpec())]
    kind = class_name(function)
    if kind == "AggregateExpression":
        call = _windowed_aggregate(scalars, function)
    elif kind in ("Lead", "Lag"):
        call = _offset(scalars, function)
    elif kind == "NthValue":
        nulls = " IGNORE NULLS" if function.ignoreNulls() else ""
        call = splice(["nth_value(", *joined(scalars.of(children(function))), ")", nulls])
    elif kind in _FRAMELESS:
        inside = scalars.of(children(function)) if kind == "NTile" else ()
        call = splice([f"{function.prettyName()}(", *joined(inside), ")"])
    else:
        raise Unsupported(f"The window function {function.prettyName()} has no translation.")
    frame = "" if kind in _FRAMELESS else _frame(spec.frameSpecification())
    if _by_order(function, kind, frame):
        frame = _of_rows(function, kind, frame)
        if frame.startswith("RANGE"):
            unstable.append(f"{_name(function)} over RANGE takes peers in no fixed order.")
        else:
            notes.append(f"{_name(function)} takes peers by the order of their columns.")
            order += [t for t in ties() if t not in order]
    over: list[str | Scalar] = []
    if partition:
        over += ["PARTITION BY ", *joined(partition)]
    if order:
        over += [" ORDER BY " if over else "ORDER BY ", *joined(order)]
    if frame:
        over.append((" " if over else "") + frame)
    return splice([call, " OVER (", *over, ")"])


def _name(function: Any) -> str:
    inner = function
    if class_name(function) == "AggregateExpression":
        inner = function.aggregateFunction()
    return str(inner.prettyName())


def _of_rows(function: Any, kind: str, frame: str) -> str:
    """A RANGE frame as one of ROWS, where that has the same answer once the order is total: a whole
    partition, or the first row of one."""
    first = False
    if kind == "AggregateExpression":
        inner = function.aggregateFunction()
        first = class_name(inner) == "First" and not inner.ignoreNulls()
    if _WHOLE in frame or (first and "UNBOUNDED PRECEDING AND CURRENT ROW" in frame):
        return frame.replace("RANGE", "ROWS")
    return frame


def _by_order(function: Any, kind: str, frame: str) -> bool:
    """Does a window function's answer depend on which of two peers comes first?"""
    if kind == "AggregateExpression":
        kind = class_name(function.aggregateFunction())
    rows = frame.startswith("ROWS") and _WHOLE not in frame
    return kind in _RANKS or kind in _ORDERED or rows


def _windowed_aggregate(scalars: Scalars, e: Any) -> Opaque:
    function, condition = e.aggregateFunction(), option(e.filter())
    call = _call(scalars, function, class_name(function), bool(e.isDistinct()))
    return call if condition is None else splice([call, " FILTER (WHERE ", scalars(condition), ")"])


def _offset(scalars: Scalars, function: Any) -> Opaque:
    """LEAD or LAG; a LAG by n is kept by Catalyst as an offset of minus n."""
    name = str(function.prettyName())
    offset = int(function.offset().eval(None))
    if name == "lag":
        offset = -offset
    args = [scalars(function.input()), Const(offset), scalars(function.default())]
    nulls = " IGNORE NULLS" if function.ignoreNulls() else ""
    return splice([f"{name}(", *joined(args), ")", nulls])


def _frame(frame: Any) -> str:
    kind = str(frame.frameType().sql())
    return f"{kind} BETWEEN {_boundary(frame.lower())} AND {_boundary(frame.upper())}"


def _boundary(e: Any) -> str:
    name = class_name(e)
    if name in ("UnboundedPreceding", "UnboundedFollowing", "CurrentRow"):
        return str(e.sql())
    if str(e.dataType().catalogString()) in ("tinyint", "smallint", "int", "bigint"):
        value = int(e.eval(None))
        return f"{abs(value)} {'PRECEDING' if value < 0 else 'FOLLOWING'}"
    negative = name == "UnaryMinus"
    inner = children(e)[0] if negative else e
    return f"{inner.sql()} {'PRECEDING' if negative else 'FOLLOWING'}"
