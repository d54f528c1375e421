"""Selections moved down to the inputs they are about; what all sides of an OR ask for comes first.

Spark's analyser leaves the conditions of a join above the semi joins that came from IN and EXISTS,
and those of FROM a, b, c at the last of the tables; there they would be met too late, after a
product of whole tables.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeGuard

from viewkeeper.algebra.nodes import (
    Anti,
    Join,
    Left,
    Plus,
    Product,
    Project,
    Query,
    Right,
    Select,
    Semi,
    Unnest,
)
from viewkeeper.algebra.scalars import (
    Call,
    Col,
    Opaque,
    Scalar,
    columns_of,
    conjunction,
    conjuncts,
    replace_columns,
    shift,
)
from viewkeeper.algebra.walk import rebuild

Parts = tuple[Scalar, ...]

_DEEPEST = 60  # levels that a condition is moved
_COMPARED = frozenset(("=", "<>", "<", "<=", ">", ">="))
_COUNTED = frozenset(("+", "-", "*"))  # NULL for a NULL, as the comparisons are


def push_down(query: Query) -> Query:
    """The same query, with its conditions as far down as they go.

    >>> from viewkeeper import algebra as al
    >>> R, S, T = (al.table(n, [a, b]) for n, a, b in ("Rab", "Scd", "Tef"))
    >>> q = R.product(S).semi(T, "a = e").select("a = c and b > 1")
    >>> print(push_down(q))
    (σ[b > 1](R) ⋈[a = c] S) ⋉[a = e] T
    >>> print(push_down(R.product(S).join(T, "a = c and d = e and f > 1")))
    (R ⋈[a = c] S) ⋈[d = e] σ[f > 1](T)
    """

    def moved(q: Query) -> Query | None:
        match q:
            case Select(s, p):
                return _sink(s, _factored(p), 0)
            case Join(s, t, on):
                return _join(s, t, _factored(on), 0)
            case _:
                return None

    return rebuild(query, moved)


def _factored(e: Scalar) -> tuple[Scalar, ...]:
    """The conjuncts, with A and B or A and C as A and (B or C), which holds for NULL too.

    >>> from viewkeeper import algebra as al
    >>> q = al.table("R", ["a", "b"]).select("(a = 1 and b = 2) or (a = 1 and b = 3)")
    >>> print(push_down(q))
    σ[a = 1 AND (b = 2 OR b = 3)](R)
    """
    found: list[Scalar] = []
    for part in conjuncts(e):
        sides = [conjuncts(a) for a in part.args] if _is_or(part) else []
        common = [c for c in dict.fromkeys(sides[0]) if all(c in s for s in sides)] if sides else []
        rest = [[c for c in s if c not in common] for s in sides]
        if common and all(rest):
            part = Call("or", tuple(conjunction(s) for s in rest))
        elif common:
            part = common.pop()
        found += [*common, part]
    return tuple(dict.fromkeys(found))


def _is_or(e: Scalar) -> TypeGuard[Call]:
    return isinstance(e, Call) and e.op == "or"


def _sink(q: Query, parts: Sequence[Scalar], depth: int) -> Query:
    """σ[parts](q), each part where it belongs."""
    if not parts:
        return q
    if depth < _DEEPEST:
        match q:
            case Select(s, p):
                return _sink(s, (*conjuncts(p), *parts), depth + 1)
            case Semi(s, t, on) | Anti(s, t, on):
                return type(q)(_sink(s, parts, depth + 1), t, on)
            case Plus(s, t):
                return Plus(_sink(s, parts, depth + 1), _sink(t, parts, depth + 1))
            case Project(s, items, names):
                here = tuple(e for e in parts if not _plain(e, items))
                through = [e for e in parts if _plain(e, items)]
                below = [replace_columns(e, lambda i: items[i]) for e in through]
                return _over(Project(_sink(s, below, depth + 1), items, names), here)
            case Unnest(s, generator, names, outer):
                left, right, both = _sides(parts, s.arity)
                here = (*(shift(e, s.arity) for e in right), *both)
                return _over(Unnest(_sink(s, left, depth + 1), generator, names, outer), here)
            case Left(s, t, on):
                left, right, both = _sides(parts, s.arity)
                if any(_rejects(e, s.arity) for e in parts):  # no padded row stays
                    return _sink(Join(s, t, on), parts, depth + 1)
                here = (*(shift(e, s.arity) for e in right), *both)
                return _over(Left(_sink(s, left, depth + 1), t, on), here)
            case Right(s, t, on):
                left, right, both = _sides(parts, s.arity)
                return _over(Right(s, _sink(t, right, depth + 1), on), (*left, *both))
            case Product(s, t):
                return _join(s, t, parts, depth)
            case Join(s, t, on):
                return _join(s, t, (*conjuncts(on), *parts), depth)
    return _over(q, parts)


def _join(s: Query, t: Query, parts: Sequence[Scalar], depth: int) -> Query:
    left, right, both = _sides(parts, s.arity)
    a, b = _sink(s, left, depth + 1), _sink(t, right, depth + 1)
    return Join(a, b, conjunction(both)) if both else Product(a, b)


def _over(q: Query, parts: Sequence[Scalar]) -> Query:
    return Select(q, conjunction(list(parts))) if parts else q


def _sides(parts: Sequence[Scalar], width: int) -> tuple[Parts, Parts, Parts]:
    """Conditions on left columns, on right ones (counted from zero), and on both or none."""
    left: list[Scalar] = []
    right: list[Scalar] = []
    both: list[Scalar] = []
    for e in parts:
        used = columns_of(e)
        if used and max(used) < width:
            left.append(e)
        elif used and min(used) >= width:
            right.append(shift(e, -width))
        else:
            both.append(e)
    return tuple(left), tuple(right), tuple(both)


def _plain(e: Scalar, items: Sequence[Scalar]) -> bool:
    """Whether a condition uses no more than columns that pass through."""
    used = columns_of(e)
    return bool(used) and all(isinstance(items[i], Col) for i in used)


def _rejects(e: Scalar, width: int) -> bool:
    """Whether a condition is never true where all columns from ``width`` on are NULL."""
    return isinstance(e, Call) and e.op in _COMPARED and _null(e, width)


def _null(e: Scalar, width: int) -> bool:
    """Whether an expression is NULL where all columns from ``width`` on are."""
    match e:
        case Col(index):
            return index >= width
        case Call(op, args) if op in _COMPARED or op in _COUNTED:
            return any(_null(a, width) for a in args)
        case Opaque((before, after), (arg,)):
            return before == "CAST(" and after.startswith(" AS ") and _null(arg, width)
        case _:
            return False
