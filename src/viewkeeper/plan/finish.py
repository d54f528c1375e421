"""Which aggregates can be kept from stored parts, exactly as Spark would compute them, and how.

COUNT, SUM and AVG of integers and decimals, MIN and MAX of anything. Sums of floating point numbers
depend on the order of addition and are computed again for the touched groups; so are variances.
"""

from __future__ import annotations

import re

from viewkeeper.algebra.scalars import Agg, Call, Col, Const, Opaque, Scalar, call

INTEGERS = ("tinyint", "smallint", "int", "bigint", "")  # "" is the algebra's own, untyped
EXTREMA = ("min", "max")


def storable(a: Agg | Opaque) -> bool:
    """Can the aggregate be kept exactly from stored parts?

    >>> storable(Agg("avg", (Col(0),), False, "decimal(12,2)"))
    True
    >>> storable(Agg("sum", (Col(0),), False, "double"))
    False
    """
    if isinstance(a, Opaque) or (a.distinct and a.function not in EXTREMA):
        return False
    if a.function == "count" or a.function in EXTREMA:
        return True
    if a.function not in ("sum", "avg"):
        return False
    if a.type in INTEGERS:
        return True
    precision, scale = decimal(a.type)
    if not precision or (precision + 11 > 38 and scale > 6):
        return False  # the product with a weight must keep its scale: Spark cuts it only above six
    return a.function == "sum" or precision + 10 + scale + 5 <= 38


def decimal(type_: str) -> tuple[int, int]:
    """Precision and scale of a decimal type; (0, 0) for any other."""
    found = re.fullmatch(r"decimal\((\d+),(\d+)\)", type_)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def parts(a: Agg) -> tuple[Agg, ...]:
    """What must be stored for an aggregate, besides the number of rows."""
    if not a.args:
        return ()
    if a.function in EXTREMA:
        return (a,)
    count = Agg("count", a.args, False, a.type)
    if a.function == "count":
        return (count,)
    return count, Agg("sum", a.args, False, a.type)


def finished(a: Agg, rows: Col, stored: dict[Agg, Col]) -> Scalar:
    """The aggregate's value from the stored parts; ``rows`` is the number of rows of the group."""
    if not a.args:
        return rows
    last = stored[parts(a)[-1]]
    if a.function != "avg":
        return last
    count = stored[parts(a)[0]]
    none = call("=", count, Const(0))
    return call("case", none, Const(None), _average(a.type, last, count))


def _average(type_: str, total: Col, count: Col) -> Scalar:
    if type_ == "":
        return call("/", total, count)
    precision, scale = decimal(type_)
    if not precision:
        return Opaque(("(CAST(", " AS DOUBLE) / CAST(", " AS DOUBLE))"), (total, count))
    # rounded half up to scale + 4 digits, in integers: 10^(scale+4)·total div count
    target = min(scale + 4, 38)
    power = "1" + "0" * target
    u = f") * {power}BD AS DECIMAL(38,0))"
    n = " AS DECIMAL(20,0))"
    text = (
        "CAST((CAST((",
        f"{u} DIV CAST(",
        f"{n} + CASE WHEN 2 * ABS(CAST((",
        f"{u} % CAST(",
        f"{n}) >= ",
        " THEN SIGN(",
        f") ELSE 0 END) / {power}BD AS DECIMAL({min(precision + 4, 38)},{target}))",
    )
    return Opaque(text, (total, count, total, count, count, total))


def changed(a: Agg, x: Scalar | None, weight: Col) -> tuple[Agg, ...]:
    """The change of a stored part, as aggregates over a signed change.

    One sum for counts and sums; for an extremum two: of the removed values and of the added ones.
    """
    if x is None:
        return (Agg("sum", (weight,), False, "bigint"),)
    if a.function == "count":
        known = call("case", call("is_null", x), Const(0), weight)
        return (Agg("sum", (known,), False, "bigint"),)
    if a.function == "sum":
        times: Scalar = weight
        if decimal(a.type)[0]:
            times = Opaque(("CAST(", " AS INT)"), (weight,))
        return (Agg("sum", (Call("*", (x, times)),), False, a.type),)
    gone = call("case", call("<", weight, Const(0)), x, Const(None))
    come = call("case", call(">", weight, Const(0)), x, Const(None))
    return Agg(a.function, (gone,), False, a.type), Agg(a.function, (come,), False, a.type)
