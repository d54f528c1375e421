"""Subqueries in expressions: a scalar one is a column beside the rows, EXISTS and IN are joins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from viewkeeper.algebra.meaning import equalities
from viewkeeper.algebra.nodes import Anti, GroupBy, Left, Plus, Product, Project, Query, Semi
from viewkeeper.algebra.scalars import (
    FALSE,
    TRUE,
    Agg,
    Call,
    Col,
    Const,
    Opaque,
    Scalar,
    conjunction,
    replace_columns,
)
from viewkeeper.frontend.expressions import negated
from viewkeeper.frontend.frames import Frame
from viewkeeper.frontend.jvm import Unsupported, children, expr_id, items, option, walk

if TYPE_CHECKING:
    from viewkeeper.frontend.plans import Plans

_ROWS = Agg("count", (), False, "")
# The sides, the right one as True, that a join's condition on one side alone filters beforehand.
_FILTERED = {
    "Inner": (False, True),
    "Cross": (False, True),
    "LeftSemi": (False, True),
    "LeftOuter": (True,),
    "LeftAnti": (True,),
    "RightOuter": (False,),
}
_TOO_MANY = "a scalar subquery gave more than one row"


def attach(plans: Plans, frame: Frame, exprs: list[Any]) -> tuple[Frame, dict[int, Scalar]]:
    """The frame with a column for each subquery in the expressions, and where each stands."""
    found: dict[int, Scalar] = {}
    for root in exprs:
        if not plans.jvm.has(root, "PLAN_EXPRESSION"):
            continue
        for number, e in _subqueries(root):
            if number not in found:
                frame, found[number] = _column(plans, frame, e, number < 0)
    return frame, found


def attach_beside(
    plans: Plans, left: Frame, right: Frame, condition: Any, kind: str
) -> tuple[Frame, Frame, dict[int, Scalar]]:
    """The same for the condition of a join: a subquery that is asked about columns of the right
    side is a column there.

    Spark takes x NOT IN (T) for true where x is NULL, unless it filters one side by it first.
    """
    of_left: dict[int, Scalar] = {}
    of_right: dict[int, Scalar] = {}
    conjuncts = list(_conjuncts(condition))
    for number, e in _subqueries(condition):
        if number in of_left or number in of_right:
            continue
        asked = {expr_id(a) for a in items(e.references().toSeq())}
        is_right = bool(asked) and asked <= set(right.ids)
        is_filter = is_right in _FILTERED.get(kind, ()) and any(
            c.nodeName() == "Not" and children(c)[0].equals(e) for c in conjuncts
        )
        if number < 0 and not is_filter:
            raise Unsupported(
                "NOT IN in the condition of this join has no translation: whether NULL is in it"
                " depends on Spark's plan."
            )
        if is_right:
            right, of_right[number] = _column(plans, right, e, number < 0)
        else:
            left, of_left[number] = _column(plans, left, e, number < 0)
    width = left.query.arity
    moved = {n: replace_columns(v, lambda i: Col(width + i)) for n, v in of_right.items()}
    return left, right, of_left | moved


def _conjuncts(e: Any) -> Iterator[Any]:
    if e.nodeName() == "And":
        for part in children(e):
            yield from _conjuncts(part)
    else:
        yield e


def _subqueries(root: Any) -> Iterator[tuple[int, Any]]:
    """The subqueries of an expression, NOT IN under a number of its own."""
    stack = [root]
    while stack:
        e = stack.pop()
        below = children(e)
        kind = e.nodeName()
        if kind in ("ScalarSubquery", "Exists"):
            yield expr_id(e), e
        elif kind == "InSubquery":
            yield expr_id(e.query()), e
        elif kind == "Not" and below[0].nodeName() == "InSubquery":
            yield negated(expr_id(below[0].query())), below[0]
        elif kind == "EqualTo" and "Literal" in [c.nodeName() for c in below] and _has_in(e):
            raise Unsupported(  # Spark may make NOT IN of it
                "IN (SELECT …) in what is compared with a constant has no translation."
            )
        else:
            stack.extend(reversed(below))


def _has_in(e: Any) -> bool:
    return any(part.nodeName() == "InSubquery" for part in walk(e))


def _column(plans: Plans, frame: Frame, e: Any, is_negated: bool) -> tuple[Frame, Scalar]:
    """The frame with the value of a subquery as its last column, and the value."""
    s, last = frame.query, Col(frame.query.arity)
    if e.nodeName() == "ScalarSubquery":
        return Frame(Product(s, _value(plans, e)), (*frame.ids, -1)), last
    if e.nodeName() == "Exists" and not _conditions(e):
        query = GroupBy(plans(plans.jvm.prepare(e.plan())).query, (), (_ROWS,), ("_rows",))
        return Frame(Product(s, query), (*frame.ids, -1)), Call(">", (last, Const(0)))
    t, on = _partner(plans, frame, e, is_negated)
    names = (*s.columns, "_exists")
    kept = tuple(Col(i) for i in range(s.arity))
    found = Project(Semi(s, t, on), (*kept, TRUE), names)
    missing = Project(Anti(s, t, on), (*kept, FALSE), names)
    return Frame(Plus(found, missing), (*frame.ids, -1)), last


def partnered(plans: Plans, frame: Frame, condition: Any) -> tuple[Frame, list[Any]]:
    """S ⋉ T and S ▷ T for EXISTS, IN and their negations; and the other parts of a condition."""
    if not plans.jvm.has(condition, "PLAN_EXPRESSION"):
        return frame, [condition]
    rest: list[Any] = []
    joins: list[tuple[Any, bool]] = []
    stack = [condition]
    while stack:
        e = stack.pop()
        kind = e.nodeName()
        inner = children(e)[0] if kind == "Not" else e
        if kind == "And":
            stack.extend(reversed(children(e)))
        elif inner.nodeName() in ("Exists", "InSubquery"):
            joins.append((inner, kind == "Not"))
        else:
            rest.append(e)
    for e, is_negated in joins:
        t, on = _partner(plans, frame, e, is_negated)
        join = (Anti if is_negated else Semi)(frame.query, t, on)
        frame = Frame(join, frame.ids)
    return frame, rest


def _partner(plans: Plans, frame: Frame, e: Any, is_negated: bool) -> tuple[Query, Scalar]:
    """T and the condition on S and T of EXISTS (T) or of x IN (T).

    For NOT IN an unknown x = y counts as found: NULL on either side takes the row away.
    """
    exists = e.nodeName() == "Exists"
    query = e if exists else e.query()
    plan = plans.jvm.prepare(query.plan())
    right = plans(plan)
    both = Frame(Product(frame.query, right.query), frame.beside(right))
    if set(frame.ids) & set(right.ids) - {-1}:
        raise Unsupported("A subquery reads the same DataFrame as its outside; use a table's name.")
    scalars = plans.scalars(both)
    conditions = [scalars(c) for c in _conditions(query)]
    if not exists:
        values = scalars.of(items(e.values()))  # the columns of the conditions come after them
        columns = [Col(both.columns[expr_id(a)]) for a in items(plan.output())[: len(values)]]
        pairs = zip(values, columns, strict=True)
        equal: list[Scalar] = [Call("=", pair) for pair in pairs]
        if is_negated:
            equal = [Call("or", (c, Call("is_null", (c,)))) for c in equal]
        conditions = equal + conditions
    return right.query, conjunction(conditions)


def _conditions(query: Any) -> list[Any]:
    return items(query.joinCond())


def _value(plans: Plans, e: Any) -> Query:
    """A query of exactly one row and one column."""
    plan = plans.jvm.prepare(e.plan())
    query = plans.exactly(plan)
    if _is_one_row(plan):
        return query
    value = _one_of(0, items(plan.output())[0])
    grouped = GroupBy(query, (), (_ROWS, value), ("_rows", "_value"))
    return Project(grouped, (_checked(Col(0), Col(1)),), query.columns)


def _is_one_row(plan: Any) -> bool:
    kind = plan.nodeName()
    if kind == "Aggregate":
        return int(plan.groupingExpressions().size()) == 0
    if kind in ("Project", "Sort"):
        return _is_one_row(children(plan)[0])
    return bool(kind == "OneRowRelation")


def _one_of(index: int, attribute: Any) -> Agg | Opaque:
    """The value of one of the rows."""
    kind = str(attribute.dataType().catalogString())
    if "map<" in kind or kind == "variant":  # these have no order, so no max
        return Opaque(("any_value(", ")"), (Col(index),))
    return Agg("max", (Col(index),), False, kind)


def _checked(rows: Scalar, value: Scalar) -> Scalar:
    """The value, or an error where there were several rows."""
    error = Opaque((f"raise_error('{_TOO_MANY}')",), ())
    return Call("case", (Call(">", (rows, Const(1))), error, value))


def single(plans: Plans, left: Frame, right: Frame, plan: Any) -> Frame:
    """A correlated scalar subquery that may give several rows: S ⟕ T, with T grouped by its keys.

    The error for several rows is raised above the join, so only for the rows that have partners.
    """
    condition = option(plan.condition())
    s, t = left.query, right.query
    both = Frame(Product(s, t), left.beside(right))
    on = TRUE if condition is None else plans.scalars(both)(condition)
    pairs, rest = equalities(on, s.arity)
    bound = [(a, b.index - s.arity, safe) for a, b, safe in pairs if isinstance(b, Col)]
    if rest is not None or len(bound) < len(pairs) or not pairs:
        raise Unsupported(
            "A correlated scalar subquery without an aggregate is translated only where it is"
            " bound by equalities of columns; put its value into max(…)."
        )
    attributes = {expr_id(a): a for a in items(children(plan)[1].output())}
    keys = tuple(dict.fromkeys(k for _, k, _ in bound))
    values = [i for i in range(t.arity) if right.ids[i] in attributes]
    aggs = (_ROWS, *(_one_of(i, attributes[right.ids[i]]) for i in values))
    shown = tuple(t.columns[i] for i in values)
    grouped = GroupBy(t, keys, aggs, ("_rows", *shown))
    conditions = [
        Call("<=>" if safe else "=", (a, Col(s.arity + keys.index(k)))) for a, k, safe in bound
    ]
    joined = Left(s, grouped, conjunction(list(conditions)))
    rows = s.arity + len(keys)
    found = [_checked(Col(rows), Col(rows + 1 + n)) for n in range(len(values))]
    items_ = (*(Col(i) for i in range(s.arity)), *found)
    ids = (*left.ids, *(right.ids[i] for i in values))
    return Frame(Project(joined, items_, (*s.columns, *shown)), ids)
