"""OVER (…): window functions as text, with an order for all that depends on one.

A refresh computes partitions again, and must find what it found before. Where the order of rows
with equal sort keys matters, further columns decide it. Sums of floating point numbers depend on it
in their last digits:

    over all rows      their values are taken in their own order
    ROWS               rows with equal sort keys come in the order of all columns
    RANGE up to now    the same; peers then have the value of the last of them
    other RANGE        values to be added are collected and sorted; else there is no order
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from viewkeeper.algebra.nodes import Query, Window
from viewkeeper.algebra.scalars import Col, Const, Opaque, Scalar
from viewkeeper.algebra.texts import joined, splice
from viewkeeper.frontend.expressions import Scalars
from viewkeeper.frontend.frames import Frame, project
from viewkeeper.frontend.functions import ORDERED, engine_call
from viewkeeper.frontend.jvm import Unsupported, children, class_name, expr_id, items, option

if TYPE_CHECKING:
    from viewkeeper.frontend.plans import Plans

_RANKS = ("RowNumber", "NTile", "Lead", "Lag", "NthValue")
_FRAMELESS = ("RowNumber", "NTile", "Lead", "Lag", "Rank", "DenseRank", "PercentRank", "CumeDist")
_WHOLE = "UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_SO_FAR = "RANGE BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_FLOATS = ("float", "double")
# Aggregates that Spark computes in floating point numbers, whatever their arguments are.
_MOMENTS = (
    "VariancePop", "VarianceSamp", "StddevPop", "StddevSamp", "Corr", "CovPopulation", "CovSample",
    "Skewness", "Kurtosis",
)  # fmt: skip
Ties = Callable[[], Sequence[Opaque]]


def windows(plans: Plans, plan: Any) -> Frame:
    """ω; a partition by an expression is a column first."""
    below = children(plan)[0]
    frame = plans(below)
    scalars = plans.scalars(frame)
    keys: list[int] = []
    extra: list[Scalar] = []
    partition = scalars.of(items(plan.partitionSpec()))  # more than in OVER, in LATERAL
    for e in partition:
        if isinstance(e, Col):
            keys.append(e.index)
        else:
            keys.append(frame.query.arity + len(extra))
            extra.append(e)
    if extra:
        kept: list[Scalar] = [Col(i) for i in range(frame.query.arity)]
        names = [*frame.query.columns, *(f"_key{i}" for i in range(len(extra)))]
        frame = Frame(project(frame.query, kept + extra, names), frame.ids + (-1,) * len(extra))
    plain = frame

    def ties() -> tuple[Opaque, ...]:
        return plans.ties(plain, items(below.output()), (), "A window function")

    functions: list[Opaque] = []
    rows: list[Opaque] = []  # what stands in rows below, for peers to have the last of
    listed = [e for e in items(plan.windowExpressions()) if e.nodeName() == "Alias"]
    for e in listed:
        made = _Function(plans, scalars, children(e)[0], ties, partition)
        if made.is_running:
            sum_, place, last = made.running(frame.query.arity + len(rows))
            rows += [sum_, place]
            functions.append(last)
        else:
            functions.append(made.text())
    query: Query = frame.query
    if rows:
        query = Window(query, tuple(keys), tuple(rows), tuple(f"_row{i}" for i in range(len(rows))))
    names = [str(e.name()) for e in listed]
    query = Window(query, tuple(keys), tuple(functions), tuple(names))
    return Frame(query, frame.ids + (-1,) * len(rows) + tuple(expr_id(e) for e in listed))


class _Function:
    """One window expression: a function and its OVER clause.

    Where the order of rows with equal sort keys matters, ``ties`` says which comes first. Where
    it is the frame that knows such rows as peers (RANGE), they stay what they are.
    """

    def __init__(
        self, plans: Plans, scalars: Scalars, e: Any, ties: Ties, partition: tuple[Scalar, ...]
    ) -> None:
        self.plans, self.scalars, self.ties = plans, scalars, ties
        self.function, spec = e.windowFunction(), e.windowSpec()
        self.partition = list(partition)
        self.sorts = items(spec.orderSpec())
        self.order = [scalars.order(o) for o in self.sorts]
        self.kind = class_name(self.function)
        self.aggregate = None
        if self.kind == "AggregateExpression":
            self.aggregate = self.function.aggregateFunction()
        self.frame = "" if self.kind in _FRAMELESS else _frame(spec.frameSpecification())

    @property
    def name(self) -> str:
        inner = self.function if self.aggregate is None else self.aggregate
        return str(inner.prettyName())

    @property
    def is_rough(self) -> bool:
        """Do its last digits depend on the order of rows?"""
        if self.aggregate is None:
            return False
        kind, args = class_name(self.aggregate), children(self.aggregate)
        if kind in _MOMENTS or kind.startswith("Regr"):
            return True
        if kind not in ("Sum", "Average"):
            return False
        type_ = str(args[0].dataType().catalogString())
        return type_ in _FLOATS or (kind == "Average" and type_ == "bigint")

    @property
    def is_running(self) -> bool:
        """Is it about the order of rows, up to the present one and its peers?"""
        by_order = self.is_rough or (self._by_order() and self._of_rows() == self.frame)
        return by_order and self.frame == _SO_FAR

    def running(self, at: int) -> tuple[Opaque, Opaque, Opaque]:
        """The value row by row, the number of the row, and the value at the last of the peers;
        the first two stand at ``at`` and after it."""
        order = [*self.order, *(t for t in self.ties() if t not in self.order)]
        rows = self._over(self._call(), order, self.frame.replace("RANGE", "ROWS"))
        place = self._over(splice(["row_number()"]), order, "")
        peers = [*self.partition, *(self.scalars(o.child()) for o in self.sorts)]
        last = splice(["max_by(", Col(at), ", ", Col(at + 1), ")"])
        return rows, place, splice([last, " OVER (PARTITION BY ", *joined(peers), ")"])

    def text(self) -> Opaque:
        """The function and its OVER clause."""
        order, frame = list(self.order), self.frame
        if self._by_order():
            frame = self._of_rows()
            if frame.startswith("RANGE"):
                self._refuse()
            else:
                notes = self.plans.notes
                notes.append(f"{self.name} takes peers by the order of their columns.")
                order += [t for t in self.ties() if t not in order]
        elif self.is_rough and _WHOLE in frame:
            frame = frame.replace("RANGE", "ROWS")
            values = self.scalars.of(children(self.aggregate))
            by_value = [splice([v, " ASC NULLS FIRST"]) for v in values]
            order += [v for v in by_value if v not in order]
        elif self.is_rough and class_name(self.aggregate) in ("Sum", "Average"):
            return self._collected()
        elif self.is_rough:
            self._refuse()
        return self._over(self._call(), order, frame)

    def _refuse(self) -> None:
        self.plans.unstable.append(f"{self.name} over RANGE takes peers in no fixed order.")

    def _collected(self) -> Opaque:
        """The values of a frame, sorted and added."""
        values = splice(["collect_list(", self.scalars(children(self.aggregate)[0]), ")"])
        values = self._filtered(values)
        found = splice(["sort_array(", self._over(values, self.order, self.frame), ")"])
        if class_name(self.aggregate) == "Sum":
            add = ", CAST(NULL AS DOUBLE), (a, v) -> coalesce(a, 0D) + CAST(v AS DOUBLE))"
            return splice(["aggregate(", found, add])
        first = ", named_struct('s', 0D, 'n', 0D)"
        add = ", (a, v) -> named_struct('s', a.s + CAST(v AS DOUBLE), 'n', a.n + 1D)"
        return splice(["aggregate(", found, first, add, ", a -> a.s / nullif(a.n, 0D))"])

    def _call(self) -> Opaque:
        scalars, function, kind = self.scalars, self.function, self.kind
        if self.aggregate is not None:
            distinct = bool(function.isDistinct())
            name = class_name(self.aggregate)
            return self._filtered(engine_call(scalars, self.aggregate, name, distinct))
        if kind in ("Lead", "Lag"):
            return _offset(scalars, function)
        if kind == "NthValue":
            nulls = " IGNORE NULLS" if function.ignoreNulls() else ""
            return splice(["nth_value(", *joined(scalars.of(children(function))), ")", nulls])
        if kind in _FRAMELESS:
            inside = scalars.of(children(function)) if kind == "NTile" else ()
            return splice([f"{function.prettyName()}(", *joined(inside), ")"])
        raise Unsupported(f"The window function {function.prettyName()} has no translation.")

    def _filtered(self, call: Opaque) -> Opaque:
        condition = option(self.function.filter())
        if condition is None:
            return call
        return splice([call, " FILTER (WHERE ", self.scalars(condition), ")"])

    def _over(self, call: Opaque, order: list[Opaque], frame: str) -> Opaque:
        over: list[str | Scalar] = []
        if self.partition:
            over += ["PARTITION BY ", *joined(self.partition)]
        if order:
            over += [" ORDER BY " if over else "ORDER BY ", *joined(order)]
        if frame:
            over.append((" " if over else "") + frame)
        return splice([call, " OVER (", *over, ")"])

    def _by_order(self) -> bool:
        """Does the answer depend on which of two peers comes first?"""
        kind = self.kind if self.aggregate is None else class_name(self.aggregate)
        rows = self.frame.startswith("ROWS") and _WHOLE not in self.frame
        return kind in _RANKS or kind in ORDERED or rows

    def _of_rows(self) -> str:
        """A RANGE frame as one of ROWS, where that has the same answer once the order is total: a
        whole partition, or the first row of one."""
        first = False
        if self.aggregate is not None:
            first = class_name(self.aggregate) == "First" and not self.aggregate.ignoreNulls()
        if _WHOLE in self.frame or (first and "UNBOUNDED PRECEDING AND CURRENT ROW" in self.frame):
            return self.frame.replace("RANGE", "ROWS")
        return self.frame


def _offset(scalars: Scalars, function: Any) -> Opaque:
    """LEAD or LAG; a LAG by n is kept by Catalyst as an offset of minus n."""
    name = str(function.prettyName())
    offset = int(function.offset().eval(None))
    if name == "lag":
        offset = -offset
    args = [scalars(function.input()), Const(offset), scalars(function.default())]
    nulls = " IGNORE NULLS" if function.ignoreNulls() else ""
    return splice([f"{name}(", *joined(args), ")", nulls])


def _frame(frame: Any) -> str:
    kind = str(frame.frameType().sql())
    return f"{kind} BETWEEN {_boundary(frame.lower())} AND {_boundary(frame.upper())}"


def _boundary(e: Any) -> str:
    name = class_name(e)
    if name in ("UnboundedPreceding", "UnboundedFollowing", "CurrentRow"):
        return str(e.sql())
    if str(e.dataType().catalogString()) in ("tinyint", "smallint", "int", "bigint"):
        value = int(e.eval(None))
        return f"{abs(value)} {'PRECEDING' if value < 0 else 'FOLLOWING'}"
    negative = name == "UnaryMinus"
    inner = children(e)[0] if negative else e
    return f"{inner.sql()} {'PRECEDING' if negative else 'FOLLOWING'}"
