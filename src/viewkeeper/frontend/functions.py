"""Aggregate functions."""

from __future__ import annotations

import re
from typing import Any

from viewkeeper.algebra.scalars import Agg, Call, Const, Opaque, Scalar
from viewkeeper.algebra.texts import splice
from viewkeeper.frontend.expressions import Scalars
from viewkeeper.frontend.jvm import Unsupported, children, class_name, option

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
ORDERED = (
    "First", "Last", "AnyValue", "CollectList", "CollectSet", "Mode", "MaxBy", "MinBy", "ListAgg",
    "ApproximatePercentile",
)  # fmt: skip
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
    if kind in ORDERED:
        notes.append(f"{function.prettyName()} depends on the order of the rows of a group.")
    call = engine_call(scalars, function, kind, distinct)
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


def engine_call(scalars: Scalars, function: Any, kind: str, distinct: bool) -> Opaque:
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
