"""Scenarios on the reference evaluator: the same plans on the same rows, with no engine."""

from __future__ import annotations

import math
from collections import Counter
from decimal import Decimal
from typing import Any

from plan_checks import counted, run
from scenario import Bag
from scenario_run import Trace
from viewkeeper import algebra as al
from viewkeeper.algebra.nodes import GroupBy, Query, children, with_children
from viewkeeper.algebra.scalars import Agg
from viewkeeper.algebra.walk import postorder
from viewkeeper.errors import EvaluationError, UnsupportedScalarError
from viewkeeper.plan.bags import BagStore
from viewkeeper.plan.finish import INTEGERS, decimal
from viewkeeper.plan.prune import prune
from viewkeeper.plan.pushdown import push_down
from viewkeeper.plan.shapes import store_of
from viewkeeper.plan.tops import TopStore

Outcome = Counter[str]


def check_trace(trace: Trace) -> Outcome:
    """Runs each view's plan from each moment to the next; counts what was checked, or why not."""
    found: Outcome = Counter()
    for name, definition in trace.definitions.items():
        for old, new in zip(trace.moments, trace.moments[1:], strict=False):
            if name not in old.views or name not in new.views or old.tables == new.tables:
                continue
            try:
                found[_check(name, definition, old, new)] += 1
            except UnsupportedScalarError as e:
                found[f"an expression of the engine: {e.what[:60]}"] += 1
            except EvaluationError as e:
                found[f"values that the reference does not know: {e.what[:60]}"] += 1
    return found


def _check(name: str, definition: Any, old: Any, new: Any) -> str:
    if definition.query is None or definition.volatile:
        return "no query in the algebra"
    q = prune(push_down(al.simplify(_untyped(definition.query))))
    refs = {leaf: ref.parts[-1] for leaf, ref in definition.sources.items()}
    if any(refs[t.name] not in old.tables for t in al.tables(q)):
        return "a source that is not a table of the scenario"
    for t in al.tables(q):
        for moment in (old, new):
            if any(c not in moment.columns[refs[t.name]] for c in t.names):
                return "a column that is gone, or not there yet"
    before, after = _narrow(q, refs, old), _narrow(q, refs, new)
    if _odd(before) or _odd(after):
        return "NaN or zeros of two signs in the data"
    answer = al.evaluate(q, after)
    assert _rough(answer) == _rough(new.views[name]), f"{name}: the reference gives {answer}"
    names = [n for n in before if before[n] != after[n]]
    changes = {n: (before[n] - after[n], after[n] - before[n]) for n in names}
    shape = store_of(q)
    if not names:
        return "no change of the columns used"
    stored, signed = run(shape.refresh(names), al.evaluate(shape.build(), before), after, changes)
    built = al.evaluate(shape.build(), after)
    if isinstance(shape, (BagStore, TopStore)):
        stored, built = counted(stored), counted(built)
    assert _rough(stored) == _rough(built), f"{name}: the store is {stored}, not {built}"
    was = al.evaluate(q, before)
    have: Counter[Any] = Counter()
    for row, n in signed.items():
        have[row[:-1]] += row[-1] * n
    have = Counter({row: n for row, n in have.items() if n})
    want = Counter(answer)
    want.subtract(was)
    assert have == Counter({r: n for r, n in want.items() if n}), f"{name}: the change is {signed}"
    return "checked"


def _untyped(q: Query) -> Query:
    """The query with the algebra's own aggregates of whole numbers and decimals."""
    made: dict[Query, Query] = {}
    for node in postorder(q):
        below = tuple(made[c] for c in children(node)) if children(node) else ()
        new = with_children(node, below) if below else node
        if isinstance(new, GroupBy):
            new = GroupBy(new.s, new.keys, tuple(_plain(a) for a in new.aggs), new.names)
        made[node] = new
    return made[q]


def _plain(a: Any) -> Any:
    exact = isinstance(a, Agg) and (a.type in INTEGERS or decimal(a.type)[0])
    return Agg(a.function, a.args, a.distinct) if exact else a


def _narrow(q: Query, refs: dict[str, str], moment: Any) -> dict[str, Bag]:
    """The rows of each leaf, over its columns."""
    found: dict[str, Bag] = {}
    for t in al.tables(q):
        places = [moment.columns[refs[t.name]].index(c) for c in t.names]
        rows: Bag = Counter()
        for row, n in moment.tables[refs[t.name]].items():
            rows[tuple(row[i] for i in places)] += n
        found[t.name] = rows
    return found


def _odd(tables: dict[str, Bag]) -> bool:
    return any(v == "NaN" for rows in tables.values() for row in rows for v in row)


def _rough(rows: Bag) -> Bag:
    """Numbers as floats of nine digits: the engine's types have scales, Python's have none."""
    found: Bag = Counter()
    for row, n in rows.items():
        found[tuple(_number(v) for v in row)] += n
    return found


def _number(v: Any) -> Any:
    if isinstance(v, (float, Decimal)) and not isinstance(v, bool):
        return float(f"{float(v):.9g}") if math.isfinite(float(v)) else v
    return v
