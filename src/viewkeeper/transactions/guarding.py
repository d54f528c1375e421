"""Adding, dropping and explaining constraints."""

from __future__ import annotations

import datetime
import uuid
from dataclasses import dataclass

from pyspark.sql import Row

from viewkeeper.algebra.sql import to_sql
from viewkeeper.compiled import Compiled, compile_view
from viewkeeper.definitions import reads, temporary
from viewkeeper.engine.failures import computing
from viewkeeper.engine.runner import Runner
from viewkeeper.engine.situation import source_names
from viewkeeper.engine.vector import Pin
from viewkeeper.errors import suggestion
from viewkeeper.graph import with_upstream
from viewkeeper.lake import jvm
from viewkeeper.plan.groups import net_rows
from viewkeeper.plan.present import signed_change
from viewkeeper.records import InvalidOptionError, NameTakenError
from viewkeeper.transactions.constraints import (
    KINDS,
    Constraint,
    Form,
    check_incremental,
    plain,
    violations_sql,
)
from viewkeeper.transactions.errors import ConstraintViolation, UnknownConstraintError
from viewkeeper.transactions.journal import Part
from viewkeeper.transactions.manager import TRIES, Transactions, conflict
from viewkeeper.transactions.state import Reading, State

MOST_SHOWN = 1_000  # offending rows that are collected
_VERBS = {"insert": "INSERT INTO", "delete": "DELETE FROM", "both": "UPDATE of"}


def add_constraint(
    manager: Transactions,
    name: str,
    wanted: str | Form,
) -> Constraint:
    """Adds a constraint, if the present data has no violation."""
    if not isinstance(name, str) or not name.strip():
        raise InvalidOptionError(f"{name!r} is not a name", hint="Give the constraint a name.")
    if not isinstance(wanted, str | Form):
        raise InvalidOptionError(
            f"the constraint {name} is given as {type(wanted).__name__}",
            hint="Give a query as SQL text, or vk.key(…), or vk.foreign_key(…).",
        )
    spark = manager.spark
    form = Form(violations_sql(wanted), wanted) if isinstance(wanted, str) else wanted
    sql = form.sql
    compiled = compile_view(spark, sql)
    _check(manager, name, compiled)
    catalog = spark.catalog
    made = Constraint(
        name=name,
        id=uuid.uuid4().hex,
        sql=sql,
        given=form.given,
        catalog=catalog.currentCatalog(),
        schema=catalog.currentDatabase(),
        created=datetime.datetime.now(datetime.timezone.utc).isoformat(),
        columns=compiled.columns,
        reads=reads(compiled),
        insertions_only=form.insertions_only,
        settings=jvm.settings_of(spark),
        names=compiled.names or "",
    )
    with manager.journal.turn():
        for _ in range(TRIES):
            manager.finish_all()
            for record in manager.immediate():
                if record.store in made.reads:
                    manager.catch_up(record)
            if name in manager.constraints():
                raise NameTakenError(
                    f"a constraint {name} is there already", hint="Drop it first, or rename this."
                )
            number = manager.journal.last() + 1
            state = State(spark, manager.known)
            rows = present_violations(state, compiled, made)
            if manager.moved(state):
                continue
            if rows:
                raise ConstraintViolation(name, rows, present=True)
            holds = Constraint.of({**made.as_dict(), "holds_at": _versions(state, compiled)})
            part = Part("constraint", {"name": name, "record": plain(holds)})
            entry = manager.journal.add(number, [part])
            if entry is not None:
                manager.carry_out(entry)
                return holds
    raise conflict()


def _check(manager: Transactions, name: str, compiled: Compiled) -> None:
    check_incremental(name, compiled)
    for text in temporary(compiled):
        raise InvalidOptionError(
            f"the constraint {name} reads {text.split(': ')[0]}, which only this session has",
            hint="Use a table, or a view that is not temporary: all sessions check it.",
        )
    records = list(manager.host.records().values())
    for record in with_upstream([r for r in records if r.store in reads(compiled)], records):
        if record.maintain != "immediate":
            raise InvalidOptionError(
                f"the constraint {name} reads {record.label}, which is not kept immediately",
                hint='Create the view with maintain="immediate", or write out its query.',
            )


def drop_constraint(manager: Transactions, name: str, *, if_exists: bool = False) -> None:
    """Drops a constraint."""
    check_name(name)
    manager.recover()
    if name not in manager.constraints():
        if if_exists:
            return
        raise unknown(manager, name)
    manager.record_entry([Part("constraint", {"name": name, "record": None})])


def check_name(name: str) -> None:
    """Raises if this cannot be the name of a constraint."""
    if not isinstance(name, str):
        raise InvalidOptionError(
            f"{name!r} is not the name of a constraint", hint="Give its name, a text."
        )


def unknown(manager: Transactions, name: str) -> UnknownConstraintError:
    """No such constraint."""
    return UnknownConstraintError(
        f"there is no constraint {name!r}", hint=suggestion(name, manager.constraints())
    )


def present_violations(state: State, compiled: Compiled, constraint: Constraint) -> list[Row]:
    """The rows of a constraint's query now; the query is evaluated in full."""
    reading = Reading(compiled.definition, compiled.query, "")
    with (
        jvm.with_settings(state.spark, constraint.settings) as spark,
        Runner(spark) as runner,
        computing(f"the constraint {constraint.name}", "Nothing was written."),
    ):
        query = state.bound(runner, reading)
        rows = runner.frame(query).limit(MOST_SHOWN).toArrow()
    made = Row(*compiled.definition.schema.names)
    return [made(*values) for values in zip(*(c.to_pylist() for c in rows.columns), strict=True)]


def _versions(state: State, compiled: Compiled) -> dict[str, dict[str, object]]:
    pins = {leaf: state.pin(name) for leaf, name in source_names(compiled).items()}
    return {leaf: version_of(pin) for leaf, pin in pins.items()}


def version_of(pin: Pin) -> dict[str, object]:
    """A version of a table, as it is kept."""
    return {"id": pin.source.table_id, "version": pin.version}


# ── explaining ──


@dataclass(frozen=True)
class ConstraintExplanation:
    """How a constraint is checked; ``print`` it, or look at its fields."""

    constraint: str
    given: str
    sql: str
    sources: tuple[str, ...]
    free: tuple[str, ...]  # changes that cost nothing
    checked: tuple[str, ...]
    check: tuple[tuple[str, str], ...]  # the query of the check, by changed table

    @property
    def incremental(self) -> bool:
        """Constraints always are."""
        return True

    @property
    def strategy(self) -> str:
        """How it is checked."""
        return "incremental"

    @property
    def reason(self) -> str:
        """When it is checked."""
        return "before each transaction is committed"

    def __str__(self) -> str:
        lines = [f"constraint {self.constraint}", f"given      {self.given}"]
        lines += [f"source     {s}" for s in self.sources]
        lines += [f"free       {f}: cannot violate it, nothing is evaluated" for f in self.free]
        lines += [f"checked    {c}: by the change of the query" for c in self.checked]
        for name, text in self.check:
            lines += [f"sql of the check when {name} changes", f"  {text}"]
        return "\n".join(lines)


def explain_constraint(manager: Transactions, constraint: Constraint) -> ConstraintExplanation:
    """Which changes of which tables are checked, and how."""
    compiled = manager.host.compiled(constraint.record)
    names = source_names(compiled)
    free, checked, texts = [], [], []
    for leaf in compiled.leaves:
        for kind in KINDS:
            what = f"{_VERBS[kind]} {names[leaf]}"
            if manager.proofs.untouched(constraint, compiled, {leaf: kind}):
                free.append(what)
            else:
                checked.append(what)
        texts.append((names[leaf], to_sql(net_rows(signed_change(compiled.query, [leaf])))))
    return ConstraintExplanation(
        constraint.name,
        constraint.given,
        constraint.sql,
        tuple(names[leaf] for leaf in compiled.leaves),
        tuple(free),
        tuple(checked),
        tuple(texts),
    )
