"""Griffin & Libkin 1995, figure 2: how one change of one input moves up through an operator.

Each equation has the form

    e(S with one change d, T)  =  e(S, T) ∸ X   or   e(S, T) ⊎ X,       with X controlled by d

and is data: its number, its text, and X as a function of S, T and d. ``left`` and ``right`` build
its two sides, so a test can evaluate both. None of P1–P18 assumes that a deletion is contained in
what it is deleted from. ``by_equations`` runs the paper's derivation of figure 3:

    1. each change of each input is moved up, one at a time, by P1–P18, and G1, G2 collect them;
    2. Theorem 2 makes the pair strongly minimal;
    3. the paper then simplifies by hand, which gives figure 3 (``gl95``); we leave the pair as is.

Beyond the figure: ⋈ has the equations of ×, because S ⋈ T = σ(S × T). The equations for sets are
in ``equations_sets``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from viewkeeper.algebra.changes.gl95 import no_rule, strongly_minimal
from viewkeeper.algebra.changes.glt97 import as_set
from viewkeeper.algebra.changes.propagation import Changes, Figure, Pair, propagate
from viewkeeper.algebra.nodes import (
    Distinct,
    Empty,
    Join,
    Literal,
    Max,
    Min,
    Monus,
    Plus,
    Product,
    Project,
    Query,
    Select,
    Table,
    children,
    with_children,
)

By = type[Monus] | type[Plus] | type[Max]  # ∸ (− on sets), ⊎, ∪


class Step(NamedTuple):
    """A change by one bag: ``∸ bag``, ``⊎ bag``, or on sets ``∪ bag``."""

    by: By
    bag: Query

    def of(self, q: Query) -> Query:
        """The query after the step."""
        made: Query = self.by(q, self.bag)
        return made


@dataclass(frozen=True)
class Terms:
    """What an equation speaks of: an operator q = e(S, T), and the change d of S or of T."""

    q: Any
    d: Query
    place: int  # which input of q changes
    swapped: bool  # printed for S, but q commutes and has the change in its second input

    @property
    def s(self) -> Query:
        """S as the equation has it."""
        return children(self.q)[1 if self.swapped else 0]

    @property
    def t(self) -> Query:
        """T as the equation has it."""
        return children(self.q)[0 if self.swapped else 1]

    def e(self, x: Query) -> Query:
        """The operator with x in the place of what changes: σp(x), ΠA(x), x × T, …"""
        new = list(children(self.q))
        new[self.place] = x
        return with_children(self.q, tuple(new))


@dataclass(frozen=True)
class Equation:
    """One equation of a figure: ``left(q, d)`` and ``right(q, d)`` mean the same.

    ``q`` is the operator over S and T, ``d`` what is removed from one of them or added to it. On
    sets, q, d, S and T are without duplicates, and both sides are in set form.

    Examples
    --------
    >>> from viewkeeper import algebra as al
    >>> S, T, d = al.table("S", ["a"]), al.table("T", ["a"]), al.table("d", ["a"])
    >>> p9 = next(e for e in GL95_FIGURE_2 if e.number == "P9")
    >>> print(p9.text)
    (S ⊎ ΔS) ∸ T = (S ∸ T) ⊎ (ΔS ∸ (T ∸ S))
    >>> print(p9.left(S - T, d), " = ", p9.right(S - T, d))
    (S ⊎ d) ∸ T  =  (S ∸ T) ⊎ (d ∸ (T ∸ S))
    """

    paper: str
    number: str
    text: str
    node: type  # the operator e
    changes: str  # which input changes: "S" or "T"
    by: By  # whether rows are removed from it or added to it
    steps: Callable[[Terms], tuple[Step, ...]]  # what that does to e(S, T)
    commutes: bool = False  # holds for T as for S
    sets: bool = False
    given: str = ""  # what must hold besides

    def covers(self, q: Query, place: int, by: By) -> bool:
        """Is the equation about this change of this input of this operator?"""
        here = self.commutes or (place == 0) == (self.changes == "S")
        return isinstance(q, self.node) and here and by is self.by

    def terms(self, q: Query, d: Query, place: int | None = None) -> Terms:
        """The equation's names bound to an operator and a change."""
        printed = 0 if self.changes == "S" else 1
        at = printed if place is None else place
        return Terms(q, d, at, swapped=at != printed)

    def left(self, q: Query, d: Query, place: int | None = None) -> Query:
        """The left side: q with d applied to its input."""
        terms = self.terms(q, d, place)
        changed: Query = self.by(children(q)[terms.place], d)
        return self._form(terms.e(changed))

    def right(self, q: Query, d: Query, place: int | None = None) -> Query:
        """The right side: q, then the steps."""
        whole = q
        for step in self.steps(self.terms(q, d, place)):
            whole = step.of(whole)
        return self._form(whole)

    def _form(self, q: Query) -> Query:
        return as_set(q) if self.sets else q


@dataclass(frozen=True)
class Law:
    """An equation of another form, between two queries over the same inputs."""

    paper: str
    number: str
    text: str
    left: Callable[[Query, Query, Query], Query]
    right: Callable[[Query, Query, Query], Query]
    given: str = ""


def _bag(
    number: str, text: str, node: type, changes: str, commutes: bool, step: Callable[[Any], Step]
) -> Equation:
    """An equation of figure 2: one step; its left side shows whether rows are removed or added."""
    by: By = Monus if "∇" in text.partition("=")[0] else Plus
    return Equation("GL95", number, text, node, changes, by, lambda e: (step(e),), commutes)


def minus(bag: Query) -> Step:
    """∸ bag."""
    return Step(Monus, bag)


def plus(bag: Query) -> Step:
    """⊎ bag."""
    return Step(Plus, bag)


# fmt: off
GL95_FIGURE_2: tuple[Equation, ...] = (
    _bag("P1", "σp(S ∸ ∇S) = σp(S) ∸ σp(∇S)", Select, "S", False,
         lambda e: minus(e.e(e.d))),
    _bag("P2", "σp(S ⊎ ΔS) = σp(S) ⊎ σp(ΔS)", Select, "S", False,
         lambda e: plus(e.e(e.d))),
    _bag("P3", "ΠA(S ∸ ∇S) = ΠA(S) ∸ ΠA(∇S min S)", Project, "S", False,
         lambda e: minus(e.e(e.d & e.s))),
    _bag("P4", "ΠA(S ⊎ ΔS) = ΠA(S) ⊎ ΠA(ΔS)", Project, "S", False,
         lambda e: plus(e.e(e.d))),
    _bag("P5", "(S ∸ ∇S) ⊎ T = (S ⊎ T) ∸ (∇S min S)", Plus, "S", True,
         lambda e: minus(e.d & e.s)),
    _bag("P6", "(S ⊎ ΔS) ⊎ T = (S ⊎ T) ⊎ ΔS", Plus, "S", True,
         lambda e: plus(e.d)),
    _bag("P7", "(S ∸ ∇S) ∸ T = (S ∸ T) ∸ ∇S", Monus, "S", False,
         lambda e: minus(e.d)),
    _bag("P8", "S ∸ (T ∸ ∇T) = (S ∸ T) ⊎ ((∇T min T) ∸ (T ∸ S))", Monus, "T", False,
         lambda e: plus((e.d & e.t) - (e.t - e.s))),
    _bag("P9", "(S ⊎ ΔS) ∸ T = (S ∸ T) ⊎ (ΔS ∸ (T ∸ S))", Monus, "S", False,
         lambda e: plus(e.d - (e.t - e.s))),
    _bag("P10", "S ∸ (T ⊎ ΔT) = (S ∸ T) ∸ ΔT", Monus, "T", False,
         lambda e: minus(e.d)),
    _bag("P11", "(S ∸ ∇S) min T = (S min T) ∸ (∇S ∸ (S ∸ T))", Min, "S", True,
         lambda e: minus(e.d - (e.s - e.t))),
    _bag("P12", "(S ⊎ ΔS) min T = (S min T) ⊎ (ΔS min (T ∸ S))", Min, "S", True,
         lambda e: plus(e.d & (e.t - e.s))),
    _bag("P13", "(S ∸ ∇S) max T = (S max T) ∸ (∇S min (S ∸ T))", Max, "S", True,
         lambda e: minus(e.d & (e.s - e.t))),
    _bag("P14", "(S ⊎ ΔS) max T = (S max T) ⊎ (ΔS ∸ (T ∸ S))", Max, "S", True,
         lambda e: plus(e.d - (e.t - e.s))),
    _bag("P15", "ε(S ∸ ∇S) = ε(S) ∸ (ε(∇S min S) ∸ (S ∸ ∇S))", Distinct, "S", False,
         lambda e: minus(e.e(e.d & e.s) - (e.s - e.d))),
    _bag("P16", "ε(S ⊎ ΔS) = ε(S) ⊎ (ε(ΔS) ∸ S)", Distinct, "S", False,
         lambda e: plus(e.e(e.d) - e.s)),
    _bag("P17", "(S ∸ ∇S) × T = (S × T) ∸ (∇S × T)", Product, "S", True,
         lambda e: minus(e.e(e.d))),
    _bag("P18", "(S ⊎ ΔS) × T = (S × T) ⊎ (ΔS × T)", Product, "S", True,
         lambda e: plus(e.e(e.d))),
)

# The equations that figure 2 leaves out.
GL95_MORE: tuple[Equation, ...] = (
    _bag("P8′", "S ∸ (T ∸ ∇T) = (S ∸ T) ⊎ ((S ∸ (T ∸ ∇T)) ∸ (S ∸ T))", Monus, "T", False,
         lambda e: plus((e.s - (e.t - e.d)) - (e.s - e.t))),
    _bag("P17⋈", "(S ∸ ∇S) ⋈ T = (S ⋈ T) ∸ (∇S ⋈ T)", Join, "S", True,
         lambda e: minus(e.e(e.d))),
    _bag("P18⋈", "(S ⊎ ΔS) ⋈ T = (S ⋈ T) ⊎ (ΔS ⋈ T)", Join, "S", True,
         lambda e: plus(e.e(e.d))),
)

GL95_LAWS: tuple[Law, ...] = (
    Law("GL95", "G1", "(S ⊎ T) ⊎ W = S ⊎ (T ⊎ W)",
        lambda s, t, w: (s + t) + w, lambda s, t, w: s + (t + w)),
    Law("GL95", "G2", "(S ∸ T) ∸ W = S ∸ (T ⊎ W)",
        lambda s, t, w: (s - t) - w, lambda s, t, w: s - (t + w)),
    # ours: what G1 and G2 need when an insertion was moved up before a deletion
    Law("ours", "G3", "(S ⊎ T) ∸ W = (S ∸ (W ∸ T)) ⊎ (T ∸ W)",
        lambda s, t, w: (s + t) - w, lambda s, t, w: (s - (w - t)) + (t - w)),
)
# fmt: on


def by_equations(q: Query, tables: Mapping[Query, Pair]) -> Pair:
    """The strongly minimal change of a query, by P1–P18, G1–G3 and Theorem 2 at every operator.

    Slower and longer than figure 3, with which it agrees; covers φ σ Π ⊎ ∸ min max ε × ⋈.

    >>> from viewkeeper import algebra as al
    >>> from viewkeeper.algebra.changes.propagation import table_change
    >>> S, T = al.table("S", ["a"]), al.table("T", ["a"])
    >>> print(by_equations(S + T, {S: table_change(S), T: table_change(T)}).removed)
    ((S ⊎ T) min ((∇S min S) ⊎ (∇T min T))) ∸ (ΔS ⊎ ΔT)
    """
    return propagate(q, tables, Figure(_nabla, _delta))


def _nabla(q: Query, c: Changes) -> Query:
    return _change(q, c).removed


def _delta(q: Query, c: Changes) -> Query:
    return _change(q, c).added


def _change(q: Query, c: Changes) -> Pair:
    if isinstance(q, (Table, Empty, Literal)):
        nothing = Empty(q.scope)
        return c.tables.get(q, Pair(nothing, nothing))
    return strongly_minimal(q, collected(q, moved_up(q, c)))


def moved_up(q: Query, c: Changes) -> list[Step]:
    """Step one: all changes of q's inputs as changes of q, in the order in which they apply.

    The equations take the outermost change of an input first: ΔT, ΔS, then ∇T, ∇S. What was moved
    up last stands next to q, so it applies first.
    """
    below = list(children(q))
    now = [_changed(c.delta(s), Plus, _changed(c.nabla(s), Monus, s)) for s in below]
    found: list[Step] = []
    sides: tuple[By, ...] = (Plus, Monus)
    for by in sides:
        for place in reversed(range(len(below))):
            s = below[place]
            d = c.delta(s) if by is Plus else c.nabla(s)
            now[place] = _changed(c.nabla(s), Monus, s) if by is Plus else s
            if not isinstance(d, Empty):
                rest = with_children(q, tuple(now))
                equation = _covering(q, place, by)
                found += reversed(equation.steps(equation.terms(rest, d, place)))
    return found[::-1]


def _changed(d: Query, by: By, s: Query) -> Query:
    """s ∸ d or s ⊎ d; s itself if d is φ."""
    return s if isinstance(d, Empty) else Step(by, d).of(s)


def _covering(q: Query, place: int, by: By) -> Equation:
    for equation in GL95_FIGURE_2 + GL95_MORE:
        if equation.covers(q, place, by):
            return equation
    raise no_rule(q)


def collected(q: Query, steps: list[Step]) -> Pair:
    """The steps as one deletion and one insertion: (q ∸ ∇₁) ⊎ Δ₁.

    ⊎ b adds to the insertion (G1); ∸ c first takes from the insertion, and the rest of it adds to
    the deletion (G3, then G2).
    """
    gone: Query | None = None
    come: Query | None = None
    for by, bag in steps:
        if by is Plus:
            come = bag if come is None else come + bag
            continue
        if come is not None:
            come, bag = come - bag, bag - come
        gone = bag if gone is None else gone + bag
    nothing = Empty(q.scope)
    return Pair(gone or nothing, come or nothing)
