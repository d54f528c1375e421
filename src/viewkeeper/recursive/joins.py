"""How many joins a program needs, and how often it reads what is large."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp, parse_one

from viewkeeper.recursive.model import Change, Event, Item, Repeat, Step, System, When
from viewkeeper.recursive.rendering import DIALECT


@dataclass(frozen=True)
class Joins:
    """The joins of a program; those of loops apart, as they count once per round.

    ``scans`` are the reads of stored tables and of inputs, views over them included; all other
    relations are small if the change is. ``steps`` are the queries that are computed.
    """

    joins: int
    scans: int
    steps: int
    joins_per_round: int = 0
    scans_per_round: int = 0
    steps_per_round: int = 0


def count_joins(system: System, event: Event, *, skip: Sequence[str] = ()) -> Joins:
    """Counts joins and tests of existence, which cost as much as a join.

    Parameters
    ----------
    system : System
        As read from its text.
    event : str
        Which of its programs.
    skip : sequence of str
        Relations that are empty: what runs only if they have rows is not counted.

    Examples
    --------
    >>> from viewkeeper.recursive import load
    >>> count_joins(load("acyclic_single"), "DELETE").joins
    6
    """
    large = {relation.name: (0, 1) for relation in (*system.inputs, *system.tables)}
    large.pop("CHANGES", None)
    once, rounds = _count(system.programs[event].body, frozenset(skip), large)
    return Joins(*once, *rounds)


_Three = tuple[int, int, int]


def _plus(a: _Three, b: _Three) -> _Three:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def _count(
    items: Sequence[Item], skip: frozenset[str], known: dict[str, tuple[int, int]]
) -> tuple[_Three, _Three]:
    once: _Three = (0, 0, 0)
    rounds: _Three = (0, 0, 0)
    for item in items:
        match item:
            case Step(name, sql) if item.lazy:
                known[name] = _query(sql, known)
            case Step() | Change():
                once = _plus(once, (*_query(item.sql, known), 1))
            case When(relation, body) if relation not in skip:
                more, more_rounds = _count(body, skip, known)
                once, rounds = _plus(once, more), _plus(rounds, more_rounds)
            case Repeat(_, body):
                more, more_rounds = _count(body, skip, known)
                rounds = _plus(rounds, _plus(more, more_rounds))
            case _:
                pass
    return once, rounds


def _query(sql: str, known: dict[str, tuple[int, int]]) -> tuple[int, int]:
    """The joins and the scans of a query; a test that does not look at the row is none."""
    tree = parse_one(sql, read=DIALECT)
    inside = [known.get(table.name, (0, 0)) for table in tree.find_all(exp.Table)]
    joined = sum(1 for _ in tree.find_all(exp.Join))
    tested = sum(1 for test in tree.find_all(exp.Exists) if _correlated(test))
    return joined + tested + sum(j for j, _ in inside), sum(s for _, s in inside)


def _correlated(test: exp.Exists) -> bool:
    names = {table.alias_or_name for table in test.find_all(exp.Table)}
    names |= {query.alias for query in test.find_all(exp.Subquery)}
    return any(c.table and c.table not in names for c in test.find_all(exp.Column))
