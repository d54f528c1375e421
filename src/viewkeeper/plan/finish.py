"""Which aggregates can be kept from stored parts, exactly as Spark would compute them, and how.

COUNT, SUM and AVG of integers and decimals, MIN and MAX of anything. Sums of floating point numbers
depend on the order of addition and are computed again for the touched groups; so are variances.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from viewkeeper.algebra.scalars import Agg, Call, Col, Const, Opaque, Scalar, call

INTEGERS = ("tinyint", "smallint", "int", "bigint", "")  # "" is the algebra's own, untyped
EXTREMA = ("min", "max")
_KEPT_SCALE = 6  # digits after the point that Spark never cuts


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
    if not precision or (precision + 11 > 38 and scale > _KEPT_SCALE):
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
    if a.function == "avg" and a.type == "bigint":  # Spark adds doubles here, which do not overflow
        x = Opaque(("CAST(", " AS DECIMAL(20,0))"), a.args)
        a = Agg("sum", (x,), False, "decimal(20,0)")
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
    # rounded half up to scale + 4 digits, in decimals without any: 10^(scale+4)·total over count.
    # (DIV gives a BIGINT and SIGN a DOUBLE, which have too few digits.)
    target = scale + 4
    power = "1" + "0" * target
    u, n = f"CAST(@t * {power}BD AS DECIMAL(38,0))", "CAST(@n AS DECIMAL(20,0))"
    whole = f"CAST(({u} - {u} % {n}) / {n} AS DECIMAL({precision + 5},0))"
    up = f"CASE WHEN 2 * ABS({u} % {n}) < {n} THEN 0 WHEN @t < 0 THEN -1 ELSE 1 END"
    text = f"CAST(({whole} + {up}) / {power}BD AS DECIMAL({precision + 4},{target}))"
    pieces = re.split("@(t|n)", text)
    return Opaque(tuple(pieces[::2]), tuple(total if x == "t" else count for x in pieces[1::2]))


class Averaged(NamedTuple):
    """Which argument of an average's text is the sum and which the count, and its digits."""

    total: int
    number: int
    precision: int
    scale: int


@lru_cache(maxsize=1024)
def averaged(text: tuple[str, ...]) -> Averaged | None:
    """What the text of an average of decimals, as it is made here, says; None for other texts.

    >>> averaged(_average("decimal(15,2)", Col(0), Col(1)).parts), averaged(("(", " + 1)"))
    (Averaged(total=0, number=2, precision=19, scale=6), None)
    """
    digits = re.search(r" AS DECIMAL\((\d+),(\d+)\)\)$", text[-1])
    if digits is None or int(digits[1]) < 5 or int(digits[2]) < 4:
        return None
    made = _average(f"decimal({int(digits[1]) - 4},{int(digits[2]) - 4})", Col(0), Col(1))
    if not isinstance(made, Opaque) or made.parts != text:
        return None
    places = (made.args.index(Col(0)), made.args.index(Col(1)))
    return Averaged(*places, int(digits[1]), int(digits[2]))


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


def narrowed(a: Agg, change: Col) -> Scalar:
    """The change of a stored part, to be added to it. That of a sum of decimals has 38 digits by
    its type, and Spark would cut the last digit of what it is added to; so it gets the sum's.

    >>> narrowed(Agg("sum", (Col(0),), False, "decimal(20,10)"), Col(1)).parts
    ('CAST(', ' AS DECIMAL(30,10))')
    """
    precision, scale = decimal(a.type)
    if a.function != "sum" or scale <= _KEPT_SCALE:
        return change
    return Opaque(("CAST(", f" AS DECIMAL({precision + 10},{scale}))"), (change,))
