"""What a refresh would look up and what it would read whole, found without reading anything.

The plan of a refresh is walked by the same ``plan.lookups`` that a refresh uses, with estimates in
the place of values: how many there are, not which.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from viewkeeper.algebra.nodes import NEW, Project, Query, Select, Table, children
from viewkeeper.algebra.walk import postorder, rebuild, tables
from viewkeeper.plan.lookups import reduced
from viewkeeper.plan.shapes import Store
from viewkeeper.plan.steps import STORE

# As the engine has them: rows of a lookup on the driver; values in a filter of Spark's; rows of a
# table that is read whole whatever is asked of it.
MOST_ROWS, MOST_LISTED, SMALL_TABLE = 200_000, 500, 5_000


class Facts(Protocol):
    """What is known of the tables; a leaf is a source (R@new) or the store."""

    def rows(self, leaf: Table) -> int:
        """How many rows it has."""

    def distinct(self, leaf: Table, column: int) -> int | None:
        """At most so many different values; None if that is not known."""

    def can_seek(self, leaf: Table, column: int) -> bool:
        """Whether rows can be found by values of the column."""

    def on_driver(self, leaf: Table) -> bool:
        """Whether they can be found without Spark."""


@dataclass(frozen=True)
class Lookup:
    """Rows of a source or of the store, found by values of some columns."""

    leaf: Table
    values: Mapping[int, int]  # column to the number of values
    rows: int  # found, by estimate
    on_driver: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns by which rows are sought."""
        return tuple(self.leaf.names[i] for i in sorted(self.values))


@dataclass(frozen=True)
class Needs:
    """What a refresh reads when one source changes."""

    changed: str
    lookups: tuple[Lookup, ...]
    wholes: tuple[Query, ...]  # the largest parts of the query that are computed without limits


@dataclass(frozen=True, eq=False)
class _Some:
    """So many values."""

    n: int

    def __len__(self) -> int:
        return self.n

    def with_null(self) -> _Some:
        return self

    def without_null(self) -> _Some:
        return self

    def union(self, other: _Some) -> _Some:
        return _Some(self.n + other.n)


def needs(shape: Store, changed: str, rows: int, facts: Facts) -> Needs:
    """What a refresh would read if so many rows of one source had changed.

    >>> from viewkeeper import algebra as al
    >>> R, S = al.table("R", ["a"]), al.table("S", ["b", "c"])
    >>> from viewkeeper.plan.bags import BagStore
    >>> class Large:
    ...     def rows(self, leaf): return 1_000_000
    ...     def distinct(self, leaf, column): return None
    ...     def can_seek(self, leaf, column): return True
    ...     def on_driver(self, leaf): return True
    >>> found = needs(BagStore(R.join(S, "a = b"), ("a", "b", "c")), "R", 10, Large())
    >>> [(str(x.leaf), x.columns) for x in found.lookups]
    [('S@new', ('b',)), ('`#store`', ('a', 'b', 'c'))]
    """
    source = next(t for t in tables(shape.query) if t.name == changed)
    probe = _Probe(_new(source), rows, facts)
    wholes: dict[Query, None] = {}
    for step in shape.refresh([changed]).computes:
        narrow = reduced(step.query, probe)
        wholes.update(dict.fromkeys(map(_plain, _unlimited(narrow, facts))))
    return Needs(changed, tuple(probe.lookups.values()), tuple(wholes))


class _Probe:
    """A reader that notes what it is asked for."""

    def __init__(self, changed: Table, rows: int, facts: Facts) -> None:
        self.facts, self.change = facts, rows
        self.lookups: dict[tuple[Table, tuple[int, ...]], Lookup] = {}
        self._source_rows = facts.rows(changed)
        self._found: dict[Table, tuple[Table, int]] = {}  # leaves made here: of which, rows
        self._values: dict[tuple[Table, int], _Some] = {}

    def values(self, leaf: Table, column: int) -> _Some | None:
        if _stored(leaf) or leaf.name.startswith("#listed"):
            return None
        if (leaf, column) not in self._values:
            of, rows = self._found.get(leaf, (None, self.change))
            most = None if of is None else self.facts.distinct(of, column)
            self._values[leaf, column] = _Some(rows if most is None else min(rows, most))
        return self._values[leaf, column]

    def read(self, leaf: Table, wanted: Mapping[int, _Some]) -> Table:
        if not _stored(leaf):
            return leaf
        sought = {i: v for i, v in wanted.items() if self.facts.can_seek(leaf, i)}
        if not sought:
            return leaf
        counts = {i: self._at_most(leaf, i, v.n) for i, v in sought.items()}
        rows = min(self._matches(leaf, i, n) for i, n in counts.items())
        here = self.facts.on_driver(leaf) and rows <= MOST_ROWS
        if not here and min(counts.values()) > MOST_LISTED:
            return leaf
        key = (leaf, tuple(sorted(counts)))
        known = self.lookups.get(key)
        if known is None or known.rows < rows:
            self.lookups[key] = Lookup(leaf, counts, rows, here)
        name = f"#read{len(self._found)}" if here else f"#listed{len(self._found)}"
        made = Table(name, leaf.names, "")
        assert isinstance(made, Table)
        self._found[made] = leaf, rows
        return made

    def _at_most(self, leaf: Table, column: int, n: int) -> int:
        most = self.facts.distinct(leaf, column)
        return n if most is None else min(n, most)

    def _matches(self, leaf: Table, column: int, values: int) -> int:
        """Rows with one of so many values: as many for each as the sizes say, at least one."""
        rows = self.facts.rows(leaf)
        most = self.facts.distinct(leaf, column)
        ratio = 1.0 if leaf.name == f"#{STORE}" else rows / max(self._source_rows, 1)
        each = max(1.0, ratio, 0.0 if most is None else rows / max(most, 1))
        return min(rows, int(values * each))


def _new(leaf: Table) -> Table:
    made = Table(leaf.name, leaf.names, NEW)
    assert isinstance(made, Table)
    return made


def _stored(leaf: Table) -> bool:
    """Whether the rows of a leaf are in a table: a source as it is now, or the store."""
    return leaf.state == NEW or leaf.name == f"#{STORE}"


def _unlimited(query: Query, facts: Facts) -> list[Query]:
    """The largest parts that read nothing but sources, whole, one of them not small."""
    pure: dict[Query, bool] = {}
    large: dict[Query, bool] = {}
    for q in postorder(query):
        below = children(q)
        if isinstance(q, Table):
            pure[q] = q.state == NEW
            large[q] = pure[q] and facts.rows(q) > SMALL_TABLE
        else:
            pure[q] = bool(below) and all(pure[c] for c in below)
            large[q] = any(large[c] for c in below)
    found: list[Query] = []
    seen: set[Query] = set()
    todo = [query]
    while todo:
        q = todo.pop()
        if q in seen:
            continue
        seen.add(q)
        if pure[q] and large[q]:
            found.append(q)
        else:
            todo.extend(reversed(children(q)))
    return found


def _plain(query: Query) -> Query:
    """The part as the view's query has it."""

    def old(q: Query) -> Query | None:
        return Table(q.name, q.names, "") if isinstance(q, Table) and q.state == NEW else None

    return rebuild(query, old)


def core(part: Query) -> Query:
    """A part without the σ and Π above it.

    >>> from viewkeeper import algebra as al
    >>> print(core(al.table("R", ["a"]).select("a > 1")))
    R
    """
    while isinstance(part, (Select, Project)):
        part = part.s
    return part


def reads(part: Query) -> set[str]:
    """The sources below a part."""
    return {t.name for t in tables(part)}
