"""How a view is kept, in words: operator by operator, step by step, with the reasons."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from viewkeeper.algebra.nodes import (
    Anti,
    Distinct,
    Empty,
    Full,
    GroupBy,
    Join,
    Left,
    Literal,
    Max,
    Min,
    Monus,
    Net,
    Plus,
    Product,
    Project,
    Query,
    Right,
    Select,
    Semi,
    Table,
    Top,
    Unnest,
    Window,
    children,
)
from viewkeeper.algebra.notation import write
from viewkeeper.algebra.sql import to_sql
from viewkeeper.algebra.walk import postorder
from viewkeeper.compiled import Compiled
from viewkeeper.engine.refresh import decide
from viewkeeper.engine.situation import look
from viewkeeper.engine.vector import Vector
from viewkeeper.plan.finish import storable
from viewkeeper.plan.groups import GroupStore
from viewkeeper.plan.steps import Refresh
from viewkeeper.plan.tops import TopStore
from viewkeeper.records import Record


@dataclass(frozen=True)
class Operator:
    """One operator of the query, and how its part of the change is found."""

    depth: int
    text: str
    how: str  # "incremental", "touched" or "recomputed"
    why: str


@dataclass(frozen=True)
class Explanation:
    """How a view or a query is kept; ``print`` it, or look at its fields."""

    view: str | None
    strategy: str
    reason: str
    blocked: str | None
    operators: tuple[Operator, ...]
    steps: tuple[str, ...]
    sql: tuple[tuple[str, str], ...]
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = field(default=())

    @property
    def incremental(self) -> bool:
        """Can the whole view be kept without computing it again?"""
        return self.blocked is None

    def __str__(self) -> str:
        lines = [f"view      {self.view}"] if self.view else ["query     not yet a view"]
        lines.append(f"next      {self.strategy}: {self.reason}")
        lines += [f"source    {s}" for s in self.sources]
        if self.blocked:
            lines.append(f"blocked   {self.blocked}")
        lines.append("operators")
        lines += [f"  {'  ' * o.depth}{o.text}   [{o.how}: {o.why}]" for o in self.operators]
        lines.append("steps")
        lines += [f"  {i}. {step}" for i, step in enumerate(self.steps, 1)]
        for name, text in self.sql:
            lines += [f"sql of {name}", f"  {text}"]
        lines += [f"note      {n}" for n in self.notes]
        return "\n".join(lines)


def explain_query(compiled: Compiled, sql: str) -> Explanation:
    """How a query would be kept, were it a view and all its sources changed."""
    return _explained(None, compiled, list(compiled.leaves), "incremental", "if it were a view")


def explain_view(
    spark: SparkSession, record: Record, compiled: Compiled, vector: Vector
) -> Explanation:
    """How a view would be refreshed now."""
    found = look(spark, record, compiled, vector)
    choice = decide(found)
    changed = found.changed or list(compiled.leaves)
    return _explained(record.label, compiled, changed, choice.strategy, choice.reason)


def _explained(
    view: str | None, compiled: Compiled, changed: list[str], strategy: str, reason: str
) -> Explanation:
    sources = tuple(ref.sql for ref in compiled.definition.sources.values())
    notes = compiled.definition.notes
    if compiled.blocked:
        if not view:
            strategy, reason = "full", compiled.blocked
        again: tuple[str, ...] = ("compute the query", "replace the store's rows, in one commit")
        operators = _operators(compiled) if compiled.definition.query is not None else ()
        return Explanation(
            view, strategy, reason, compiled.blocked, operators, again, (), notes, sources
        )
    plan = compiled.store.refresh(changed) if changed else None
    steps, sql = _steps(plan, changed)
    return Explanation(
        view, strategy, reason, None, _operators(compiled), steps, sql, notes, sources
    )


def _steps(
    plan: Refresh | None, changed: list[str]
) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    if plan is None:
        return ("nothing: the view reads no table",), ()
    steps = [f"read the net change of {name}" for name in changed]
    sql: list[tuple[str, str]] = []
    for c in plan.computes:
        when = f" (only if {c.only_if[0]} has rows with {c.only_if[1]})" if c.only_if else ""
        steps.append(f"compute {c.name}: {c.why}{when}")
        sql.append((c.name, to_sql(c.query)))
    keys = ", ".join(plan.patch.keys) or "the one row"
    steps.append(f"patch the store by {keys}, with the sources' versions, in one commit")
    return tuple(steps), tuple(sql)


def _operators(compiled: Compiled) -> tuple[Operator, ...]:
    found: list[Operator] = []
    root = compiled.store.group if isinstance(compiled.store, GroupStore) else None

    def visit(q: Query, depth: int) -> None:
        how, why = _how(q, compiled, root)
        found.append(Operator(depth, _short(q), how, why))
        for c in children(q):
            visit(c, depth + 1)

    if len(postorder(compiled.query)) < 400:
        visit(compiled.query, 0)
    return tuple(found)


def _short(q: Query) -> str:
    """The operator without its inputs."""
    if isinstance(q, Table):
        return q.name
    text = write(q)
    for c in children(q):
        text = text.replace(write(c), "…", 1)
    return text if len(text) <= 120 else text[:117] + "…"


def _how(q: Query, compiled: Compiled, root: GroupBy | None) -> tuple[str, str]:
    store = compiled.store
    at_root = isinstance(store, GroupStore) and (
        q is store.group or (isinstance(q, Distinct) and root is not None and q.s is root.s)
    )
    match q:
        case Table():
            return "incremental", "its change feed, or the difference of its files"
        case Empty() | Literal():
            return "incremental", "constant"
        case Select() | Project() | Unnest() | Plus():
            return "incremental", "row by row"
        case Join() | Product():
            return "incremental", "one term per changed input"
        case Semi() | Anti() | Left() | Right() | Full():
            return "incremental", "partners of the changed rows are looked up"
        case GroupBy() | Distinct() if at_root and isinstance(store, GroupStore):
            if store.stored:
                return "incremental", "from stored counts, sums and extrema"
            why = [str(a) for a in store.group.aggs if not storable(a)]
            return (
                "touched",
                f"the touched groups are computed again ({len(why)} aggregates need it)",
            )
        case GroupBy(_, (), _, _):
            return "recomputed", "one group: its input is computed again, before and after"
        case GroupBy() | Distinct() | Monus() | Min() | Max():
            return "touched", "touched keys are computed again, before and after"
        case Window(_, keys, _, _):
            if keys:
                return "touched", "touched partitions are computed again, before and after"
            return "recomputed", "one partition: computed again, before and after"
        case Top() if isinstance(store, GroupStore) and q in store.above:
            return "incremental", "all groups are stored, the first are shown"
        case Top() if isinstance(store, TopStore) and q is store.top and not q.offset:
            return "touched", "from the stored and the new rows; again, if stored rows went"
        case Top():
            return "recomputed", "the first rows are computed again, before and after"
        case Net():
            return "incremental", "row by row"


__all__ = ["Explanation", "Operator", "explain_query", "explain_view"]
