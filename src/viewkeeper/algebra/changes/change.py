"""The change of a query: which rules run, over which state of the tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.algebra.changes import aggregates, gl95, glt97, qw91
from viewkeeper.algebra.changes.propagation import (
    Changes,
    Figure,
    Pair,
    propagate,
    table_change,
)
from viewkeeper.algebra.nodes import NEW, GroupBy, Node, Query, Table
from viewkeeper.algebra.scope import A_QUERY, expect
from viewkeeper.algebra.walk import substitute, tables
from viewkeeper.errors import ArityError, ChangeError, UnknownTableError, suggestion


@dataclass(frozen=True)
class Change:
    """∇q and Δq as queries, and the query q whose change they are."""

    query: Query
    removed: Query
    added: Query

    def __iter__(self) -> Iterator[Query]:
        return iter((self.removed, self.added))

    def __str__(self) -> str:
        return f"∇ = {self.removed}\nΔ = {self.added}"


Changed = Iterable[str] | Mapping[str, tuple[Query, Query]]


def change(
    query: Query,
    changed: Changed,
    *,
    semantics: str = "bag",
    state: str = "before",
    aggregates: str = "recompute",
) -> Change:
    """The strongly minimal change of a query, as two queries.

    Parameters
    ----------
    query : Query
    changed : list of str, or mapping of str to (removed, added)
        The tables that change. A list, of tables of the query, leaves the changes open: the result
        reads ∇R and ΔR. A mapping, such as ``transaction(…)``, gives them as queries over the state
        before; it may speak of other tables too.
    semantics : "bag", "set" or "set-1991"
        Bags (Griffin & Libkin 1995), sets (Griffin, Libkin & Trickey 1997), or the original rules
        for sets (Qian & Wiederhold 1991), which are correct but not minimal.
    state : "before" or "after"
        The state of the tables in which the result is evaluated: before the transaction (R), or
        after it, from a change log (R@new).
    aggregates : "recompute" or "stored"
        Γ from the touched groups, or from stored sums (which must be exact) and the change alone.

    Examples
    --------
    >>> from viewkeeper import algebra as al
    >>> R, S = al.table("R", ["a"]), al.table("S", ["a"])
    >>> print(al.change(R - S, changed=["S"]))
    ∇ = ((∅[a] ∸ ∇S) ⊎ (ΔS ∸ ∅[a])) min (R ∸ S)
    Δ = ((∅[a] ∸ ΔS) ⊎ (∇S ∸ ∅[a])) ∸ (S ∸ R)
    >>> print(al.simplify(al.change(R - S, changed=["S"]).added))
    ∇S ∸ (S ∸ R)
    """
    expect(query, Node, "the query", A_QUERY)
    expect(changed, Iterable, "the list of changed tables")
    _one_of("semantics", semantics, ("bag", "set", "set-1991"))
    _one_of("state", state, ("before", "after"))
    _one_of("aggregates", aggregates, ("recompute", "stored"))
    if semantics != "bag":
        query = glt97.as_set(query)
    pairs = _table_changes(query, changed)
    if state == "after":
        return _from_log(query, pairs, semantics, aggregates)
    pair = _propagate(query, pairs, semantics, aggregates)
    return Change(query, pair.removed, pair.added)


def _propagate(query: Query, pairs: dict[Query, Pair], semantics: str, aggregates: str) -> Pair:
    if semantics == "set-1991":
        return qw91.propagate(query, pairs)
    figure = glt97.FIGURE_2 if semantics == "set" else gl95.FIGURE_3
    return propagate(query, pairs, _stored(figure) if aggregates == "stored" else figure)


def _from_log(query: Query, pairs: dict[Query, Pair], semantics: str, aggregates: str) -> Change:
    """Griffin & Kumar's past queries: η = {R ← (R ∸ ΔR) ⊎ ∇R} leads from the present to the past,
    so its ∇ is what was added since, and its Δ what was removed."""
    for table, pair in pairs.items():
        if pair != table_change(_table(table)):
            raise ChangeError(
                "a change given as queries is evaluated before its transaction",
                hint='Give a list of table names with state="after".',
            )
    present = {t: Table(_table(t).name, _table(t).names, NEW) for t in pairs}
    past: dict[Query, Pair] = {
        present[t]: Pair(pair.added, pair.removed) for t, pair in pairs.items()
    }
    now = substitute(query, present)
    back = _propagate(now, past, semantics, aggregates)
    return Change(now, back.added, back.removed)


def _table(q: Query) -> Table:
    assert isinstance(q, Table)
    return q


def _stored(figure: Figure) -> Figure:
    """The figure with Γ from stored sums wherever these suffice."""

    def nabla(q: Query, c: Changes) -> Query:
        stored = isinstance(q, GroupBy) and aggregates.storable(q)
        return aggregates.stored_nabla(q, c) if stored else figure.nabla(q, c)  # type: ignore[arg-type]

    def delta(q: Query, c: Changes) -> Query:
        stored = isinstance(q, GroupBy) and aggregates.storable(q)
        return aggregates.stored_delta(q, c) if stored else figure.delta(q, c)  # type: ignore[arg-type]

    return Figure(nabla, delta)


def _table_changes(query: Query, changed: Changed) -> dict[Query, Pair]:
    """The pair of each table of the query that changes."""
    plain = [t for t in tables(query) if t.state == ""]
    if not isinstance(changed, Mapping):
        names = [changed] if isinstance(changed, str) else list(changed)
        for name in names:
            expect(name, str, "the name of a changed table")
            if all(t.name != name for t in plain):
                raise UnknownTableError(
                    f"the query does not read table {name!r}, which is said to change",
                    hint=suggestion(name, (t.name for t in plain)),
                )
        return {t: table_change(t) for t in plain if t.name in names}
    pairs: dict[Query, Pair] = {}
    for t in plain:
        if t.name in changed:
            pair = _pair(t.name, changed[t.name])
            for part in pair:
                expect(part, Node, f"a part of the change of {t.name}", A_QUERY)
                if part.arity != t.arity:
                    raise ArityError(
                        f"the change of {t.name} has {part.arity} columns, the table {t.arity}",
                        hint=f"Give rows of ({', '.join(t.names)}).",
                    )
            pairs[t] = pair
    return pairs


def _pair(name: str, given: object) -> Pair:
    if not (isinstance(given, Sequence) and len(given) == 2):
        raise ChangeError(
            f"the change of {name} is {given!r}",
            hint="Give two queries: what is removed, and what is added.",
        )
    return Pair(*given)


def _one_of(what: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ChangeError(
            f"{what} is {value!r}", hint=f"Use one of {', '.join(map(repr, allowed))}."
        )
