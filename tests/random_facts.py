"""Random facts, states and transactions that satisfy them, and pairs of queries that look alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Any

from random_queries import TABLES, Generator, plain_tables
from viewkeeper import algebra as al
from viewkeeper.algebra.meaning import Bag, Evaluation
from viewkeeper.algebra.nodes import STATES, Plus, Query, Table
from viewkeeper.algebra.scalar_meaning import Compiled, compile_scalar
from viewkeeper.algebra.scalar_text import read_scalar
from viewkeeper.algebra.scope import Scope
from viewkeeper.algebra.simplify.domains import Domain
from viewkeeper.algebra.simplify.facts import positions
from viewkeeper.algebra.simplify.knowledge import Knowledge
from viewkeeper.algebra.walk import postorder, substitute

State = dict[str, Bag]
Changes = dict[str, tuple[Bag, Bag]]
Moment = tuple[State, Changes]  # the state before, and what a transaction does

CHECKS = ("a > 1", "a < 2", "a IN (1, 2)", "b IS NOT NULL", "a IS NULL OR b = 1", "a = b")
CHECKS += ("a <=> b", "a = 1 OR a = 3", "a IS NULL", "a IS NOT NULL AND b >= 2", "a <> 2")
CHECKS += ("NOT a IN (1, 3)", "NOT a = 2", "a <> 1 AND b = a")
CHECKS += ("a IN (3, NULL)", "b IS NULL AND a = 1 OR a > 2", "a <=> 1", "a = b AND b < 2", "2 <= a")


class FactGenerator(Generator):
    """Random queries that also read ∇R, ΔR, R@old and R@new, and random facts."""

    stateful = True

    def leaf(self) -> Query:
        found = super().leaf()
        if self.stateful and isinstance(found, Table) and self.random.random() < 0.4:
            return Table(found.name, found.names, self.random.choice(STATES))
        return found

    def facts(self) -> al.Facts:
        """Facts about some of the tables."""
        r = self.random
        names = [t.name for t in TABLES]
        some = [n for n in names if r.random() < 0.4]
        keys: dict[str, Any] = {}
        for n in names:
            if r.random() < 0.4:
                keys[n] = r.choice((["a"], "b", ["a", "b"], [["a"], ["b"]], [[]]))
        references: list[tuple[str, Sequence[str], str, Sequence[str]]] = []
        for _ in range(r.choice((0, 1, 1, 2))):
            child, parent = r.choice(names), r.choice(names)
            columns = r.choice((("a", "a"), ("a", "a"), ("b", "a"), ("a", "b"), ("ab", "ab")))
            references.append((child, list(columns[0]), parent, list(columns[1])))
        contained, disjoint = (
            [tuple(r.sample(TABLES, 2)) for _ in range(r.choice((0, 0, 1)))] for _ in range(2)
        )
        return al.Facts(
            keys=keys,
            foreign_keys=references,
            append_only=[n for n in names if r.random() < 0.5],
            insert_free=[n for n in names if r.random() < 0.15],
            duplicate_free=[n for n in names if r.random() < 0.2],
            checks={n: r.choice(CHECKS) for n in some},
            contained=contained,  # type: ignore[arg-type]
            disjoint=disjoint,  # type: ignore[arg-type]
        )

    def alike(self, q: Query) -> Query:
        """A query that differs from ``q`` in one place, so that proofs are often possible."""
        r = self.random
        node = r.choice([n for n in postorder(q) if n.arity])
        again = (n for n in postorder(q) if n.arity == node.arity)
        other = r.choice(list(again)) if r.random() < 0.7 else self.like(node)
        columns = " AND ".join(f"#{i} <=> #{i + node.arity}" for i in range(node.arity))
        p = f"#{r.randrange(node.arity)} {r.choice(('> 1', '= 2', 'IS NULL', '< 2', 'IN (1, 3)'))}"
        choices: tuple[Any, ...] = (
            lambda: node.select(p),
            lambda: node.distinct(),
            lambda: node - other,
            lambda: other - node,
            lambda: node & other,
            lambda: node | other,
            lambda: node + other,
            lambda: node.semi(other, columns),
            lambda: node.anti(other, columns),
            lambda: other,
        )
        return substitute(q, {node: r.choice(choices)()})

    def like(self, q: Query) -> Query:
        """A leaf with as many columns as ``q``."""
        leaf = self.leaf()
        return leaf.project({f"c{i}": f"#{i % 2}" for i in range(q.arity)})


def moments(g: Generator, facts: al.Facts, tables: Mapping[str, Table], count: int) -> list[Moment]:
    """States and transactions for which the facts hold before and after."""
    found = (moment(g, facts, tables) for _ in range(4 * count))
    return list(islice((m for m in found if m is not None), count))


def spoken_of(facts: al.Facts, tables: Mapping[str, Table], *queries: Query) -> dict[str, Table]:
    """Those of the tables that queries or facts read."""
    given = [q for pair in (*facts.contained, *facts.disjoint) for q in pair]
    names = {t.name for q in (*queries, *given) for t in al.tables(q)}
    names |= {n for fk in facts.foreign_keys for n in (fk[0], fk[2])}
    return {n: t for n, t in tables.items() if n in names}


def moment(g: Generator, facts: al.Facts, tables: Mapping[str, Table]) -> Moment | None:
    """A state and a transaction that satisfy the facts; None where none was found."""
    old = repaired(facts, {n: g.bag(t.arity) for n, t in tables.items()}, tables, {})
    for attempt in range(6):
        new = {n: _later(g, n, old[n], t, facts, attempt) for n, t in tables.items()}
        new = repaired(facts, new, tables, old)
        kept = all(n not in facts.append_only or not old[n] - new[n] for n in tables)
        less = all(n not in facts.insert_free or not new[n] - old[n] for n in tables)
        if kept and less:
            break
    else:
        new = old
    changes = {n: (old[n] - new[n], new[n] - old[n]) for n in tables}
    stated = (*facts.contained, *facts.disjoint)
    if any(not (isinstance(s, Table) and isinstance(t, Table)) for s, t in stated):
        for state in (old, new):
            at = {s: al.evaluate(s, state) for pair in stated for s in pair}
            if any(at[s] - at[t] for s, t in facts.contained):
                return None
            if any(at[s] & at[t] for s, t in facts.disjoint):
                return None
    return old, changes


def _later(g: Generator, n: str, old: Bag, t: Table, facts: al.Facts, attempt: int) -> Bag:
    r = g.random
    if r.random() < 0.15 * attempt:
        return old
    gone: Bag = Counter({row: r.randint(0, m) for row, m in old.items()})
    if n in facts.append_only or r.random() < 0.2:
        gone = Counter()
    come = Counter() if n in facts.insert_free else g.bag(t.arity, 3)
    return (old - gone) + come


def repaired(
    facts: al.Facts, state: State, tables: Mapping[str, Table], first: Mapping[str, Bag]
) -> State:
    """The state without the rows that break a fact; where one of two must go, ``first`` stays."""
    while True:
        found = {
            n: _legal(facts, tables[n], bag, first.get(n, Counter())) for n, bag in state.items()
        }
        for s, t in facts.contained:
            if isinstance(s, Table) and isinstance(t, Table) and s.name in found:
                found[s.name] = found[s.name] & found[t.name]
        for s, t in facts.disjoint:
            if isinstance(s, Table) and isinstance(t, Table) and s.name in found:
                there = found[t.name]
                found[s.name] = Counter({r: n for r, n in found[s.name].items() if r not in there})
        for fk in facts.references():
            if fk.table in found and fk.parent in found:
                own = positions(tables[fk.table], fk.columns)
                theirs = positions(tables[fk.parent], fk.parent_columns)
                found[fk.parent] = _unique(found[fk.parent], theirs, first.get(fk.parent, {}))
                there = {tuple(row[i] for i in theirs) for row in found[fk.parent]}
                keys = {row: tuple(row[i] for i in own) for row in found[fk.table]}
                found[fk.table] = Counter(
                    {
                        r: n
                        for r, n in found[fk.table].items()
                        if None in keys[r] or keys[r] in there
                    }
                )
        if found == state:
            return found
        state = found


def _legal(facts: al.Facts, table: Table, bag: Bag, first: Bag) -> Bag:
    if table.name in facts.checks:
        holds = _holds(facts.checks[table.name], table)
        bag = Counter({row: n for row, n in bag.items() if holds(row) is True})
    keys = facts.keys_of(table)
    if keys or table.name in facts.duplicate_free:
        bag = Counter(dict.fromkeys(bag, 1))
    seen: list[set[Any]] = [set() for _ in keys]
    kept: Bag = Counter()
    for row in sorted(bag, key=lambda row: row not in first):
        own = [tuple(row[i] for i in sorted(key)) for key in keys]
        if not any(value in there for value, there in zip(own, seen, strict=True)):
            kept[row] = bag[row]
            for value, there in zip(own, seen, strict=True):
                there.add(value)
    return kept


@cache
def _holds(text: str, table: Table) -> Compiled:
    return compile_scalar(read_scalar(text, Scope(table.scope)))


def _unique(bag: Bag, columns: Sequence[int], first: Mapping[Any, int]) -> Bag:
    """A referenced key: no two rows share it, but any number may have a NULL in it."""
    seen: set[Any] = set()
    kept: Bag = Counter()
    for row in sorted(bag, key=lambda row: row not in first):
        key = tuple(row[i] for i in columns)
        if None in key:
            kept[row] = bag[row]
        elif key not in seen:
            seen.add(key)
            kept[row] = 1
    return kept


# ── checks ──


def admits(d: Domain, value: Any) -> bool:
    """May a column of this domain have this value?"""
    if value is None:
        return d.null
    low = d.low is None or value > d.low or (value == d.low and not d.low_open)
    high = d.high is None or value < d.high or (value == d.high and not d.high_open)
    listed = (d.among is None or value in d.among) and value not in d.without
    return d.value and low and high and listed


def refute_query(q: Query, k: Knowledge, rows: Bag) -> str | None:
    """What is wrong with the facts of one query, given its rows; None where all is right."""
    if k.empty(q) and rows:
        return "not empty"
    if k.duplicate_free(q) and max(rows.values(), default=0) > 1:
        return "has duplicates"
    for key in k.keys(q):
        own = [tuple(row[i] for i in sorted(key)) for row in rows.elements()]
        if len(set(own)) < len(own):
            return f"{set(key)} is no key"
    for column, domain in (k.domains(q) or {}).items():
        for row in rows:
            if not admits(domain, row[column]):
                return f"column {column} has {row[column]!r}, not in {domain}"
    return None


def check_facts(seed: int) -> int:
    """What is proved of two queries that look alike is so, in states that satisfy the facts.

    The number of proofs about the pair.
    """
    g = FactGenerator(seed)
    facts, tables = g.facts(), {t.name: t for t in TABLES}
    s = g.query(g.random.randint(1, 4))
    t = g.alike(s)
    if g.random.random() < 0.5:
        s = g.alike(s)
    k = Knowledge(facts)
    proved = [(a, b, k.contained(a, b), k.disjoint(a, b)) for a, b in ((s, t), (t, s))]
    for old, changes in moments(g, facts, spoken_of(facts, tables, s, t), 2):
        value = Evaluation(old, changes)
        rows = {q: value(q) for q in (s, t)}
        for a, b, inside, apart in proved:
            wrong = refute_query(a, k, rows[a])
            wrong = "not contained" if inside and rows[a] - rows[b] else wrong
            wrong = "not disjoint" if apart and rows[a] & rows[b] else wrong
            if wrong:
                raise AssertionError(f"{wrong}, seed {seed}: {a}   {b}   {facts} {old} {changes}")
    return sum(inside + apart for _, _, inside, apart in proved)


def check_simplify_facts(seed: int) -> list[al.Step]:
    """Simplified under facts, a query and a change mean what they meant, each step of them too."""
    g = FactGenerator(seed)
    facts, tables = g.facts(), {t.name: t for t in TABLES}
    g.stateful = seed % 3 == 0
    q = g.query(g.random.randint(1, 4))
    if seed % 3 == 0:
        parts: tuple[Query, ...] = (q, g.alike(q))
        parts += (Plus(*parts),) if parts[0].arity == parts[1].arity else ()
    elif seed % 3 == 1:
        parts = tuple(al.change(q, plain_tables(q)))
    else:
        parts = tuple(al.net(al.signed(q, plain_tables(q))))
    steps: list[al.Step] = []
    small = al.simplify_all(parts, facts, trace=steps)
    for old, changes in moments(g, facts, spoken_of(facts, tables, *parts), 2):
        value = Evaluation(old, changes)
        for part, less in zip(parts, small, strict=True):
            assert less.columns == part.columns, f"names, seed {seed}: {part}"
            if value(part) == value(less):
                continue
            for step in steps:
                sides = [value(x) for x in (step.before, step.after)]
                where = f"{step}  by {facts} {old} {changes}"
                assert sides[0] == sides[1], f"seed {seed}: {step.law}, {where}"
            raise AssertionError(f"seed {seed}: {part} → {less}, {facts} {old} {changes}")
    return steps
