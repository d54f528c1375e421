"""The single-update equations for sets: Griffin, Libkin & Trickey 1997, figure 1 (rules 1–16), and
Griffin & Kumar 1998, figures 2 and 3 (P3′, P4, P17–P36) with the equality R1.

Rules 1–16 are those of Qian & Wiederhold 1991, and P1–P16 of the 1998 paper, where only P4 differs.
In set form ∪ is max, ∩ is min, − is ∸ and ΠA is ε(ΠA). ⋈, ⋉, ▷ and the outer joins are as in the
1998 paper: equality of columns, and nothing else, is the condition.

Findings, each shown in ``tests/test_equations_law.py``:

* P3′ is printed with the assumption ∇S ⊂ S; it holds without it.
* P19, P23, P27, P29, P33 and P35 lost the bar that tells ▷ from ⋉ in the text we have. The
  derivation of P19 in section 2.1 decides: loyal rows are (∇T ∩ T) ▷ (T − ∇T).
* P33–P36 read from left to right: ((S ⟗ T) − …) ∪ …, and ((S ⟗ T) ∪ …) − ….
* P33 and P35 assume that S and T do not both have a row of NULLs only. Both would be padded to the
  same row of the result, and deleting one of them must not delete it. The paper's default tuples
  d_S and d_T are tacitly no rows of S and T.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from viewkeeper.algebra.changes import gk98
from viewkeeper.algebra.changes.equations import By, Equation, Law, Step, Terms, minus
from viewkeeper.algebra.changes.propagation import padded, padded_left
from viewkeeper.algebra.nodes import (
    Anti,
    Full,
    Join,
    Left,
    Max,
    Min,
    Monus,
    Product,
    Project,
    Query,
    Right,
    Select,
    Semi,
)
from viewkeeper.algebra.scalars import Scalar

NO_NULL_ROWS = "not both S and T have a row of NULLs only"


def cup(bag: Query) -> Step:
    """∪ bag."""
    return Step(Max, bag)


def loyal(e: Terms, changed: Query, on_right: bool) -> Query:
    """(d ∩ X) ▷ (X − d): the rows really deleted from X that leave no friend behind in X."""
    on = e.q.on if on_right else gk98.flip(e.q.on, e.s.arity, e.t.arity)
    other = e.s if on_right else e.t
    return Anti(e.d & changed, changed - e.d, gk98.friends(on, other.arity, changed.arity))


def loyal_t(e: Terms) -> Query:
    """(∇T ∩ T) ▷ (T − ∇T)."""
    return loyal(e, e.t, on_right=True)


def loyal_s(e: Terms) -> Query:
    """(∇S ∩ S) ▷ (S − ∇S)."""
    return loyal(e, e.s, on_right=False)


def join(e: Terms, x: Query, y: Query) -> Query:
    """x ⋈ y, of rows of S and rows of T."""
    return Join(x, y, e.q.on)


def semi(e: Terms, x: Query, y: Query) -> Query:
    """x ⋉ y, of rows of S and rows of T."""
    return Semi(x, y, e.q.on)


def semi_t(e: Terms, y: Query, x: Query) -> Query:
    """y ⋉ x, of rows of T and rows of S."""
    return Semi(y, x, gk98.flip(e.q.on, x.arity, y.arity))


def _set(
    paper: str,
    number: str,
    text: str,
    node: type,
    changes: str,
    commutes: bool,
    *steps: Callable[[Any], Step],
    given: str = "",
) -> Equation:
    """An equation between sets; its left side shows whether rows are removed or added."""
    by: By = Monus if "∇" in text.partition("=")[0] else Max

    def all_steps(e: Terms) -> tuple[Step, ...]:
        return tuple(step(e) for step in steps)

    return Equation(paper, number, text, node, changes, by, all_steps, commutes, True, given)


# fmt: off
GLT97_FIGURE_1: tuple[Equation, ...] = (
    _set("GLT97", "1", "σp(S − ∇S) = σp(S) − σp(∇S)", Select, "S", False,
         lambda e: minus(e.e(e.d))),
    _set("GLT97", "2", "σp(S ∪ ΔS) = σp(S) ∪ σp(ΔS)", Select, "S", False,
         lambda e: cup(e.e(e.d))),
    _set("GLT97", "3", "ΠA(S − ∇S) = ΠA(S) − (ΠA(S) − ΠA(S − ∇S))", Project, "S", False,
         lambda e: minus(e.e(e.s) - e.e(e.s - e.d))),
    _set("GLT97", "4", "ΠA(S ∪ ΔS) = ΠA(S) ∪ (ΠA(ΔS) − ΠA(S))", Project, "S", False,
         lambda e: cup(e.e(e.d) - e.e(e.s))),
    _set("GLT97", "5", "(S − ∇S) × T = (S × T) − (∇S × T)", Product, "S", True,
         lambda e: minus(e.e(e.d))),
    _set("GLT97", "6", "(S ∪ ΔS) × T = (S × T) ∪ (ΔS × T)", Product, "S", True,
         lambda e: cup(e.e(e.d))),
    _set("GLT97", "7", "(S − ∇S) ∪ T = (S ∪ T) − (∇S − T)", Max, "S", True,
         lambda e: minus(e.d - e.t)),
    _set("GLT97", "8", "(S ∪ ΔS) ∪ T = (S ∪ T) ∪ (ΔS − T)", Max, "S", True,
         lambda e: cup(e.d - e.t)),
    _set("GLT97", "9", "(S − ∇S) − T = (S − T) − (∇S − T)", Monus, "S", False,
         lambda e: minus(e.d - e.t)),
    _set("GLT97", "10", "S − (T − ∇T) = (S − T) ∪ (S ∩ ∇T)", Monus, "T", False,
         lambda e: cup(e.s & e.d)),
    _set("GLT97", "11", "(S ∪ ΔS) − T = (S − T) ∪ (ΔS − T)", Monus, "S", False,
         lambda e: cup(e.d - e.t)),
    _set("GLT97", "12", "S − (T ∪ ΔT) = (S − T) − (S ∩ ΔT)", Monus, "T", False,
         lambda e: minus(e.s & e.d)),
    _set("GLT97", "13", "(S − ∇S) ∩ T = (S ∩ T) − (∇S ∩ T)", Min, "S", True,
         lambda e: minus(e.d & e.t)),
    _set("GLT97", "14", "(S ∪ ΔS) ∩ T = (S ∩ T) ∪ (ΔS ∩ T)", Min, "S", True,
         lambda e: cup(e.d & e.t)),
    _set("GLT97", "15", "(S − ∇S) ⋈ T = (S ⋈ T) − (∇S ⋈ T)", Join, "S", True,
         lambda e: minus(e.e(e.d))),
    _set("GLT97", "16", "(S ∪ ΔS) ⋈ T = (S ⋈ T) ∪ (ΔS ⋈ T)", Join, "S", True,
         lambda e: cup(e.e(e.d))),
)

GK98_FIGURE_3: tuple[Equation, ...] = (
    _set("GK98", "P3′", "ΠA(S − ∇S) = ΠA(S) − (ΠA(∇S) − ΠA(S − ∇S))", Project, "S", False,
         lambda e: minus(e.e(e.d) - e.e(e.s - e.d))),
    _set("GK98", "P4", "ΠA(S ∪ ΔS) = ΠA(S) ∪ ΠA(ΔS)", Project, "S", False,
         lambda e: cup(e.e(e.d))),
    _set("GK98", "P17", "(S − ∇S) ⋉ T = (S ⋉ T) − ∇S", Semi, "S", False,
         lambda e: minus(e.d)),
    _set("GK98", "P18", "(S ∪ ΔS) ⋉ T = (S ⋉ T) ∪ (ΔS ⋉ T)", Semi, "S", False,
         lambda e: cup(e.e(e.d))),
    _set("GK98", "P19", "S ⋉ (T − ∇T) = (S ⋉ T) − (S ⋉ ((∇T ∩ T) ▷ (T − ∇T)))", Semi, "T", False,
         lambda e: minus(semi(e, e.s, loyal_t(e)))),
    _set("GK98", "P20", "S ⋉ (T ∪ ΔT) = (S ⋉ T) ∪ (S ⋉ ΔT)", Semi, "T", False,
         lambda e: cup(e.e(e.d))),
    _set("GK98", "P21", "(S − ∇S) ▷ T = (S ▷ T) − ∇S", Anti, "S", False,
         lambda e: minus(e.d)),
    _set("GK98", "P22", "(S ∪ ΔS) ▷ T = (S ▷ T) ∪ (ΔS ▷ T)", Anti, "S", False,
         lambda e: cup(e.e(e.d))),
    _set("GK98", "P23", "S ▷ (T − ∇T) = (S ▷ T) ∪ (S ⋉ ((∇T ∩ T) ▷ (T − ∇T)))", Anti, "T", False,
         lambda e: cup(semi(e, e.s, loyal_t(e)))),
    _set("GK98", "P24", "S ▷ (T ∪ ΔT) = (S ▷ T) − (S ⋉ ΔT)", Anti, "T", False,
         lambda e: minus(semi(e, e.s, e.d))),
    _set("GK98", "P25", "(S − ∇S) ⟕ T = (S ⟕ T) − (∇S ⟕ T)", Left, "S", False,
         lambda e: minus(e.e(e.d))),
    _set("GK98", "P26", "(S ∪ ΔS) ⟕ T = (S ⟕ T) ∪ (ΔS ⟕ T)", Left, "S", False,
         lambda e: cup(e.e(e.d))),
    _set("GK98", "P27", "S ⟕ (T − ∇T) = ((S ⟕ T) − (S ⋈ ∇T)) ∪ "
         "((S ⋉ ((T ∩ ∇T) ▷ (T − ∇T))) × {d_T})", Left, "T", False,
         lambda e: minus(join(e, e.s, e.d)),
         lambda e: cup(padded(semi(e, e.s, loyal_t(e)), e.t))),
    _set("GK98", "P28", "S ⟕ (T ∪ ΔT) = ((S ⟕ T) − ((S ⋉ ΔT) × {d_T})) ∪ (S ⋈ ΔT)",
         Left, "T", False,
         lambda e: minus(padded(semi(e, e.s, e.d), e.t)),
         lambda e: cup(join(e, e.s, e.d))),
    _set("GK98", "P29", "(S − ∇S) ⟖ T = ((S ⟖ T) − (∇S ⋈ T)) ∪ "
         "({d_S} × (T ⋉ ((S ∩ ∇S) ▷ (S − ∇S))))", Right, "S", False,
         lambda e: minus(join(e, e.d, e.t)),
         lambda e: cup(padded_left(e.s, semi_t(e, e.t, loyal_s(e))))),
    _set("GK98", "P30", "(S ∪ ΔS) ⟖ T = ((S ⟖ T) − ({d_S} × (T ⋉ ΔS))) ∪ (ΔS ⋈ T)",
         Right, "S", False,
         lambda e: minus(padded_left(e.s, semi_t(e, e.t, e.d))),
         lambda e: cup(join(e, e.d, e.t))),
    _set("GK98", "P31", "S ⟖ (T − ∇T) = (S ⟖ T) − (S ⟖ ∇T)", Right, "T", False,
         lambda e: minus(e.e(e.d))),
    _set("GK98", "P32", "S ⟖ (T ∪ ΔT) = (S ⟖ T) ∪ (S ⟖ ΔT)", Right, "T", False,
         lambda e: cup(e.e(e.d))),
    _set("GK98", "P33", "(S − ∇S) ⟗ T = ((S ⟗ T) − (∇S ⟕ T)) ∪ "
         "({d_S} × (T ⋉ ((∇S ∩ S) ▷ (S − ∇S))))", Full, "S", False,
         lambda e: minus(Left(e.d, e.t, e.q.on)),
         lambda e: cup(padded_left(e.s, semi_t(e, e.t, loyal_s(e)))), given=NO_NULL_ROWS),
    _set("GK98", "P34", "(S ∪ ΔS) ⟗ T = ((S ⟗ T) ∪ (ΔS ⟕ T)) − ({d_S} × (T ⋉ ΔS))",
         Full, "S", False,
         lambda e: cup(Left(e.d, e.t, e.q.on)),
         lambda e: minus(padded_left(e.s, semi_t(e, e.t, e.d)))),
    _set("GK98", "P35", "S ⟗ (T − ∇T) = ((S ⟗ T) − (S ⟖ ∇T)) ∪ "
         "((S ⋉ ((∇T ∩ T) ▷ (T − ∇T))) × {d_T})", Full, "T", False,
         lambda e: minus(Right(e.s, e.d, e.q.on)),
         lambda e: cup(padded(semi(e, e.s, loyal_t(e)), e.t)), given=NO_NULL_ROWS),
    _set("GK98", "P36", "S ⟗ (T ∪ ΔT) = ((S ⟗ T) ∪ (S ⟖ ΔT)) − ((S ⋉ ΔT) × {d_T})",
         Full, "T", False,
         lambda e: cup(Right(e.s, e.d, e.q.on)),
         lambda e: minus(padded(semi(e, e.s, e.d), e.t))),
)
# fmt: on


def r1(on: Scalar) -> Law:
    """R1: (Q ⋉ S) − (Q ⋉ T) = Q ⋉ (S ▷ T), for one condition of ⋉; ▷ compares its right columns."""

    def left(q: Query, s: Query, t: Query) -> Query:
        return Semi(q, s, on) - Semi(q, t, on)

    def right(q: Query, s: Query, t: Query) -> Query:
        return Semi(q, Anti(s, t, gk98.friends(on, q.arity, s.arity)), on)

    text = "(Q ⋉ S) − (Q ⋉ T) = Q ⋉ (S ▷ T)"
    return Law("GK98", "R1", text, left, right, given="the condition is equality of columns")
