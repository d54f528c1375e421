"""How a closure, or a view with a program of the user's, is kept, in words."""

from __future__ import annotations

from pyspark.sql import SparkSession

from viewkeeper.compiled import Compiled
from viewkeeper.engine import programs
from viewkeeper.engine.situation import look
from viewkeeper.engine.vector import Vector
from viewkeeper.explain import Explanation, Operator
from viewkeeper.records import Record
from viewkeeper.recursive.joins import count_joins
from viewkeeper.recursive.model import Change, Event, Fail, Item, Recompute, Repeat, Step, When
from viewkeeper.recursive.task import Task

_WHY = {
    "acyclic": "in an acyclic graph one join tells which deleted edges matter; the pairs over the"
    " others are suspect and are derived again; inserted edges are linked",
    "directed": "with cycles a deleted edge is searched for a way round inside its strong"
    " component; if there is none the pairs over it are suspect and are derived again",
    "undirected": "a component of n nodes has n² pairs, so the component of each node is stored;"
    " the ends of a deleted edge search for each other, inserted edges are contracted",
}


def explain_program(
    spark: SparkSession, record: Record, compiled: Compiled, vector: Vector
) -> Explanation:
    """How a view that is kept by a program would be refreshed now."""
    task = Task.from_json(record.program)
    found = look(spark, record, compiled, vector)
    choice = programs.decide(found)
    return _explained(record.label, task, compiled, choice.strategy, choice.reason)


def explain_asked(task: Task, compiled: Compiled) -> Explanation:
    """How a recursive query would be kept, were it a view."""
    return _explained(None, task, compiled, "incremental", "if it were a view")


def _explained(
    view: str | None, task: Task, compiled: Compiled, strategy: str, reason: str
) -> Explanation:
    system = task.plain_system
    operators: list[Operator] = []
    steps: list[str] = []
    sql: list[tuple[str, str]] = []
    notes = list(compiled.definition.notes)
    if task.is_closure:
        operators.append(
            Operator(0, f"closure, {task.graph} graph", "incremental", _WHY[task.graph])
        )
    else:
        why = system.comment or "as its text says"
        operators.append(Operator(0, f"program {system.name}", "incremental", why))
    for event, program in system.programs.items():
        operators.append(Operator(1, f"ON {event}", "incremental", joins(task, event)))
        if event in ("BUILD",):
            continue
        steps += [text for item in program.body for text in _item(item, event, 0)]
        sql += [
            (f"{event} {item.name}", item.sql)
            for item in program.items()
            if isinstance(item, (Step, Change))
        ]
    steps.append("change the stored tables, with the sources' versions, in one commit")
    if task.nulls == "refuse":
        notes.append("an edge with a NULL end is refused: the query would keep it")
    sources = tuple(ref.sql for ref in compiled.definition.sources.values())
    return Explanation(
        view, strategy, reason, compiled.blocked, tuple(operators), tuple(steps), tuple(sql),
        tuple(notes), sources,
    )  # fmt: skip


def joins(task: Task, event: Event) -> str:
    """How many joins a program has, in words.

    >>> joins(Task("acyclic", ("a",), ("b",), inputs=(("a", "int"), ("b", "int"))), "BUILD")
    '1 joins, 2 scans, 7 steps; in each round of a loop 8 joins, 2 scans, 8 steps'
    """
    found = count_joins(task.plain_system, event)
    text = f"{found.joins} joins, {found.scans} scans, {found.steps} steps"
    if found.steps_per_round:
        text += (
            f"; in each round of a loop {found.joins_per_round} joins,"
            f" {found.scans_per_round} scans, {found.steps_per_round} steps"
        )
    return text


def _item(item: Item, event: str, depth: int) -> list[str]:
    pad = "  " * depth
    match item:
        case Step(name, _, comment) if not item.lazy:
            return [f"{pad}{event}: compute {name}" + (f": {comment}" if comment else "")]
        case Change(kind, table, _, comment):
            word = "rows that leave" if kind == "DELETE" else "rows that enter"
            return [f"{pad}{event}: {word} {table}" + (f": {comment}" if comment else "")]
        case When(relation, body):
            inside = [text for i in body for text in _item(i, event, depth + 1)]
            return [f"{pad}{event}: if {relation} has rows", *inside]
        case Repeat(relation, body):
            inside = [text for i in body for text in _item(i, event, depth + 1)]
            return [f"{pad}{event}: until {relation} is empty", *inside]
        case Fail(check, relation, _):
            return [f"{pad}{event}: fail with {check} if {relation} has rows"]
        case Recompute(relation, comment):
            return [f"{pad}{event}: build anew if {relation} has rows: {comment}"]
    return []
