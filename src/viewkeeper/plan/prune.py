"""Column pruning: a query over no more columns of its tables than it uses.

A narrow leaf means less to read, and a change that does not touch the used columns nets to nothing.
"""

from __future__ import annotations

from viewkeeper.algebra.nodes import (
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
from viewkeeper.algebra.pool import assert_never
from viewkeeper.algebra.scalars import (
    Agg,
    Col,
    Opaque,
    Scalar,
    columns_of,
    replace_agg,
    replace_columns,
)
from viewkeeper.algebra.walk import postorder

Places = dict[int, int]  # column of the old node -> column of the narrow one


def prune(query: Query) -> Query:
    """The same query over narrower tables.

    >>> from viewkeeper import algebra as al
    >>> R = al.table("R", ["a", "b", "c"])
    >>> q = prune(R.select("b > 1").project(["a"]))
    >>> print(q, al.tables(q)[0].columns)
    Π[a](σ[b > 1](R)) ('a', 'b')
    """
    needed: dict[Query, set[int]] = {}
    order = postorder(query)
    needed[query] = set(range(query.arity))
    for q in reversed(order):
        _ask(q, needed.setdefault(q, set()), needed)
    done: dict[Query, tuple[Query, Places]] = {}
    for q in order:
        done[q] = _narrow(q, needed[q], done)
    return _exactly(query, done[query], list(range(query.arity)))


def _ask(q: Query, wanted: set[int], needed: dict[Query, set[int]]) -> None:
    """What the inputs of a node must give."""

    def ask(child: Query, columns: set[int]) -> None:
        needed.setdefault(child, set()).update(columns)

    match q:
        case Table() | Empty() | Literal():
            return
        case Select(s, p):
            ask(s, wanted | columns_of(p))
        case Project(s, items, _):
            ask(s, {c for i in wanted for c in columns_of(items[i])})
        case Plus(s, t):
            ask(s, wanted)
            ask(t, wanted)
        case Monus(s, t) | Min(s, t) | Max(s, t):
            ask(s, set(range(s.arity)))
            ask(t, set(range(t.arity)))
        case Distinct(s) | Net(s):
            ask(s, set(range(s.arity)))
        case GroupBy(s, keys, aggs, _):
            ask(s, set(keys))
            for i, a in enumerate(aggs):
                if len(keys) + i in wanted:
                    ask(s, {c for e in a.args for c in columns_of(e)})
        case Window(s, keys, functions, _):
            used = {c for f in functions for c in columns_of(f)}
            ask(s, {i for i in wanted if i < s.arity} | set(keys) | used)
        case Unnest(s, generator, _, _):
            ask(s, {i for i in wanted if i < s.arity} | columns_of(generator))
        case Top(s, orders, _, _):
            # which rows are the first may depend on all columns where the order leaves ties
            ask(s, set(range(s.arity)) if orders else wanted)
        case Semi(s, t, on) | Anti(s, t, on):
            used_on = columns_of(on)
            ask(s, wanted | {i for i in used_on if i < s.arity})
            ask(t, {i - s.arity for i in used_on if i >= s.arity})
        case Product(s, t):
            ask(s, {i for i in wanted if i < s.arity})
            ask(t, {i - s.arity for i in wanted if i >= s.arity})
        case Join(s, t, on) | Left(s, t, on) | Right(s, t, on) | Full(s, t, on):
            both = wanted | columns_of(on)
            ask(s, {i for i in both if i < s.arity})
            ask(t, {i - s.arity for i in both if i >= s.arity})
        case _:
            assert_never(q)


def _narrow(
    q: Query, wanted: set[int], done: dict[Query, tuple[Query, Places]]
) -> tuple[Query, Places]:
    """The node over narrow inputs, and where its columns went."""
    match q:
        case Table(name, names, state):
            keep = sorted(wanted) or [0]
            if len(keep) == len(names):
                return q, _same(len(names))
            new: Query = Table(name, tuple(names[i] for i in keep), state)
            return new, {c: i for i, c in enumerate(keep)}
        case Empty() | Literal():
            return q, _same(q.arity)
        case Select(s, p):
            below, places = done[s]
            return Select(below, _moved(p, places)), places
        case Project(s, items, names):
            below, places = done[s]
            keep = sorted(wanted) or [0]
            if not wanted and columns_of(items[0]) - places.keys():
                return Project(below, (), ()), {}
            kept = tuple(_moved(items[i], places) for i in keep)
            narrow = Project(below, kept, tuple(names[i] for i in keep))
            return narrow, {c: i for i, c in enumerate(keep)}
        case Plus(s, t):
            keep = sorted(wanted) or [0] if q.arity else []
            keep = [c for c in keep if c in done[s][1] and c in done[t][1]]
            both = Plus(_exactly(s, done[s], keep), _exactly(t, done[t], keep))
            return both, {c: i for i, c in enumerate(keep)}
        case Monus(s, t) | Min(s, t) | Max(s, t):
            every = list(range(q.arity))
            made = type(q)(_exactly(s, done[s], every), _exactly(t, done[t], every))
            return made, _same(q.arity)
        case Distinct(s) | Net(s):
            whole = _exactly(s, done[s], list(range(s.arity)))
            return type(q)(whole), _same(q.arity)
        case GroupBy(s, keys, aggs, names):
            below, places = done[s]
            keep = [i for i in range(len(aggs)) if len(keys) + i in wanted]
            kept_aggs = tuple(_moved_agg(aggs[i], places) for i in keep)
            grouped = GroupBy(
                below, tuple(places[k] for k in keys), kept_aggs, tuple(names[i] for i in keep)
            )
            where = {i: i for i in range(len(keys))}
            where |= {len(keys) + i: len(keys) + n for n, i in enumerate(keep)}
            return grouped, where
        case Window(s, keys, functions, names):
            below, places = done[s]
            moved = tuple(_moved_opaque(f, places) for f in functions)
            window = Window(below, tuple(places[k] for k in keys), moved, names)
            return window, _then(places, s.arity, below.arity, len(names))
        case Unnest(s, generator, names, outer):
            below, places = done[s]
            unnest = Unnest(below, _moved_opaque(generator, places), names, outer)
            return unnest, _then(places, s.arity, below.arity, len(names))
        case Top(s, order, limit, offset):
            below, places = done[s]
            return Top(below, tuple(_moved_opaque(o, places) for o in order), limit, offset), places
        case Semi(s, t, on) | Anti(s, t, on):
            (a, at), (b, bt) = done[s], done[t]
            return type(q)(a, b, _moved(on, _both(at, bt, s.arity, a.arity))), at
        case Product(s, t):
            (a, at), (b, bt) = done[s], done[t]
            return Product(a, b), _both(at, bt, s.arity, a.arity)
        case Join(s, t, on) | Left(s, t, on) | Right(s, t, on) | Full(s, t, on):
            (a, at), (b, bt) = done[s], done[t]
            joined = _both(at, bt, s.arity, a.arity)
            return type(q)(a, b, _moved(on, joined)), joined
        case _:
            assert_never(q)


def _exactly(old: Query, made: tuple[Query, Places], columns: list[int]) -> Query:
    """The narrow node with just these columns of the old one, in this order."""
    new, places = made
    if [places[c] for c in columns] == list(range(new.arity)):
        return new
    names = tuple(old.columns[c] for c in columns)
    return Project(new, tuple(Col(places[c]) for c in columns), names)


def _same(arity: int) -> Places:
    return {i: i for i in range(arity)}


def _then(places: Places, old: int, new: int, more: int) -> Places:
    return {**places, **{old + i: new + i for i in range(more)}}


def _both(a: Places, b: Places, old: int, new: int) -> Places:
    return {**a, **{old + c: new + i for c, i in b.items()}}


def _moved(e: Scalar, places: Places) -> Scalar:
    return replace_columns(e, lambda i: Col(places[i]))


def _moved_opaque(e: Opaque, places: Places) -> Opaque:
    moved = _moved(e, places)
    assert isinstance(moved, Opaque)
    return moved


def _moved_agg(a: Agg | Opaque, places: Places) -> Agg | Opaque:
    if isinstance(a, Opaque):
        return _moved_opaque(a, places)
    return replace_agg(a, lambda i: Col(places[i]))
