"""What `Keeper.create_closure` and `Keeper.create_program` ask for, as a view's record has it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pyspark.errors import AnalysisException, ParseException
from pyspark.sql import DataFrame, SparkSession
from sqlglot.errors import SqlglotError

from viewkeeper.compiled import Compiled, read_definition
from viewkeeper.lake.sources import quoted
from viewkeeper.records import InvalidOptionError, InvalidQueryError, Record, one_of
from viewkeeper.recursive.closure import Closure
from viewkeeper.recursive.errors import ProgramError
from viewkeeper.recursive.library import GRAPHS, Graph
from viewkeeper.recursive.model import NODE
from viewkeeper.recursive.recognition import NotAClosure, PlainClosure, recognise
from viewkeeper.recursive.task import Task, names_of
from viewkeeper.statements import in_parentheses

# Types without an order or an equality that a program could use.
_NO_NODE = ("map", "variant", "struct", "array", "interval", "geometry", "geography")


@dataclass(frozen=True)
class Asked:
    """The input query, the task over it, and how the user said it."""

    query: str | DataFrame
    task: Task
    shown: str

    def record(self, spark: SparkSession, record: Record, compiled: Compiled) -> Record:
        """The record of the view, when its input has been compiled."""
        task = replace(self.task, inputs=compiled.columns)
        for name, kind in task.inputs:
            if kind.startswith(_NO_NODE) or "collate" in kind:
                raise InvalidOptionError(
                    f"{name} is of type {kind}, which cannot tell nodes apart",
                    hint="Use columns of numbers, texts, dates or times.",
                )
        outputs = task.outputs(record.store)
        (_, reader), *more = outputs.items()
        others = tuple((_beside(record.name, name), sql) for name, sql in more)
        return replace(
            record,
            reader=reader,
            others=others,
            program=task.to_json(),
            shown=self.shown,
            inputs=compiled.columns,
            columns=_shown(spark, task),
        )


def _shown(spark: SparkSession, task: Task) -> tuple[tuple[str, str], ...]:
    """The columns of the first output, with their types."""
    row = ", ".join(f"CAST(NULL AS {kind}) AS {quoted(n)}" for n, kind in task.layout.columns)
    first = next(iter(task.outputs(f"(SELECT {row})").values()))
    try:
        schema = spark.sql(first).schema
    except (AnalysisException, ParseException) as e:
        raise ProgramError(
            f"the output cannot be read: {str(e).splitlines()[0]}",
            hint="An output is a query over the stored tables.",
        ) from e
    return tuple((f.name, f.dataType.simpleString()) for f in schema)


def ask_closure(
    spark: SparkSession,
    edges: str | DataFrame,
    start: str | Sequence[str],
    end: str | Sequence[str],
    graph: str,
) -> Asked:
    """The closure of the edges in a table, a view or a query."""
    one_of("graph", graph, GRAPHS)
    task = Task(_graph(graph), names_of(start), names_of(end))
    Closure(task.start, task.end, _graph(graph))  # says what is wrong with the columns
    names = [*task.start, *task.end]
    if isinstance(edges, DataFrame):
        given = [c.lower() for c in edges.columns]
        missing = [n for n in names if n.lower() not in given]
        if missing:
            raise InvalidOptionError(
                f"the edges have no column {missing[0]!r}",
                hint=f"They have {', '.join(edges.columns)}.",
            )
        query: str | DataFrame = edges.select(*(quoted(n) for n in names))
        shown = "a DataFrame"
    else:
        listed = ", ".join(quoted(n) for n in names)
        query = f"SELECT {listed} FROM {_from(spark, edges)}"
        shown = edges
    ends = f"from {', '.join(task.start)} to {', '.join(task.end)}"
    return Asked(query, task, f"closure of the {graph} graph of {shown}, {ends}")


def ask_program(spark: SparkSession, source: str | DataFrame, program: str) -> Asked:
    """A system of the user's own, over the rows of a table, a view or a query."""
    task = Task(text=program.strip())
    system = task.plain_system
    events = set(system.programs)
    if "BATCH" in events:
        if len(system.inputs) != 2 or "BUILD" not in events:
            raise ProgramError(
                f"{system.name} has ON BATCH, so it needs ON BUILD and two inputs",
                hint="The rows now, and the rows that came and went with their Weight.",
            )
        rows, changes = (
            [(c.name.lower(), c.type.upper() == NODE) for c in relation.columns]
            for relation in system.inputs
        )
        if changes != [*rows, ("weight", False)]:
            raise ProgramError(
                f"the second input of {system.name} has not the columns of the first and a Weight",
                hint="It holds the rows that came (Weight 1 or more) and went (-1 or less).",
            )
    elif len(system.inputs) != 1 or not events & {"INSERT", "DELETE"}:
        raise ProgramError(
            f"{system.name} needs one input, and a program ON INSERT or ON DELETE",
            hint="viewkeeper.recursive.reading has the form of a system.",
        )
    if isinstance(source, str):
        query: str | DataFrame = f"SELECT * FROM {_from(spark, source)}"
    else:
        query = source
    where = source if isinstance(source, str) else "a DataFrame"
    return Asked(query, task, f"program {system.name} over {where}")


def ask_recursive(spark: SparkSession, sql: str) -> Asked | None:
    """The closure that a recursive query is; None if it is none, or not recursive."""
    found = _recognised(spark, sql)
    if found is None or isinstance(found, NotAClosure):
        return None
    half = len(found.columns) // 2
    items = ", ".join(
        f"{quoted(c)} AS {quoted(n)}"
        for c, n in zip((*found.start, *found.end), found.columns, strict=True)
    )
    nulls = "skip" if found.drops_nulls else "refuse"
    task = Task("directed", found.columns[:half], found.columns[half:], nulls=nulls)
    return Asked(f"SELECT {items} FROM {found.edges}", task, sql)


def check_recursive(spark: SparkSession, sql: str) -> None:
    """A recursive query that is no closure is left to Spark; if it cannot run it, says why.

    Raises
    ------
    InvalidQueryError
        If Spark cannot run it.
    """
    found = _recognised(spark, sql)
    if not isinstance(found, NotAClosure):
        return
    try:
        read_definition(spark, sql)
    except InvalidQueryError as e:
        raise InvalidQueryError(
            f"{e.what} (and it is no plain closure: {found.reason})",
            text=sql,
            hint="Write a plain closure, which is kept incrementally, or a recursion that Spark"
            " can run, which is computed again each time.",
        ) from e


def _recognised(spark: SparkSession, sql: str) -> PlainClosure | NotAClosure | None:
    if not re.search(r"\bRECURSIVE\b", sql, re.IGNORECASE):
        return None
    if spark.conf.get("spark.sql.caseSensitive") == "true":
        return NotAClosure("names that differ in case only may be of different columns here")
    try:
        return recognise(sql)
    except SqlglotError:
        return None


def _from(spark: SparkSession, text: str) -> str:
    """A name as it is, a query in parentheses."""
    parser = spark._jsparkSession.sessionState().sqlParser()
    try:
        parser.parseMultipartIdentifier(text)
        return text
    except (AnalysisException, ParseException):
        return in_parentheses(text)


def _graph(graph: str) -> Graph:
    return next(g for g in GRAPHS if g == graph)


def _beside(name: str, output: str) -> str:
    """The name of a further output: that of the view, and the output's."""
    return f"{name[:-1]}_{output.lower()}`"
