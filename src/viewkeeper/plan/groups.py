"""A view stored by groups: Γ at its root, possibly with σ (HAVING), Π and τ (LIMIT) above.

The store has one row per group: the keys, and either the parts from which the aggregates follow
(counts, sums, extrema: kept from the change alone), or the aggregates themselves (computed again
for the touched groups). What stands above Γ is applied when the view is read.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from viewkeeper.algebra.changes.signed import WEIGHT, minus, plus
from viewkeeper.algebra.nodes import (
    Anti,
    Distinct,
    Empty,
    Full,
    GroupBy,
    Left,
    Project,
    Query,
    Select,
    Top,
    with_children,
)
from viewkeeper.algebra.scalars import (
    FALSE,
    NULL,
    Agg,
    Call,
    Col,
    Const,
    Opaque,
    Scalar,
    call,
    conjunction,
    equal_columns,
)
from viewkeeper.plan import finish
from viewkeeper.plan.finish import EXTREMA
from viewkeeper.plan.present import Present, touched_keys
from viewkeeper.plan.restrict import restrict
from viewkeeper.plan.steps import (
    DELETE,
    OP,
    UPSERT,
    Compute,
    Patch,
    Refresh,
    store_leaf,
    stored_names,
)

ROWS = Agg("count", ())


@dataclass(frozen=True)
class GroupStore:
    """The store of a view with one row per group."""

    query: Query
    above: tuple[Query, ...]  # the nodes above Γ, outermost first
    group: GroupBy
    key_names: tuple[str, ...]

    @property
    def has_top(self) -> bool:
        """Is it the first groups only that readers see?"""
        return any(isinstance(q, Top) for q in self.above)

    @property
    def stored(self) -> bool:
        """Are the aggregates kept from parts, without a look at the sources?"""
        return all(finish.storable(a) for a in self.group.aggs)

    @property
    def held(self) -> tuple[Agg | Opaque, ...]:
        """What the store holds per group besides the keys: the number of rows first."""
        return self.parts if self.stored else (ROWS, *self.group.aggs)

    @property
    def parts(self) -> tuple[Agg, ...]:
        """The number of rows, and what each aggregate is kept from."""
        found = [ROWS]
        for a in self.group.aggs:
            assert isinstance(a, Agg)
            found += finish.parts(a)
        return tuple(dict.fromkeys(found))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the store."""
        return self.key_names + tuple(f"__{i}" for i in range(len(self.held)))

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns by which rows of the store are found."""
        return self.key_names

    def state(self, s: Query) -> GroupBy:
        """Γ[keys; parts](s): rows of the store from rows of the input."""
        names = self.columns[len(self.key_names) :]
        made = GroupBy(s, self.group.keys, self.held, names)
        assert isinstance(made, GroupBy)
        return made

    def build(self) -> Query:
        """The rows of the store, from scratch."""
        state = self.state(self.group.s)
        return Project(state, tuple(Col(i) for i in range(state.arity)), self.columns)

    def visible(self, store: Query) -> Query:
        """The view's rows, from the store's."""
        width = len(self.key_names)
        keys: tuple[Scalar, ...] = tuple(Col(i) for i in range(width))
        if self.stored:
            place = {p: Col(width + i) for i, p in enumerate(self.parts)}
            values = tuple(
                finish.finished(a, Col(width), place) for a in self.group.aggs if isinstance(a, Agg)
            )
        else:
            values = tuple(Col(width + 1 + i) for i in range(len(self.group.aggs)))
        rows: Query = Project(store, (*keys, *values), self.group.columns)
        for node in reversed(self.above):
            rows = with_children(node, (rows,))
        return rows

    def refresh(self, changed: Collection[str]) -> Refresh:
        """The steps of an incremental refresh."""
        present = Present(self.group.s, changed)
        signed = present.change(self.group.s)
        assert signed is not None
        if self.stored:
            return self._from_parts(present, signed)
        return self._again(present, signed)

    # ── from the stored parts ──

    def _from_parts(self, present: Present, signed: Query) -> Refresh:
        width, parts = len(self.key_names), self.parts
        extrema = [i for i, p in enumerate(parts) if p.function in EXTREMA]
        delta = self._delta(signed, netted=bool(extrema))
        store = store_leaf(self.columns)
        places = tuple(range(width))
        on = equal_columns(places, places, delta.arity)
        merged = Left(delta, store, on)
        value, doubt = self._renewed(merged, delta.arity, extrema)
        keys = tuple(Col(i) for i in range(width))
        old = tuple(Col(delta.arity + width + i) for i in range(len(parts)))
        names = self.key_names + _named("old", len(parts)) + _named("new", len(parts))
        groups = Compute(
            "groups",
            Project(merged, (*keys, *old, *value, doubt), (*names, "__doubt")),
            "per touched group: the stored parts, and the parts after the change",
        )
        if not extrema:
            return self._finish(groups, None)
        lost = Select(groups.leaf, Col(width + 2 * len(parts)))
        k = Project(lost, keys, self.key_names)
        again = Compute(
            "again",
            self.state(restrict(present.new(self.group.s), self.group.keys, k)),
            "groups whose minimum or maximum was deleted and not beaten, computed again",
            ("groups", "__doubt"),
        )
        return self._finish(groups, again)

    def _delta(self, signed: Query, netted: bool) -> Query:
        """Per touched group: the change of each part (of an extremum: removed, added)."""
        weight = signed.arity - 1
        group_keys = tuple(range(len(self.group.keys)))
        args = [p.args[0] for p in self.parts if p.args]
        items: list[Scalar] = [Col(k) for k in self.group.keys]
        items += list(dict.fromkeys(args))
        names = tuple(f"c{i}" for i in range(len(items)))
        rows: Query = Project(signed, (*items, Col(weight)), (*names, WEIGHT))
        w = Col(len(items))
        if netted:  # a row added and removed again must not count as an extremum
            sums = (Agg("sum", (w,)),)
            rows = GroupBy(rows, tuple(range(len(items))), sums, (WEIGHT,))
            rows = Select(rows, call("<>", w, Const(0)))
        aggs: list[Agg] = []
        for p in self.parts:
            x = Col(items.index(p.args[0], len(group_keys))) if p.args else None
            aggs += finish.changed(p, x, w)
        return GroupBy(rows, group_keys, tuple(aggs), tuple(f"d{i}" for i in range(len(aggs))))

    def _renewed(
        self, merged: Query, right: int, extrema: list[int]
    ) -> tuple[tuple[Scalar, ...], Scalar]:
        """The parts after the change, and whether a group must be looked up again."""
        width, parts = len(self.key_names), self.parts
        value: list[Scalar] = []
        doubts: list[Scalar] = []
        at = width
        places = {p: i for i, p in enumerate(parts)}
        for i, p in enumerate(parts):
            old = Col(right + width + i)
            if i in extrema:
                gone, come = Col(at), Col(at + 1)
                new, doubt = _extremum(p.function, old, gone, come)
                if not self.key_names:  # the only group stays when its last row goes
                    new = call("case", call("<=", value[0], Const(0)), NULL, new)
                value.append(new)
                doubts.append(doubt)
                at += 2
                continue
            zero = Const(0)
            change = finish.narrowed(p, Col(at))
            total = call("+", call("coalesce", old, zero), call("coalesce", change, zero))
            if p.function == "sum":  # NULL when no value is left
                number = value[places[Agg("count", p.args, False, p.type)]]
                total = call("case", call("=", number, zero), NULL, total)
            value.append(total)
            at += 1
        doubt = FALSE if not doubts else doubts[0] if len(doubts) == 1 else Call("or", (*doubts,))
        known = call("coalesce", doubt, FALSE)
        return tuple(value), conjunction([known, call(">", value[0], Const(0))])

    # ── computed again ──

    def _again(self, present: Present, signed: Query) -> Refresh:
        width = len(self.key_names)
        store: Query = store_leaf(self.columns)
        now = present.new(self.group.s)
        places = tuple(range(width))
        touched: Compute | None = None
        there = store
        if width:
            k = touched_keys([signed], self.group.keys)
            named = Project(k, tuple(Col(i) for i in range(width)), self.key_names)
            touched = Compute("touched", named, "the keys of the touched groups")
            now = restrict(now, self.group.keys, touched.leaf)
            there = restrict(store, places, touched.leaf)
        new = self.state(now)
        on = equal_columns(places, places, new.arity)
        merged = Full(new, there, on)
        parts = len(self.held)
        keys = tuple(
            call("case", _known(Col(width)), Col(i), Col(new.arity + i)) for i in range(width)
        )
        old = tuple(Col(new.arity + width + i) for i in range(parts))
        value = tuple(Col(width + i) for i in range(parts))
        names = self.key_names + _named("old", parts) + _named("new", parts)
        groups = Compute(
            "groups",
            Project(merged, (*keys, *old, *value, FALSE), (*names, "__doubt")),
            "the touched groups as stored, and computed again from the sources",
        )
        return self._finish(groups, None, first=touched)

    # ── the end, for both ──

    def _finish(
        self, groups: Compute, again: Compute | None, first: Compute | None = None
    ) -> Refresh:
        width, n = len(self.key_names), len(self.held)
        keys = tuple(Col(i) for i in range(width))
        leaf: Query = groups.leaf
        doubt = Col(width + 2 * n)
        sure = Select(leaf, call("not", doubt)) if again else leaf
        values = tuple(Col(width + n + i) for i in range(n))
        new: Query = Project(sure, (*keys, *values), self.columns)
        if again:
            state = Project(again.leaf, tuple(Col(i) for i in range(width + n)), self.columns)
            new = new + state
        there = call(">", call("coalesce", Col(width), Const(0)), Const(0))
        kept = Select(new, there) if self.group.keys else Select(new, _known(Col(width)))
        empty = call("<=", call("coalesce", Col(width + n), Const(0)), Const(0))
        was = call(">", call("coalesce", Col(width), Const(0)), Const(0))
        columns = (*self.columns, OP)
        upsert = Project(kept, (*keys, *(Col(width + i) for i in range(n)), Const(UPSERT)), columns)
        rows: Query = upsert
        if self.group.keys:
            gone = Select(leaf, conjunction([was, empty]))
            old = tuple(Col(width + i) for i in range(n))
            rows = upsert + Project(gone, (*keys, *old, Const(DELETE)), columns)
        stored = Project(leaf, (*keys, *(Col(width + i) for i in range(n))), self.columns)
        exists = there if self.group.keys else _known(Col(width))
        before = self.visible(Select(stored, exists))
        change = plus(self.visible(kept)) + minus(before)
        if self.has_top:  # which groups are the first depends on all
            store, places = store_leaf(self.columns), tuple(range(width))
            rest = Anti(store, leaf, equal_columns(places, places, store.arity))
            change = plus(self.visible(rest + kept)) + minus(self.visible(store))
        computes = tuple(c for c in (first, groups, again) if c)
        return Refresh(computes, Patch(rows, self.keys), change, reads_store=self.has_top)


def net_rows(signed: Query) -> Query:
    """A signed change netted: each row once, with a weight other than zero."""
    width = signed.arity - 1
    if isinstance(signed, Empty):
        return signed
    sums = (Agg("sum", (Col(width),)),)
    grouped = GroupBy(signed, tuple(range(width)), sums, (WEIGHT,))
    return Select(grouped, call("<>", Col(width), Const(0)))


def group_store(q: Query) -> GroupStore | None:
    """The store by groups, if the query is Γ or ε with only σ, Π and τ above."""
    above: list[Query] = []
    node = q
    while isinstance(node, (Select, Project, Top)):
        above.append(node)
        node = node.s
    if isinstance(node, Distinct):  # ε(S) = Γ[all columns;](S)
        made = GroupBy(node.s, tuple(range(node.arity)), (), ())
        assert isinstance(made, GroupBy)
        node = made
    if not isinstance(node, GroupBy):
        return None
    names = stored_names(tuple(node.columns[: len(node.keys)]))
    return GroupStore(q, tuple(above), node, names)


def _extremum(function: str, n: Scalar, m: Scalar, k: Scalar) -> tuple[Scalar, Scalar]:
    """MIN after a change, and whether it is unknown: k ≤ n gives k, else m > n gives n."""
    at_most, beyond = ("<=", ">") if function == "min" else (">=", "<")
    beaten = call("or", call("is_null", n), call(at_most, k, n))
    value = call("case", conjunction([_known(k), beaten]), k, n)
    kept = call("or", call("is_null", k), call(beyond, k, n))
    return value, conjunction([call(at_most, m, n), kept])


def _known(e: Scalar) -> Scalar:
    return call("not", call("is_null", e))


def _named(prefix: str, n: int) -> tuple[str, ...]:
    return tuple(f"__{prefix}{i}" for i in range(n))
