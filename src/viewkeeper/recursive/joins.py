"""How many joins a program needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp, parse_one

from viewkeeper.recursive.model import Change, Item, Program, Repeat, Step, When
from viewkeeper.recursive.rendering import DIALECT


@dataclass(frozen=True)
class Joins:
    """The joins of a program, those of loops apart: they count once per round."""

    once: int
    per_round: int
    steps: int


def count_joins(program: Program, *, skip: Sequence[str] = ()) -> Joins:
    """Counts joins and tests of existence, which cost as much as a join.

    Parameters
    ----------
    program : Program
        As read from its text; views count where they are used.
    skip : sequence of str
        Relations that are empty: what runs only if they have rows is not counted.

    Examples
    --------
    >>> from viewkeeper.recursive import load
    >>> count_joins(load("acyclic_single").programs["DELETE"])
    Joins(once=6, per_round=0, steps=4)
    """
    views: dict[str, int] = {}
    counted = _count(program.body, frozenset(skip), views)
    return Joins(*counted)


def _count(items: Sequence[Item], skip: frozenset[str], views: dict[str, int]) -> tuple[int, int, int]:
    once = per_round = steps = 0
    for item in items:
        match item:
            case Step(name, sql) if item.lazy:
                views[name] = _joins(sql, views)
            case Step() | Change():
                once += _joins(item.sql, views)
                steps += 1
            case When(relation, body) if relation not in skip:
                a, b, c = _count(body, skip, views)
                once, per_round, steps = once + a, per_round + b, steps + c
            case Repeat(_, body):
                a, b, _ = _count(body, skip, views)
                per_round += a + b
            case _:
                pass
    return once, per_round, steps


def _joins(sql: str, views: dict[str, int]) -> int:
    """The joins of a query; a test against nothing but a parameter is a selection."""
    tree = parse_one(sql, read=DIALECT)
    inside = sum(views.get(table.name, 0) for table in tree.find_all(exp.Table))
    # joining with a relation of one row is a selection as well; the paper counts none for it
    joined = sum(1 for _ in tree.find_all(exp.Join))
    tested = sum(1 for test in tree.find_all(exp.Exists) if _correlated(test))
    return inside + joined + tested


def _correlated(test: exp.Exists) -> bool:
    names = {t.alias_or_name for t in test.find_all(exp.Table)} | {
        s.alias for s in test.find_all(exp.Subquery)
    }
    return any(c.table and c.table not in names for c in test.find_all(exp.Column))
