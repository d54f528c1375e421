"""GROUP BY: keys and aggregates, then what the select list makes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from viewkeeper.algebra.nodes import GroupBy, Project, Query
from viewkeeper.algebra.scalars import Agg, Col, Opaque, Scalar, columns_of, replace_columns
from viewkeeper.algebra.texts import joined, splice
from viewkeeper.frontend.expressions import Scalars
from viewkeeper.frontend.frames import Frame, project
from viewkeeper.frontend.functions import aggregates
from viewkeeper.frontend.jvm import class_name, expr_id, items, walk
from viewkeeper.frontend.sessions import merged
from viewkeeper.frontend.subqueries import attach

if TYPE_CHECKING:
    from viewkeeper.frontend.plans import Plans

_NAMED = ("Alias", "AttributeReference")


def group(plans: Plans, plan: Any, below: Frame) -> Frame:
    """Π[select list](Γ[keys; aggregates](Π[keys, arguments](S)))."""
    grouping, listed = items(plan.groupingExpressions()), items(plan.aggregateExpressions())
    below = merged(plans, below, grouping)
    grouping = [e.child() if e.nodeName() == "Alias" else e for e in grouping]
    calls = [e for root in listed for e in walk(root) if e.nodeName() == "AggregateExpression"]
    below, subqueries = attach(plans, below, [*grouping, *calls])
    scalars = plans.scalars(below, subqueries)
    keys = tuple(dict.fromkeys(scalars.of(grouping)))
    aggs = tuple(dict.fromkeys(a for c in calls for a in aggregates(scalars, c, plans.notes)))
    grouped = _grouped(below.query, keys, aggs, _names(grouping, scalars, keys))
    above, outer = attach(plans, Frame(grouped, (-1,) * grouped.arity), _outside(listed, plans))
    above_names = [str(e.name()) for e in listed]

    def answer(e: Any, kind: str) -> Scalar | None:
        """A grouping expression or an aggregate is a column of the groups."""
        if kind == "AggregateExpression":
            made = [Col(len(keys) + aggs.index(a)) for a in aggregates(scalars, e, [])]
            if class_name(e.aggregateFunction()) == "PivotFirst":
                return splice(["array(", *joined(made), ")"])
            return made[0]
        for g, key in zip(grouping, found, strict=True):
            if g.nodeName() == kind and e.semanticEquals(g):
                return Col(keys.index(key))
        return None

    found = scalars.of(grouping)
    results = Scalars(plans.jvm, {}, outer, answer).of(listed)
    query = project(above.query, list(results), above_names)
    return Frame(query, tuple(expr_id(e) for e in listed))


def _outside(listed: list[Any], plans: Plans) -> list[Any]:
    """The parts of a select list that hold subqueries and are not inside an aggregate."""
    parts: list[Any] = []
    stack = [e for e in listed if plans.jvm.has(e, "PLAN_EXPRESSION")]
    while stack:
        e = stack.pop()
        if e.nodeName() in ("ScalarSubquery", "Exists", "InSubquery", "Not"):
            parts.append(e)
        elif e.nodeName() != "AggregateExpression":
            stack.extend(items(e.children()))
    return parts


def _names(grouping: list[Any], scalars: Scalars, keys: tuple[Scalar, ...]) -> list[str]:
    """A name for each key: the column's, or one we make."""
    names: dict[Scalar, str] = {}
    for n, e in enumerate(grouping):
        named = e.nodeName() in _NAMED
        names.setdefault(scalars(e), str(e.name()) if named else f"_key{n}")
    return [names[k] for k in keys]


def _grouped(
    s: Query, keys: tuple[Scalar, ...], aggs: tuple[Agg | Opaque, ...], names: list[str]
) -> Query:
    made = tuple(f"_agg{n}" for n in range(len(aggs)))
    if all(isinstance(k, Col) for k in keys):
        return GroupBy(s, tuple(k.index for k in keys if isinstance(k, Col)), aggs, made)
    used = sorted({c for a in aggs for arg in a.args for c in columns_of(arg)})
    place = {c: len(keys) + n for n, c in enumerate(used)}
    wanted = (*keys, *(Col(c) for c in used))
    inner = Project(s, wanted, (*names, *(s.columns[c] for c in used)))
    return GroupBy(inner, tuple(range(len(keys))), tuple(_moved(a, place) for a in aggs), made)


def _moved(agg: Agg | Opaque, place: dict[int, int]) -> Agg | Opaque:
    args = tuple(replace_columns(a, lambda i: Col(place[i])) for a in agg.args)
    if isinstance(agg, Opaque):
        return Opaque(agg.parts, args)
    return Agg(agg.function, args, agg.distinct, agg.type)
