"""A transaction evaluated: its change of each table, of each immediate view, of each constraint."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, Row, SparkSession

from viewkeeper.compiled import Compiled
from viewkeeper.engine.failures import computing
from viewkeeper.engine.overlay import Overlay
from viewkeeper.graph import with_upstream
from viewkeeper.lake import jvm
from viewkeeper.lake.arrow import WEIGHT, repeated
from viewkeeper.lake.nested import local_frame
from viewkeeper.records import Record
from viewkeeper.transactions.applying import table_part
from viewkeeper.transactions.constraints import Constraint, Proofs, check_incremental
from viewkeeper.transactions.impact import (
    ViewImpact,
    changes_of,
    kinds_of,
    may_touch,
    new_violations,
    store_overlay,
    touched,
    view_impact,
)
from viewkeeper.transactions.journal import Part
from viewkeeper.transactions.state import State
from viewkeeper.transactions.steps import Step
from viewkeeper.transactions.targets import check_rows


@dataclass(frozen=True)
class Verdict:
    """What was found of one constraint."""

    constraint: Constraint
    how: str  # "untouched", "proved" or "checked"
    rows: list[Row] = field(default_factory=list)
    lookups: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def __str__(self) -> str:
        words = {
            "untouched": "not touched: nothing that it reads changes",
            "proved": "cannot be violated by such a change: nothing to check",
            "checked": "holds",
        }
        said = words[self.how]
        return f"violated by {len(self.rows)} rows" if self.rows else said


@dataclass(frozen=True)
class Outcome:
    """What a transaction comes to."""

    state: State
    written: dict[str, Overlay]  # the tables
    views: list[ViewImpact]
    verdicts: list[Verdict]

    @property
    def parts(self) -> list[Part]:
        """What the journal's entry holds."""
        return [table_part(o) for o in self.written.values()] + [v.part for v in self.views]

    @property
    def violated(self) -> list[Verdict]:
        return [v for v in self.verdicts if v.rows]


def evaluate(
    state: State,
    steps: Sequence[Step],
    views: Sequence[Record],
    constraints: Sequence[Constraint],
    compiled: Callable[[Record], Compiled],
    proofs: Proofs,
    *,
    show: bool = False,
) -> Outcome:
    """Runs the statements on a state, and finds what follows for the views, each after those that
    it reads, and for the constraints. Nothing is written."""
    for step in steps:
        step.run(state)
    for record in views:  # what a statement saw of them may be past
        state.undo(record.store)
    written = dict(state.changed)
    for overlay in written.values():
        check_rows(state.spark, overlay)
    impacts = []
    if written:
        for record in views:
            impact = _followed(
                state, record, compiled, _is_read(record, views, constraints), show=show
            )
            if impact is not None:
                impacts.append(impact)
    verdicts = [judge(state, c, compiled, proofs) for c in constraints]
    return Outcome(state, written, impacts, verdicts)


def follow(
    state: State,
    names: Collection[str],
    views: Sequence[Record],
    compiled: Callable[[Record], Compiled],
) -> None:
    """Immediate views among some tables, as the statements so far leave them."""
    wanted = with_upstream([v for v in views if v.store in names], views)
    for record in wanted:
        state.undo(record.store)
    for record in wanted:
        _followed(state, record, compiled, is_read=True)


def _followed(
    state: State,
    record: Record,
    compiled: Callable[[Record], Compiled],
    is_read: bool,
    *,
    show: bool = False,
) -> ViewImpact | None:
    """What becomes of a view; its store is laid into the state if it is read there."""
    if not may_touch(state, record.reads):
        return None
    with computing(record.label, "Nothing was written."):
        impact = view_impact(state, record, compiled(record), show=show)
        stored = store_overlay(state, impact) if impact is not None and is_read else None
    if stored is not None:
        state.put(stored)
    return impact


def _is_read(record: Record, views: Sequence[Record], constraints: Sequence[Constraint]) -> bool:
    readers = [*(v.reads for v in views), *(c.reads for c in constraints)]
    return any(record.store in reads for reads in readers)


def judge(
    state: State, constraint: Constraint, compile: Callable[[Record], Compiled], proofs: Proofs
) -> Verdict:
    """Whether a constraint holds after the transaction, given that it held before."""
    start = time.perf_counter()
    if not may_touch(state, constraint.reads):
        return Verdict(constraint, "untouched")
    compiled = compile(constraint.record)
    check_incremental(constraint.name, compiled)  # a view of Spark's may have been redefined
    overlays = touched(state, compiled)
    changes = changes_of(compiled, overlays)
    if not changes:
        return Verdict(constraint, "untouched")
    kinds = kinds_of(changes)
    if proofs.untouched(constraint, compiled, kinds):
        return Verdict(constraint, "proved")
    added = proofs.added(constraint, compiled, kinds)
    with (
        jvm.with_settings(state.spark, constraint.settings) as spark,
        computing(f"the constraint {constraint.name}", "Nothing was written."),
    ):
        rows, lookups = new_violations(spark, state, compiled, overlays, changes, added)
    return Verdict(constraint, "checked", rows, lookups, time.perf_counter() - start)


# ── shown ──


@dataclass(frozen=True)
class Shown:
    """The change of a table or a view, before it happens: ``removed`` and ``added``."""

    name: str
    removed: DataFrame
    added: DataFrame
    sizes: tuple[int, int]

    def __str__(self) -> str:
        return f"{self.name}: +{self.sizes[0]} -{self.sizes[1]} rows"


@dataclass(frozen=True)
class Preview:
    """What a transaction would do.

    Attributes
    ----------
    tables, views : mapping of str to Shown
        The change of each table and of each immediate view that changes.
    constraints : mapping of str to Verdict
        What would become of each constraint; ``rows`` are those that would violate it.
    """

    tables: Mapping[str, Shown]
    views: Mapping[str, Shown]
    constraints: Mapping[str, Verdict]

    @property
    def allowed(self) -> bool:
        """Whether no constraint forbids it."""
        return not any(v.rows for v in self.constraints.values())

    def __str__(self) -> str:
        lines = [f"table      {shown}" for shown in self.tables.values()]
        lines += [f"view       {shown}" for shown in self.views.values()]
        lines += [f"constraint {name}: {verdict}" for name, verdict in self.constraints.items()]
        return "\n".join(lines) or "nothing would change"


def preview_of(spark: SparkSession, outcome: Outcome, labels: Mapping[str, str]) -> Preview:
    """The outcome as the user sees it."""
    tables = {}
    for name, overlay in outcome.written.items():
        label = labels.get(name, name)
        schema = overlay.pin.schema(overlay.names)
        tables[label] = shown(spark, label, overlay.change, schema)
    views = {}
    for impact in outcome.views:
        if impact.change is not None and impact.change.num_rows:
            names = [n for n, _ in impact.record.columns]
            change = impact.change.rename_columns([*names, WEIGHT])
            ddl = ", ".join(f"`{n}` {t}" for n, t in impact.record.columns)
            views[impact.record.label] = shown(spark, impact.record.label, change, ddl)
    verdicts = {v.constraint.name: v for v in outcome.verdicts}
    return Preview(tables, views, verdicts)


def shown(spark: SparkSession, name: str, change: pa.Table, schema: Any) -> Shown:
    """A signed change as two frames."""
    columns = change.schema.names[:-1]
    weight = change.column(change.num_columns - 1)
    parts = []
    for sign in (-1, 1):
        times = pc.max_element_wise(pc.multiply(weight, sign), 0)
        parts.append(repeated(change.select(columns), times))
    frames = [local_frame(spark, rows, schema) for rows in parts]
    return Shown(name, frames[0], frames[1], (parts[1].num_rows, parts[0].num_rows))
