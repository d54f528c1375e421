"""Runs programs on any engine that can name the rows of a query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from viewkeeper.recursive.cycles import find_cycle
from viewkeeper.recursive.errors import CheckFailedError, CycleError, RoundsError
from viewkeeper.recursive.model import Change, Fail, Item, Program, Recompute, Repeat, Step, When

MOST_ROUNDS = 1_000_000  # of a loop that has no bound of its own


class Runner(Protocol):
    """What an engine must do for programs.

    Names are given as the programs have them; in the queries each stands with the prefix that the
    system was prepared for. The inputs and the stored tables are known before a program starts.
    """

    def define(self, name: str, sql: str, *, lazy: bool) -> None:
        """Makes the rows of a query known under a name, which may be known already.

        The query may read the name's present rows, so they are computed before the name is given
        away. If lazy, the query itself may be kept instead of its rows; a lazy name is not
        redefined.
        """

    def define_empty(self, name: str, sql: str) -> None:
        """Makes a relation without rows known under a name; it has the columns of a query."""

    def is_empty(self, name: str) -> bool:
        """Whether a relation has no rows."""

    def rows(self, name: str) -> list[tuple[Any, ...]]:
        """The rows of a small relation."""


@dataclass(frozen=True)
class TableChange:
    """What a program does to a stored table: the relations that hold the rows, if there are any.

    No row of ``inserted`` is in the table after ``deleted`` has left it.
    """

    table: str
    deleted: str | None = None
    inserted: str | None = None


@dataclass
class Outcome:
    """What a program came to.

    ``changes`` are to be committed together. If ``recompute`` has a reason, the program gave up:
    the tables are to be built anew. If ``replace``, they were: each table is to hold exactly the
    inserted rows.
    """

    changes: list[TableChange] = field(default_factory=list)
    recompute: str | None = None
    replace: bool = False
    steps: int = 0  # computed, so of cost
    rounds: int = 0  # of all loops together


class _GiveUp(Exception):
    def __init__(self, reason: str) -> None:
        self.reason = reason


def run(program: Program, runner: Runner, *, width: int = 1, gives_up: bool = True) -> Outcome:
    """Runs a program: defines its relations one by one, and tells which rows change.

    Parameters
    ----------
    program : Program
        Prepared for the runner's dialect, and bound.
    runner : Runner
        The engine, with the program's inputs and tables.
    width : int
        How many columns tell nodes apart.
    gives_up : bool
        Whether the program may say that building anew is cheaper; else it goes on.

    Returns
    -------
    Outcome

    Raises
    ------
    CycleError, CheckFailedError
        If the program refuses the change. Nothing was changed.
    """
    run_ = _Run(runner, width, gives_up)
    try:
        run_.block(program.body)
    except _GiveUp as e:
        return Outcome(recompute=e.reason, steps=run_.outcome.steps, rounds=run_.outcome.rounds)
    by_table: dict[str, dict[str, str]] = {}
    for change in run_.changes:
        by_table.setdefault(change.table, {})[change.kind] = change.name
    run_.outcome.changes = [
        TableChange(table, names.get("DELETE"), names.get("INSERT"))
        for table, names in by_table.items()
    ]
    return run_.outcome


class _Run:
    def __init__(self, runner: Runner, width: int, gives_up: bool) -> None:
        self.runner = runner
        self.width = width
        self.gives_up = gives_up
        self.outcome = Outcome()
        self.changes: list[Change] = []
        self.defined: set[str] = set()

    def block(self, items: Sequence[Item]) -> None:
        for item in items:
            self.item(item)

    def item(self, item: Item) -> None:
        match item:
            case Step(name, sql):
                self.define(name, sql, item.lazy)
            case Change(_, _, sql):
                self.define(item.name, sql, False)
                self.changes.append(item)
            case When(relation, body):
                if self.runner.is_empty(relation):
                    self.skip(body)
                else:
                    self.block(body)
            case Repeat(relation, body, at_most):
                most = at_most if at_most is not None and self.gives_up else MOST_ROUNDS
                rounds = 0
                while not self.runner.is_empty(relation):
                    if rounds == most:
                        self.too_many(item, most)
                    self.block(body)
                    rounds += 1
                self.outcome.rounds += rounds
                if not rounds:
                    self.skip(body)
            case Fail():
                self.check(item)
            case Recompute(relation, comment):
                if self.gives_up and not self.runner.is_empty(relation):
                    raise _GiveUp(comment)

    def define(self, name: str, sql: str, lazy: bool) -> None:
        self.runner.define(name, sql, lazy=lazy)
        self.defined.add(name)
        self.outcome.steps += not lazy

    def skip(self, items: Sequence[Item]) -> None:
        """What a block would define is empty, unless it was defined before it."""
        for item in items:
            if isinstance(item, Step) and item.name not in self.defined:
                self.runner.define_empty(item.name, item.sql)
                self.defined.add(item.name)
            elif isinstance(item, (When, Repeat)):
                self.skip(item.body)

    def too_many(self, loop: Repeat, most: int) -> None:
        if loop.at_most is None or not self.gives_up:
            raise RoundsError(
                f"the loop until {loop.relation} is empty ran {most} times",
                hint="Check that each round brings it nearer to its end.",
            )
        raise _GiveUp(loop.comment or f"{loop.relation} has rows after {most} rounds")

    def check(self, item: Fail) -> None:
        if self.runner.is_empty(item.relation):
            return
        rows = self.runner.rows(item.show)
        if item.check == "CYCLE":
            cut = self.width
            nodes = [(r[:cut], r[cut : 2 * cut]) if cut > 1 else (r[0], r[1]) for r in rows]
            raise CycleError(find_cycle(nodes))
        raise CheckFailedError(item.check, item.comment, rows)
