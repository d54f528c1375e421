"""What must hold of a system before it runs: each name is known where it is used."""

from __future__ import annotations

from collections.abc import Iterable

from sqlglot import exp, parse_one

from viewkeeper.errors import suggestion
from viewkeeper.recursive.errors import ProgramError
from viewkeeper.recursive.model import (
    Change,
    Fail,
    Item,
    Program,
    Recompute,
    Repeat,
    Step,
    System,
    When,
)

DIALECT = "spark"


def validate(system: System) -> None:
    """Raises a `ProgramError` if a query names a relation or a parameter that is not there."""
    if not system.tables or not system.outputs:
        raise ProgramError(
            f"{system.name} stores nothing or shows nothing",
            hint="Declare a TABLE and an OUTPUT.",
        )
    if not system.programs:
        raise ProgramError(f"{system.name} has no program", hint="Write -- ON INSERT or ON BATCH.")
    names = [relation.name for relation in (*system.inputs, *system.tables)]
    for name in names:
        if names.count(name) > 1:
            raise ProgramError(f"{name} is declared twice", hint="Rename one of them.")
    stored = {table.name for table in system.tables}
    for output in system.outputs:
        _names(output.sql, stored, f"the output {output.name}")
        _parameters(output.sql, set(), f"the output {output.name}")
    for program in system.programs.values():
        allowed = {p.name for p in program.parameters} | set(system.settings)
        _block(system, program, program.body, set(names), allowed, inside_loop=False)


def _block(
    system: System,
    program: Program,
    items: Iterable[Item],
    known: set[str],
    parameters: set[str],
    inside_loop: bool,
) -> None:
    """Checks a block; ``known`` grows by what it defines."""
    fixed = {r.name for r in (*system.inputs, *system.tables)}
    for item in items:
        match item:
            case Step(name, sql):
                where = f"the step {name} ON {program.event}"
                if name in fixed:
                    raise ProgramError(
                        f"{where} has the name of a table", hint="Use another name for the step."
                    )
                if item.lazy and inside_loop:
                    raise ProgramError(
                        f"the view {name} is inside a loop", hint="Make it a STEP: it may change."
                    )
                _names(sql, known, where)
                _parameters(sql, parameters, where)
                known.add(name)
            case Change(kind, table, sql):
                where = f"{kind} {table} ON {program.event}"
                if inside_loop:
                    raise ProgramError(
                        f"{where} is inside a loop",
                        hint="Collect the rows in a STEP, and change the table at the end.",
                    )
                _table(system, table, sql, where)
                _names(sql, known, where)
                _parameters(sql, parameters, where)
                if item.name in known:
                    raise ProgramError(
                        f"{where} stands twice", hint="One query may be a UNION of two."
                    )
                known.add(item.name)
            case When(relation, body):
                _known(relation, known, f"IF ON {program.event}")
                _block(system, program, body, known, parameters, inside_loop)
            case Repeat(relation, body):
                _known(relation, known, f"REPEAT ON {program.event}")
                defined = {step.name for step in body if isinstance(step, Step)}
                if relation not in defined:
                    raise ProgramError(
                        f"the loop until {relation} is empty does not change {relation}",
                        hint=f"Define the step {relation} again inside the loop.",
                    )
                _block(system, program, body, known, parameters, inside_loop=True)
            case Fail(_, relation, show):
                _known(relation, known, f"FAIL ON {program.event}")
                _known(show, known, f"FAIL ON {program.event}")
            case Recompute(relation):
                _known(relation, known, f"RECOMPUTE ON {program.event}")


def _table(system: System, table: str, sql: str, where: str) -> None:
    """The changed table is stored, and the query gives its columns."""
    stored = {t.name: t for t in system.tables}
    if table not in stored:
        raise ProgramError(
            f"{where}: {table} is not a stored table", hint=suggestion(table, stored)
        )
    tree = parse_one(sql, read=DIALECT)
    assert isinstance(tree, exp.Query)
    names = [name.lower() for name in tree.named_selects]
    columns = [column.name for column in stored[table].columns]
    if "*" not in names and names != [column.lower() for column in columns]:
        raise ProgramError(
            f"{where} selects {', '.join(names)}",
            hint=f"Select the table's columns in their order: {', '.join(columns)}.",
        )


def _names(sql: str, known: set[str], where: str) -> None:
    """Each table that a query reads is known."""
    tree = parse_one(sql, read=DIALECT)
    local = {cte.alias for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if table.name not in local:
            _known(table.name, known, where)


def _known(name: str, known: set[str], where: str) -> None:
    if name not in known:
        raise ProgramError(
            f"{where} reads {name}, which is not defined before it",
            hint=suggestion(name, sorted(known)),
        )


def _parameters(sql: str, known: set[str], where: str) -> None:
    for parameter in parse_one(sql, read=DIALECT).find_all(exp.Placeholder):
        if parameter.name not in known:
            raise ProgramError(
                f"{where} uses the parameter :{parameter.name}, which the program does not have",
                hint=suggestion(parameter.name, sorted(known)),
            )
