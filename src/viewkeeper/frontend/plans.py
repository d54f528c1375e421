"""Catalyst plans as queries of the algebra, one case for each logical operator."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from viewkeeper.algebra.nodes import (
    Anti,
    Distinct,
    Full,
    Join,
    Left,
    Min,
    Monus,
    Plus,
    Product,
    Project,
    Query,
    Right,
    Select,
    Semi,
    Top,
    Unnest,
    Window,
)
from viewkeeper.algebra.scalars import TRUE, Call, Col, Const, Opaque, Scalar, conjunction
from viewkeeper.algebra.texts import joined, splice
from viewkeeper.frontend import leaves
from viewkeeper.frontend.definition import SourceRef
from viewkeeper.frontend.expressions import Scalars
from viewkeeper.frontend.frames import Frame, project
from viewkeeper.frontend.groups import group
from viewkeeper.frontend.jvm import Jvm, Unsupported, children, expr_id, items, option, orderable
from viewkeeper.frontend.subqueries import attach, attach_beside, partnered, single
from viewkeeper.frontend.windows import windows

RELATIONS = ("LogicalRelation", "HiveTableRelation", "DataSourceV2Relation")
_TRANSPARENT = (
    "SubqueryAlias",
    "View",
    "ResolvedHint",
    "Repartition",
    "RepartitionByExpression",
    "RebalancePartitions",
    "Sort",
    "EventTimeWatermark",
    "ReturnAnswer",
    "PipeOperator",
    "CollectMetrics",
)
_BY_COLUMNS = "the first by the order of their columns"
_LIMITS = ("GlobalLimit", "LocalLimit", "Offset")
_WORDS = {
    "ExternalRDD": "An RDD",
    "MapInPandas": "mapInPandas",
    "MapInArrow": "mapInArrow",
    "FlatMapGroupsInPandas": "applyInPandas",
    "FlatMapCoGroupsInPandas": "cogroup().applyInPandas",
    "FlatMapGroupsInArrow": "applyInArrow",
    "CTERelationRef": "A recursive WITH",
    "UnionLoop": "A recursive WITH",
    "UnionLoopRef": "A recursive WITH",
    "WithCTE": "A recursive WITH",
    "Tail": "tail()",
    "AsOfJoin": "An as-of join",
    "TypedFilter": "A filter by a function of the session",
    "StreamingRelation": "A stream as a source",
    "StreamingRelationV2": "A stream as a source",
    "StreamingDataSourceV2Relation": "A stream as a source",
}


class Plans:
    """Translates plans, and gathers the tables they read and what depends on the order of rows."""

    def __init__(self, jvm: Jvm) -> None:
        self.jvm = jvm
        self.sources: dict[str, SourceRef] = {}
        self.notes: list[str] = []
        self.unstable: list[str] = []  # what may differ when it is computed again

    def note_source(self, plan: Any) -> None:
        """The table that an operator reads, if it reads one that has a name."""
        kind = str(plan.nodeName())
        if kind in RELATIONS:
            with suppress(Unsupported):
                leaves.relation(plan, kind, self.sources, self.jvm)

    def exactly(self, plan: Any) -> Query:
        """The query that has the plan's output columns, in order, and no others."""
        return self(plan).exactly(items(plan.output()))

    def scalars(self, frame: Frame, subqueries: dict[int, Scalar] | None = None) -> Scalars:
        """A translator of expressions over the columns of a frame."""
        return Scalars(self.jvm, frame.columns, subqueries)

    def __call__(self, plan: Any) -> Frame:
        kind = str(plan.nodeName())
        match kind:
            case _ if kind in _TRANSPARENT:
                return self(children(plan)[0])
            case "SQLFunctionNode":
                self.jvm.note_function(plan.function())
                return self(children(plan)[0])
            case _ if kind in _LIMITS:
                return self._top(plan, None, 0)
            case "Project":
                return self._project(plan, self(children(plan)[0]))
            case "Filter":
                return self._filter(plan.condition(), self(children(plan)[0]))
            case "Join":
                return self._join(plan)
            case "Union":
                return self._same(plan, [self.exactly(c) for c in children(plan)], Plus)
            case "Except" | "Intersect" | "Except All" | "Intersect All":
                sides = [self.exactly(c) for c in children(plan)]
                if not plan.isAll():
                    sides = [Distinct(s) for s in sides]
                return self._same(plan, sides, Monus if kind.startswith("Except") else Min)
            case "Distinct":
                return self._same(plan, [Distinct(self.exactly(children(plan)[0]))], Plus)
            case "Deduplicate":
                return self._deduplicate(plan)
            case "Aggregate":
                return group(self, plan, self(children(plan)[0]))
            case "Expand":
                return self._expand(plan)
            case "Window":
                return windows(self, plan)
            case "Generate":
                return self._generate(plan)
            case "LocalRelation":
                return leaves.rows(plan, self.jvm, self.sources)
            case "ResolvedInlineTable":
                return self._inline(plan)
            case "OneRowRelation":
                return Frame(leaves.ONE_ROW, (-1,))
            case "Range":
                return leaves.numbers(plan)
            case _ if plan.isStreaming():
                raise Unsupported("A stream as a source has no translation; read the table itself.")
            case _ if kind in RELATIONS:
                return leaves.relation(plan, kind, self.sources, self.jvm)
            case "LogicalRDD":
                return leaves.session_rows(plan, self.jvm)
            case "Sample":
                raise Unsupported(
                    "A sample (TABLESAMPLE) has no translation.", "TABLESAMPLE takes rows by chance"
                )
            case _:
                raise Unsupported(f"{_WORDS.get(kind, f'The operator {kind}')} has no translation.")

    # ── one input ──

    def _project(self, plan: Any, below: Frame) -> Frame:
        listed = items(plan.projectList())
        frame, subqueries = attach(self, below, listed)
        found = self.scalars(frame, subqueries).of(listed)
        query = project(frame.query, list(found), [str(e.name()) for e in listed])
        return Frame(query, tuple(expr_id(e) for e in listed))

    def _filter(self, condition: Any, frame: Frame) -> Frame:
        """σ; EXISTS and IN that stand alone in a conjunction are semijoins and antijoins."""
        frame, rest = partnered(self, frame, condition)
        if not rest:
            return frame
        frame, subqueries = attach(self, frame, rest)
        scalars = self.scalars(frame, subqueries)
        found = [scalars(e) for e in rest]
        predicate = found[0] if len(found) == 1 else conjunction(found)
        return Frame(Select(frame.query, predicate), frame.ids)

    def _same(
        self, plan: Any, sides: list[Query], op: type[Plus] | type[Monus] | type[Min]
    ) -> Frame:
        query = sides[0]
        for side in sides[1:]:
            query = op(query, side)
        return Frame(query, tuple(expr_id(a) for a in items(plan.output())))

    def _deduplicate(self, plan: Any) -> Frame:
        """ε; on some of the columns: of each group the first row by the order of the others, so
        that computing again keeps the same one."""
        child = children(plan)[0]
        keys = {expr_id(k) for k in items(plan.keys())}
        output = items(child.output())
        ids = tuple(expr_id(a) for a in output)
        others = [a for a in output if expr_id(a) not in keys]
        if not others:
            return Frame(Distinct(self.exactly(child)), ids)
        frame = Frame(self.exactly(child), ids)
        by = tuple(i for i, number in enumerate(ids) if number in keys)
        order = self.ties(frame, others, (), "dropDuplicates")
        self.notes.append(f"dropDuplicates keeps {_BY_COLUMNS}.")
        partition: list[str | Scalar] = (
            ["PARTITION BY ", *joined([Col(i) for i in by])] if by else []
        )
        over = [*partition, " ORDER BY ", *joined(order or [splice(["1"])])]
        number = splice(["row_number() OVER (", *over, ")"])
        first = Window(frame.query, by, (number,), ("__number",))
        kept = Select(first, Call("=", (Col(len(ids)), Const(1))))
        columns: list[Scalar] = [Col(i) for i in range(len(ids))]
        return Frame(Project(kept, tuple(columns), frame.query.columns), ids)

    def _expand(self, plan: Any) -> Frame:
        frame = self(children(plan)[0])
        scalars = self.scalars(frame)
        output = items(plan.output())
        names = tuple(str(a.name()) for a in output)
        sides: list[Query] = [
            Project(frame.query, scalars.of(items(p)), names) for p in items(plan.projections())
        ]
        return self._same(plan, sides, Plus)

    def _inline(self, plan: Any) -> Frame:
        frame = Frame(leaves.ONE_ROW, (-1,))
        names = tuple(str(a.name()) for a in items(plan.output()))
        scalars = self.scalars(frame)
        sides: list[Query] = [
            Project(frame.query, scalars.of(items(row)), names) for row in items(plan.rows())
        ]
        return self._same(plan, sides, Plus)

    def _generate(self, plan: Any) -> Frame:
        frame = self(children(plan)[0])
        generator = plan.generator()
        if "UDTF" in generator.nodeName():
            raise Unsupported(
                f"The table function {generator.name()} lives in this session only and cannot be"
                " stored as SQL."
            )
        if generator.nodeName() == "GeneratorOuter":
            generator = children(generator)[0]
        frame, subqueries = attach(self, frame, [generator])
        text = self.scalars(frame, subqueries).text(generator)
        output = items(plan.generatorOutput())
        names = tuple(str(a.name()) for a in output)
        query = Unnest(frame.query, text, names, bool(plan.outer()))
        return Frame(query, frame.ids + tuple(expr_id(a) for a in output))

    def _top(self, plan: Any, limit: int | None, offset: int) -> Frame:
        """τ: rows ``offset`` to ``offset + limit`` of the plan, below its projections."""
        kind = str(plan.nodeName())
        if kind in ("GlobalLimit", "LocalLimit"):
            most = max(int(plan.limitExpr().eval(None)) - offset, 0)
            return self._top(children(plan)[0], most if limit is None else min(limit, most), offset)
        if kind == "Offset":
            return self._top(children(plan)[0], limit, offset + int(plan.offsetExpr().eval(None)))
        if kind == "Project":
            return self._project(plan, self._top(children(plan)[0], limit, offset))
        if kind in ("SubqueryAlias", "View", "ResolvedHint"):
            return self._top(children(plan)[0], limit, offset)
        order: tuple[Opaque, ...] = ()
        if kind == "Sort":
            inner = children(plan)[0]
            frame = self(inner)
            frame, subqueries = attach(self, frame, items(plan.order()))
            scalars = self.scalars(frame, subqueries)
            order = tuple(scalars.order(o) for o in items(plan.order()))
            self.notes.append(f"Among rows with equal sort keys LIMIT keeps {_BY_COLUMNS}.")
        else:
            inner, frame = plan, self(plan)
            self.notes.append(f"Without ORDER BY LIMIT keeps {_BY_COLUMNS}.")
        order += self.ties(frame, items(inner.output()), order, "LIMIT")
        return Frame(Top(frame.query, order, limit, offset), frame.ids)

    def ties(
        self, frame: Frame, columns: list[Any], order: Sequence[Scalar], what: str
    ) -> tuple[Opaque, ...]:
        """The columns by which rows with equal sort keys are told apart, so that computing again
        gives the same rows."""
        found: list[Opaque] = []
        places = frame.columns
        for column in columns:
            if orderable(str(column.dataType().catalogString())):
                found.append(splice([Col(places[expr_id(column)]), " ASC NULLS FIRST"]))
            else:
                kind = column.dataType().simpleString()
                self.unstable.append(
                    f"{what} may keep other rows each time: {column.name()} is of type {kind},"
                    " which has no order."
                )
        return tuple(t for t in dict.fromkeys(found) if t not in order)

    # ── joins ──

    def _join(self, plan: Any) -> Frame:
        left, right = (self(c) for c in children(plan))
        kind = str(plan.joinType().toString())
        condition = option(plan.condition())
        if kind == "LeftSingle":
            return single(self, left, right, plan)
        subqueries: dict[int, Scalar] = {}
        if condition is not None and self.jvm.has(condition, "PLAN_EXPRESSION"):
            left, right, subqueries = attach_beside(self, left, right, condition, kind)
        both = Frame(Product(left.query, right.query), left.beside(right))
        on = TRUE if condition is None else self.scalars(both, subqueries)(condition)
        s, t = left.query, right.query
        match kind:
            case "Inner" | "Cross":
                return both if on is TRUE else Frame(Join(s, t, on), both.ids)
            case "LeftOuter":
                return Frame(Left(s, t, on), both.ids)
            case "RightOuter":
                return Frame(Right(s, t, on), both.ids)
            case "FullOuter":
                return Frame(Full(s, t, on), both.ids)
            case "LeftSemi":
                return Frame(Semi(s, t, on), left.ids)
            case "LeftAnti":
                return Frame(Anti(s, t, on), left.ids)
            case _:
                raise Unsupported(f"A {kind} join has no translation.")
