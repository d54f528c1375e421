"""A system's queries as the SQL of an engine, for nodes of one column or more."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlglot import exp, parse_one

from viewkeeper.recursive.errors import ProgramError
from viewkeeper.recursive.model import (
    NODE,
    Change,
    Item,
    Program,
    Relation,
    Repeat,
    Step,
    System,
    When,
)
from viewkeeper.recursive.nodes import column_names, widen

DIALECT = "spark"  # in which the texts are written
_MARK = re.compile("⟪[^⟪⟫]*⟫")


def prepare(system: System, dialect: str = "spark", width: int = 1, prefix: str = "") -> System:
    """A system whose queries are SQL of a dialect.

    Parameters
    ----------
    system : System
        As read from its text.
    dialect : str
        A dialect of sqlglot: "spark" or "duckdb".
    width : int
        How many columns tell nodes apart.
    prefix : str
        What the names of all relations begin with.

    Returns
    -------
    System
        The same with other texts. Parameters stand as marks; `bind` puts their values in.

    Examples
    --------
    >>> from viewkeeper.recursive import load
    >>> system = prepare(load("acyclic_single"), "duckdb", prefix="v_")
    >>> step = next(system.programs["INSERT"].items())
    >>> print(step.name, step.sql[:42])
    TC_NEW SELECT "t"."Start", ⟪b⟫ AS "End" FROM "v_T
    """
    sql = _Sql(system, dialect, width, prefix)
    return replace(
        system,
        outputs=tuple(replace(o, sql=sql(o.sql)) for o in system.outputs),
        programs={
            event: replace(program, body=_body(program.body, sql))
            for event, program in system.programs.items()
        },
    )


def _body(items: Sequence[Item], sql: Any) -> tuple[Item, ...]:
    new: list[Item] = []
    for item in items:
        match item:
            case Step() | Change():
                new.append(replace(item, sql=sql(item.sql)))
            case When() | Repeat():
                new.append(replace(item, body=_body(item.body, sql)))
            case _:
                new.append(item)
    return tuple(new)


class _Sql:
    """Turns one query's text into the dialect's."""

    def __init__(self, system: System, dialect: str, width: int, prefix: str) -> None:
        self.nodes = system.nodes
        self.dialect, self.width, self.prefix = dialect, width, prefix

    def __call__(self, text: str) -> str:
        tree = widen(parse_one(text, read=DIALECT), self.nodes, self.width)
        local = {cte.alias for cte in tree.find_all(exp.CTE)}
        for table in tree.find_all(exp.Table):
            if table.name not in local:
                if not table.alias:
                    table.set("alias", exp.TableAlias(this=exp.to_identifier(table.name)))
                table.set("this", exp.to_identifier(self.prefix + table.name))
        for mark in list(tree.find_all(exp.Placeholder)):
            mark.replace(exp.Var(this=f"⟪{mark.name}⟫"))
        return tree.sql(self.dialect, identify=True)


def bind(
    system: System,
    program: Program,
    values: Mapping[str, Any] | None = None,
    *,
    dialect: str = "spark",
    width: int = 1,
) -> Program:
    """A program of a prepared system with the values of its parameters.

    Parameters
    ----------
    system, program : System, Program
        The prepared system and one of its programs.
    values : mapping, optional
        The changed row for a program of one row, and settings that differ from their defaults. A
        node of several columns is a tuple. A value may be an expression, as `literal` makes them.
    dialect : str
        The dialect that the system was prepared for.
    width : int
        How many columns tell nodes apart.

    Examples
    --------
    >>> from viewkeeper.recursive import load
    >>> system = prepare(load("acyclic_single"))
    >>> program = bind(system, system.programs["INSERT"], {"a": "it's", "b": "y"})
    >>> "'it\\\\'s'" in next(program.items()).sql
    True
    """
    given = dict(values or {})
    texts: dict[str, str] = {
        f"⟪{name}⟫": str(given.pop(name, number)) for name, number in system.settings.items()
    }
    for parameter in program.parameters:
        if parameter.name not in given:
            raise ProgramError(
                f"ON {program.event} of {system.name} needs a value for :{parameter.name}",
                hint="Give the changed row.",
            )
        value = given.pop(parameter.name)
        parts = value if parameter.type.upper() == NODE and width > 1 else [value]
        wide = width if parameter.type.upper() == NODE else 1
        for name, part in zip(column_names(parameter.name, wide), parts, strict=True):
            texts[f"⟪{name}⟫"] = exp.convert(part).sql(dialect)
    if given:
        known = [p.name for p in program.parameters] + list(system.settings)
        raise ProgramError(
            f"the program ON {program.event} of {system.name} has no :{next(iter(given))}",
            hint=f"It has: {', '.join(known)}.",
        )

    def put(text: str) -> str:
        return _MARK.sub(lambda found: texts.get(found[0], found[0]), text)

    return replace(program, body=_body(program.body, put))


def literal(value: Any, kind: str) -> exp.Expr:
    """A value of one of Spark's types as an expression that gives this value and type.

    Examples
    --------
    >>> literal(float("nan"), "double").sql("spark"), literal("it's", "string").sql("spark")
    ("CAST('nan' AS DOUBLE)", "'it\\\\'s'")
    """
    if value is None or isinstance(value, str):
        plain: exp.Expr = exp.convert(value)
        return plain if kind == "string" else exp.cast(plain, kind, dialect=DIALECT)
    if isinstance(value, (bytes, bytearray)):
        return exp.convert(bytes(value))
    if isinstance(value, datetime.datetime) and kind == "timestamp":
        value = value.astimezone(datetime.timezone.utc)  # collected rows are in the local zone
    return exp.cast(exp.Literal.string(str(value)), kind, dialect=DIALECT)


def columns(relation: Relation, width: int, node_types: Sequence[str]) -> list[tuple[str, str]]:
    """The columns of a stored table or an input as an engine has them, with their types.

    Examples
    --------
    >>> from viewkeeper.recursive.model import Column
    >>> table = Relation("C", (Column("Node", "NODE"), Column("n", "BIGINT")))
    >>> columns(table, 2, ["INT", "STRING"])
    [('Node_1', 'INT'), ('Node_2', 'STRING'), ('n', 'BIGINT')]
    """
    found: list[tuple[str, str]] = []
    for column in relation.columns:
        if column.type.upper() == NODE:
            found += zip(column_names(column.name, width), node_types, strict=True)
        else:
            found.append((column.name, column.type))
    return found
