"""What makes a result depend on more than its sources: the time, the session, chance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from viewkeeper.frontend.jvm import Jvm, children, items, walk

_OF_TIME = ("CurrentDate", "CurrentTimestamp", "CurrentTime", "Now", "LocalTimestamp")
_OF_SESSION = (
    "CurrentUser",
    "SessionUser",
    "CurrentDatabase",
    "CurrentCatalog",
    "CurrentTimeZone",
    "CurrentPath",
)

_SUBQUERIES = ("ScalarSubquery", "Exists", "ListQuery", "LateralSubquery")


def volatile(jvm: Jvm, plan: Any) -> str | None:
    """A sentence that names the function, or None; ``plan`` is the analysed one."""
    if not jvm.has(plan, "CURRENT_LIKE") and plan.deterministic():
        return None
    for e in expressions(plan):
        kind = str(e.nodeName())
        if kind in _OF_TIME:
            return f"{e.prettyName()}() gives the time of the refresh."
        if kind in _OF_SESSION:
            return f"{e.prettyName()}() depends on who refreshes, and where."
        if kind in _SUBQUERIES:
            continue
        if not e.deterministic() and all(c.deterministic() for c in children(e)):
            name = e.name() if kind.startswith("PythonUD") else e.prettyName()
            return f"{name}() may give another value each time."
    return "The query is not deterministic."


def expressions(plan: Any) -> Iterator[Any]:
    """All expressions of a plan and of the subqueries in it."""
    for _, found in operators(plan):
        yield from found


def operators(plan: Any) -> Iterator[tuple[Any, list[Any]]]:
    """All operators of a plan and of the subqueries in it, each with its expressions."""
    plans = [plan]
    while plans:
        for node in walk(plans.pop()):
            if node.nodeName() == "WithCTE":
                plans.extend(items(node.cteDefs()))
            found = [e for root in items(node.expressions()) for e in walk(root)]
            yield node, found
            plans += [e.plan() for e in found if str(e.nodeName()) in _SUBQUERIES]
