"""Parts of a view's query that are worth a view of their own.

A part that the change does not control is computed from whole tables at each refresh. Kept as a
view it is read from its store, and its own refreshes cost what its own changes cost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol

from viewkeeper.advice import Advice
from viewkeeper.algebra.nodes import (
    Anti,
    Distinct,
    GroupBy,
    Join,
    Left,
    Plus,
    Product,
    Project,
    Query,
    Right,
    Select,
    Semi,
    Table,
    children,
)
from viewkeeper.algebra.scalars import Col
from viewkeeper.algebra.sql import to_sql
from viewkeeper.algebra.sql_names import unique_names
from viewkeeper.algebra.walk import postorder, substitute, tables
from viewkeeper.compiled import Compiled
from viewkeeper.plan.probe import Needs, core, reads
from viewkeeper.records import Record

_SCANNED = 60e6  # bytes of files that Spark goes through in a second
_START = 0.5  # seconds before it does
_WIDTH = 12  # bytes of a stored value


class Sizes(Protocol):
    """What is known of the sources."""

    def size(self, leaf: str) -> int: ...
    def rows(self, leaf: Table) -> int: ...
    def is_ours(self, leaf: str) -> bool: ...


def stored_parts(
    record: Record, compiled: Compiled, found: Iterable[Needs], known: Sizes
) -> Iterable[Advice]:
    """The parts that refreshes compute whole, each as a view, the largest first."""
    parts: dict[Query, list[str]] = {}
    for one in found:
        for part in map(core, one.wholes):
            if is_worth_storing(part, one.changed, compiled.query):
                parts.setdefault(part, []).append(one.changed)
    numbered = (p for p in parts if not any(known.is_ours(name) for name in reads(p)))
    for number, part in enumerate(numbered, 1):
        read = sum(known.size(name) for name in reads(part))
        rows = estimated_rows(part, known)
        stored = int(rows * part.arity * _WIDTH)
        if stored * 2 > read:
            continue
        name = f"{record.name[:-1]}_part{number}`"
        changed = tuple(dict.fromkeys(parts[part]))
        yield Advice(
            "intermediate",
            name,
            f"keep a part of {record.label} as a view of its own",
            f"it is computed from the whole of {', '.join(sorted(reads(part)))}, whatever changed;"
            f" about {rows:,.0f} rows",
            statements(record.name, name, compiled, part),
            _START + (read - stored) / _SCANNED,
            read,
            stored,
            stored,
            changed,
        )


def is_worth_storing(part: Query, changed: str, query: Query) -> bool:
    """Whether a part is more than a table, less than the query, and cheap to keep.

    >>> from viewkeeper import algebra as al
    >>> R, S = al.table("R", ["a"]), al.table("S", ["b"])
    >>> top = S.group_by([], {"m": "max(b)"})
    >>> q = R.join(top, "a < m")
    >>> [is_worth_storing(part, "R", q) for part in (top, S, q)]
    [True, False, False]
    """
    inside = core(part)
    if isinstance(inside, Table) or core(query) is inside:
        return False
    return changed not in reads(part) or isinstance(inside, (GroupBy, Distinct))


def estimated_rows(part: Query, known: Sizes) -> float:
    """How many rows a part has, by rules of thumb."""
    done: dict[Query, float] = {}
    for q in postorder(part):
        below = [done[c] for c in children(q)]
        match q:
            case Table():
                rows = float(known.rows(q))
            case Select():
                rows = below[0] / 3
            case GroupBy(_, keys):
                rows = below[0] / 10 if keys else 1.0
            case Distinct() | Semi() | Anti():
                rows = below[0] / 2
            case Join() | Left() | Right():
                rows = max(below)
            case Product():
                rows = below[0] * below[1]
            case Plus():
                rows = sum(below)
            case _:
                rows = max(below, default=1.0)
        done[q] = max(rows, 1.0)
    return done[part]


def statements(view: str, name: str, compiled: Compiled, part: Query) -> tuple[str, ...]:
    """SQL that makes the part a view, and lets the view read it."""
    sources = compiled.definition.sources
    names = unique_names(
        tuple(c if re.fullmatch(r"[A-Za-z]\w*", c) else f"c{i}" for i, c in enumerate(part.columns))
    )
    items = tuple(Col(i) for i in range(part.arity))
    inner = part if names == tuple(part.columns) else Project(part, items, names)
    texts: dict[Query, str] = {t: sources[t.name].sql for t in tables(part)}
    first = f"CREATE MATERIALIZED VIEW {name} AS {to_sql(inner, tables=texts)}"
    leaf = Table(f"#{name}", names, "")
    outer = substitute(compiled.query, {part: Project(leaf, items, part.columns)})
    if outer is compiled.query:
        return (first,)
    texts = {t: name if t is leaf else sources[t.name].sql for t in tables(outer)}
    return first, f"CREATE OR REPLACE MATERIALIZED VIEW {view} AS {to_sql(outer, tables=texts)}"
