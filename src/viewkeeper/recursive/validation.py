"""What must hold of a system before it runs: each name is known where it is used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from sqlglot import exp, parse_one

from viewkeeper.errors import suggestion
from viewkeeper.recursive.errors import ProgramError
from viewkeeper.recursive.model import (
    NODE,
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
    relations = (*system.inputs, *system.tables)
    names = [relation.name for relation in relations]
    _once(names, "the text")
    for relation in relations:
        _once([column.name for column in relation.columns], relation.name)
    for name in names:
        _free(name)
    _once([output.name for output in system.outputs], "the outputs")
    stored = {table.name for table in system.tables}
    for output in system.outputs:
        _names(output.sql, stored, f"the output {output.name}")
        _parameters(output.sql, set(), f"the output {output.name}")
    for program in system.programs.values():
        _row(system, program)
        allowed = {p.name for p in program.parameters} | set(system.settings)
        _block(system, program, program.body, set(names), allowed, inside_loop=False)


def _row(system: System, program: Program) -> None:
    """The parameters of a program for one row are the first columns of the input."""
    given = system.inputs[0].columns if system.inputs else ()
    if program.event in ("BATCH", "BUILD"):
        given = ()
    nodes = [p.type.upper() == NODE for p in program.parameters]
    if nodes != [c.type.upper() == NODE for c in given[: len(nodes)]]:
        listed = ", ".join(f"{c.name} {c.type}" for c in given) or "none"
        raise ProgramError(
            f"ON {program.event} has other parameters than the columns of its row",
            hint=f"There are: {listed}.",
        )


def _once(names: Sequence[str], where: str) -> None:
    """No name is there twice; engines do not tell upper case from lower case."""
    low = [name.lower() for name in names]
    for name in names:
        if low.count(name.lower()) > 1:
            raise ProgramError(f"{name} is declared twice in {where}", hint="Rename one of them.")


def _free(name: str) -> None:
    """Names with __ are those of relations and columns that stand beside a system's own."""
    if "__" in name:
        raise ProgramError(f"{name} has two underscores in a row", hint="Use another name.")


def _block(
    system: System,
    program: Program,
    items: Iterable[Item],
    known: set[str],
    parameters: set[str],
    inside_loop: bool,
) -> None:
    """Checks a block; ``known`` grows by what it defines."""
    fixed = {r.name.lower() for r in (*system.inputs, *system.tables)}
    fixed |= {f"{t.name}_{what}".lower() for t in system.tables for what in ("GONE", "COME")}
    for item in items:
        match item:
            case Step(name, sql):
                where = f"the step {name} ON {program.event}"
                if name.lower() in fixed:
                    raise ProgramError(
                        f"{where} has the name of a table, or of the rows that leave or enter one",
                        hint="Use another name for the step.",
                    )
                _free(name)
                alike = [k for k in known if k.lower() == name.lower() and k != name]
                if alike:
                    raise ProgramError(f"{where} is also called {alike[0]}", hint="Use one name.")
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
                if item.name.lower() in {k.lower() for k in known}:
                    raise ProgramError(
                        f"{where} stands twice, or a table is called {item.name}",
                        hint="One query may be a UNION of two.",
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
