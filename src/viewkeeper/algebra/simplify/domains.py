"""What a predicate that is TRUE says of single columns: ranges, lists of values, NULL or not.

The knowledge is sound and modest: a domain may be too wide, never too narrow. ``None`` instead of
a table of domains means that no row can be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.scalars import Call, Col, Const, Scalar, conjuncts


@dataclass(frozen=True)
class Domain:
    """The values a column may have: between two bounds, among some values, NULL or not."""

    null: bool = True  # may be NULL
    value: bool = True  # may be other than NULL
    low: Any = None
    low_open: bool = False
    high: Any = None
    high_open: bool = False
    among: frozenset[Any] | None = None
    without: frozenset[Any] = frozenset()  # values between the bounds that it does not have

    @property
    def impossible(self) -> bool:
        return not self.null and not self.value


ANY = Domain()
NOT_NULL = Domain(null=False)
ONLY_NULL = Domain(value=False)
Domains = Mapping[int, Domain]


def meet(a: Domain, b: Domain) -> Domain:
    """The values allowed by both.

    >>> meet(Domain(low=1), Domain(high=0, null=False)).impossible
    True
    """
    if a is b or b is ANY:
        return a
    try:
        low, low_open = _tighter(a.low, a.low_open, b.low, b.low_open, lower=True)
        high, high_open = _tighter(a.high, a.high_open, b.high, b.high_open, lower=False)
        among = a.among if b.among is None else b.among if a.among is None else _both(a, b)
        without = a.without | b.without
        bounds = low, low_open, high, high_open, among, without
        value = a.value and b.value and _inhabited(*bounds)
    except TypeError:  # values of different types: nothing is known
        return Domain(null=a.null and b.null, value=a.value and b.value)
    return Domain(a.null and b.null, value, *bounds)


def hull(a: Domain, b: Domain) -> Domain:
    """A domain that allows what either allows."""
    if a is b:
        return a
    null = a.null or b.null
    if not a.value or not b.value:
        kept = b if not a.value else a
        return Domain(null, kept.value, *_bounds(kept))
    try:
        low, low_open = _looser(a.low, a.low_open, b.low, b.low_open, lower=True)
        high, high_open = _looser(a.high, a.high_open, b.high, b.high_open, lower=False)
    except TypeError:
        return Domain(null)
    among = a.among | b.among if a.among is not None and b.among is not None else None
    return Domain(null, True, low, low_open, high, high_open, among, a.without & b.without)


Bounds = tuple[Any, bool, Any, bool, "frozenset[Any] | None", "frozenset[Any]"]


def _bounds(d: Domain) -> Bounds:
    return d.low, d.low_open, d.high, d.high_open, d.among, d.without


def _both(a: Domain, b: Domain) -> frozenset[Any]:
    """The values in both lists; a TypeError where engines might find unlike ones equal."""
    assert a.among is not None and b.among is not None
    if len({_kind(v) for v in a.among | b.among}) > 1:
        raise TypeError
    return a.among & b.among


def _kind(v: Any) -> str:
    return "number" if isinstance(v, (int, float)) else type(v).__name__


def _tighter(x: Any, x_open: bool, y: Any, y_open: bool, lower: bool) -> tuple[Any, bool]:
    if x is None or y is None:
        return (y, y_open) if x is None else (x, x_open)
    if x == y:
        return x, x_open or y_open
    return (x, x_open) if (x > y) == lower else (y, y_open)


def _looser(x: Any, x_open: bool, y: Any, y_open: bool, lower: bool) -> tuple[Any, bool]:
    if x is None or y is None:
        return None, False
    if x == y:
        return x, x_open and y_open
    return (x, x_open) if (x < y) == lower else (y, y_open)


def _inhabited(
    low: Any,
    low_open: bool,
    high: Any,
    high_open: bool,
    among: frozenset[Any] | None,
    without: frozenset[Any],
) -> bool:
    if among is not None:
        return any(_inside(v, low, low_open, high, high_open) for v in among - without)
    if low is None or high is None:
        return True
    closed = not low_open and not high_open and low not in without
    return bool(low < high or (low == high and closed))


def _inside(v: Any, low: Any, low_open: bool, high: Any, high_open: bool) -> bool:
    above = low is None or v > low or (v == low and not low_open)
    below = high is None or v < high or (v == high and not high_open)
    return above and below


def meet_all(a: Domains | None, b: Domains | None) -> Domains | None:
    """Both tables of domains hold of the same row; None when no row can be."""
    if a is None or b is None:
        return None
    if len(a) < len(b):
        a, b = b, a
    if not b:
        return a
    both = dict(a)
    for column, domain in b.items():
        known = both.get(column)
        if known is not domain:
            here = domain if known is None else meet(known, domain)
            if here.impossible:
                return None
            both[column] = here
    return both


def hull_all(a: Domains | None, b: Domains | None) -> Domains | None:
    """One or the other table of domains holds of a row."""
    if a is None or b is None:
        return b if a is None else a
    if a is b:
        return a
    return {c: hull(a[c], b[c]) for c in a.keys() & b.keys()}


def contradict(a: Domains | None, b: Domains | None) -> bool:
    """Can no row satisfy both?"""
    if a is None or b is None:
        return True
    if len(a) > len(b):
        a, b = b, a
    for c, d in a.items():
        other = b.get(c, d)
        if other is not d and meet(d, other).impossible:
            return True
    return False


def of_predicate(p: Scalar) -> Domains | None:
    """What holds of a row for which ``p`` is TRUE.

    >>> of_predicate(Call("=", (Col(0), Const(5))))[0].low
    5
    """
    match p:
        case Const(value):
            return {} if value is True else None
        case Col(index):
            return {index: Domain(null=False, among=frozenset([True]))}
        case Call("and", args):
            domains: Domains | None = {}
            for a in args:
                domains = meet_all(domains, of_predicate(a))
            return _equalities(args, domains)
        case Call("or", args):
            domains = of_predicate(args[0])
            for a in args[1:]:
                domains = hull_all(domains, of_predicate(a))
            return domains
        case Call("not", (Call("is_null", (Col(index),)),)):
            return {index: NOT_NULL}
        case Call("is_null", (Col(index),)):
            return {index: ONLY_NULL}
        case Call("in", (Col(index), *values)):
            known = _constants(values)
            if known is None:
                return {index: NOT_NULL}
            return {index: Domain(null=False, among=known - {None})}
        case Call("not", (Call("in", (Col(index), *values)),)):
            known = _constants(values)
            if known is None:
                return {index: NOT_NULL}
            return None if None in known else {index: Domain(null=False, without=known)}
        case Call("not", (Call("=" | "<>" as op, (a, b)),)):
            return _comparison("<>" if op == "=" else "=", a, b)
        case Call(op, (a, b)) if op in _COMPARE:
            return _comparison(op, a, b)
        case _:
            return {}


def _constants(values: Sequence[Scalar]) -> frozenset[Any] | None:
    """The values of constants; None where some are no constants, or NaN, which equals nothing."""
    found = [v.value for v in values if isinstance(v, Const)]
    known = len(found) == len(values) and all(v == v for v in found)
    return frozenset(found) if known else None


_COMPARE = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<=", "<>": "<>", "<=>": "<=>"}


def _comparison(op: str, a: Scalar, b: Scalar) -> Domains | None:
    if isinstance(a, Const) and not isinstance(b, Const):
        op, a, b = _COMPARE[op], b, a
    if isinstance(b, Const):
        if b.value is None:
            if op != "<=>":
                return None  # a comparison with NULL is never TRUE
            return {a.index: ONLY_NULL} if isinstance(a, Col) else {}
        if not isinstance(a, Col) or b.value != b.value:  # NaN compares with nothing here
            return {}
        return {a.index: _range(op, b.value)}
    if op == "<=>":
        return {}
    return {c.index: NOT_NULL for c in (a, b) if isinstance(c, Col)}


def _range(op: str, v: Any) -> Domain:
    match op:
        case "=" | "<=>":
            return Domain(null=False, low=v, high=v)
        case "<":
            return Domain(null=False, high=v, high_open=True)
        case "<=":
            return Domain(null=False, high=v)
        case ">":
            return Domain(null=False, low=v, low_open=True)
        case ">=":
            return Domain(null=False, low=v)
        case _:  # <>
            return Domain(null=False, without=frozenset([v]))


def where(domains: Domains | None, p: Scalar) -> Domains | None:
    """What holds of those rows of a query for which ``p`` is TRUE.

    >>> where({0: Domain(high=4), 1: Domain(low=9)}, Call("=", (Col(0), Col(1)))) is None
    True
    """
    if domains is None:
        return None
    return _equalities(conjuncts(p), meet_all(domains, of_predicate(p)))


def _equalities(parts: Sequence[Scalar], domains: Domains | None) -> Domains | None:
    """Carries what is known of one column to those it is said to be equal to."""
    for a in parts:
        match a:
            case Call("=" | "<=>", (Col(i), Col(j))) if domains is not None:
                here, there = domains.get(i, ANY), domains.get(j, ANY)
                if here is not there:
                    both = meet(here, there)
                    domains = meet_all(domains, {i: both, j: both})
            case _:
                pass
    return domains
