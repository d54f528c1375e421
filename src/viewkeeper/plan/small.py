"""Which parts of a query are small when the change is: they are broadcast, never shuffled."""

from __future__ import annotations

from viewkeeper.algebra.nodes import (
    SIGNED,
    Anti,
    Distinct,
    Empty,
    Full,
    GroupBy,
    Join,
    Left,
    Literal,
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
    Window,
)
from viewkeeper.algebra.walk import postorder
from viewkeeper.plan.steps import STORE


def small_parts(query: Query) -> set[Query]:
    """The nodes whose size follows from the change: what is joined with it or restricted to it.

    >>> from viewkeeper import algebra as al
    >>> R, S = al.table("R", ["a"]), al.table("S", ["b"])
    >>> from viewkeeper.plan.present import signed_change
    >>> d = signed_change(R.join(S, "a = b"), ["S"])
    >>> sorted(str(q) for q in small_parts(d))
    ['±S', '±S ⋈[a = b] R@new', 'Π[a, b, weight](±S ⋈[a = b] R@new)']
    """
    small: set[Query] = set()
    for q in postorder(query):
        match q:
            case Table(name, _, state):
                found = state == SIGNED or (name.startswith("#") and name != f"#{STORE}")
            case Empty() | Literal():
                found = True
            case Join(s, t) | Semi(s, t) | Min(s, t):
                found = s in small or t in small
            case Anti(s, _) | Monus(s, _) | Left(s, _):
                found = s in small
            case Right(_, t):
                found = t in small
            case Plus(s, t) | Max(s, t) | Product(s, t) | Full(s, t):
                found = s in small and t in small
            case Select(s) | Project(s) | Distinct(s) | GroupBy(s) | Net(s):
                found = s in small
            case Unnest(s) | Window(s) | Top(s):
                found = s in small
        if found:
            small.add(q)
    return small
