"""The optimizer: passes in one tuple, each a set of laws applied bottom-up until none fires."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from viewkeeper.algebra.nodes import (
    Anti,
    Distinct,
    Full,
    GroupBy,
    Join,
    Left,
    Literal,
    Max,
    Min,
    Monus,
    Net,
    Node,
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
    with_children,
)
from viewkeeper.algebra.scope import A_QUERY, expect
from viewkeeper.algebra.simplify import laws_empty as empty
from viewkeeper.algebra.simplify import laws_proof as proof
from viewkeeper.algebra.simplify import laws_structure as structure
from viewkeeper.algebra.simplify.facts import Facts
from viewkeeper.algebra.simplify.knowledge import Knowledge

Law = Callable[[Query, Knowledge], Query | None]
Laws = dict[type, tuple[Law, ...]]

EMPTINESS: Laws = {
    Table: (empty.table_append_only,),
    Literal: (empty.literal_empty,),
    **dict.fromkeys((Select, Project, Distinct, Unnest, Window, Top, Net), (empty.unary_empty,)),
    GroupBy: (empty.group_empty,),
    Plus: (empty.plus_empty,),
    Max: (empty.plus_empty,),
    Monus: (empty.monus_empty,),
    Min: (empty.min_empty,),
    Product: (empty.join_empty,),
    Join: (empty.join_empty,),
    Semi: (empty.join_empty,),
    Anti: (empty.anti_empty,),
    Left: (empty.left_empty,),
    Right: (empty.right_empty,),
    Full: (empty.full_empty,),
}

STRUCTURE: Laws = {
    Select: (structure.select_constant, structure.select_select, structure.select_product),
    Project: (structure.project_identity, structure.project_project, structure.literal_project),
    Distinct: (structure.distinct_distinct, structure.distinct_below),
    GroupBy: (structure.group_distinct,),
    Monus: (structure.same_sides, structure.monus_plus, structure.monus_monus),
    Min: (structure.same_sides, structure.min_absorbed),
    Max: (structure.same_sides,),
    Join: (structure.join_true,),
    Semi: (structure.semi_true, structure.semi_distinct),
}

PROOF: Laws = {
    Select: (proof.contradiction,),
    Product: (proof.contradiction,),
    Join: (proof.contradiction, proof.join_foreign_key),
    Semi: (proof.contradiction, proof.join_foreign_key, proof.semi_contained, proof.semi_disjoint),
    Anti: (proof.no_partner, proof.anti_foreign_key),
    Left: (proof.no_partner,),
    Right: (proof.no_partner,),
    Monus: (
        proof.monus_contained,
        proof.monus_disjoint,
        proof.monus_part_disjoint,
        proof.monus_plus_parts,
    ),
    Min: (proof.min_disjoint, proof.min_contained, proof.min_part_disjoint),
    Max: (proof.max_contained,),
    Plus: (proof.plus_restored,),
    Distinct: (proof.distinct_duplicate_free,),
}


def _together(*parts: Laws) -> Laws:
    kinds = dict.fromkeys(kind for laws in parts for kind in laws)
    return {kind: tuple(law for laws in parts for law in laws.get(kind, ())) for kind in kinds}


PASSES: tuple[tuple[str, Laws], ...] = (
    # first: most of a raw change is ∅, and what is gone need not be looked at again
    ("emptiness", EMPTINESS),
    # then all laws, at each node the cheap ones first: what can be seen from its form, so that
    # proofs find equal things equal; the dear ones last; each may make something empty again
    ("all", _together(EMPTINESS, STRUCTURE, PROOF)),
)
LAWS: tuple[Law, ...] = tuple(
    dict.fromkeys(
        law for laws in (EMPTINESS, STRUCTURE, PROOF) for group in laws.values() for law in group
    )
)


class Step(NamedTuple):
    """One use of a law: its name and equation, what it found and what it left."""

    law: str
    equation: str
    before: Query
    after: Query

    def __str__(self) -> str:
        return f"{self.law}: {self.before}  →  {self.after}"


def simplify(query: Query, facts: Facts | None = None, *, trace: list[Step] | None = None) -> Query:
    """The query made smaller by what can be proved, with the same meaning.

    Parameters
    ----------
    query : Query
    facts : Facts, optional
        What is known of the tables.
    trace : list, optional
        Gets a Step for each use of a law.

    Examples
    --------
    >>> from viewkeeper import algebra as al
    >>> R, S = al.table("R", ["a"]), al.table("S", ["a"])
    >>> steps = []
    >>> print(al.simplify((R + S) - S, trace=steps))
    R
    >>> print(steps[0].law, "–", steps[0].equation)
    monus_plus – (S ⊎ T) ∸ T = S, (S ⊎ T) ∸ S = T, (S ⊎ T) ∸ (S ⊎ U) = T ∸ U.
    """
    return simplify_all((query,), facts, trace=trace)[0]


def simplify_all(
    queries: Iterable[Query], facts: Facts | None = None, *, trace: list[Step] | None = None
) -> tuple[Query, ...]:
    """Several queries made smaller together: what they share is looked at once.

    >>> from viewkeeper import algebra as al
    >>> R, S = al.table("R", ["a"]), al.table("S", ["a"])
    >>> [str(q) for q in simplify_all(list(al.change(R + S, ["R"])))]
    ['∇R', 'ΔR']
    """
    expect(queries, Iterable, "the queries")
    queries = list(queries)
    for q in queries:
        expect(q, Node, "the query", A_QUERY)
    expect(facts or Facts(), Facts, "what is known of the tables", "Give al.Facts(…).")
    knowledge = Knowledge(facts or Facts())
    for _, laws in PASSES:
        rewriter = _Rewriter(laws, knowledge, trace)
        queries = [rewriter.run(q) for q in queries]
    return tuple(queries)


class _Rewriter:
    """One pass: every node once, inputs first; a new node made by a law is looked at again."""

    def __init__(self, laws: Laws, knowledge: Knowledge, trace: list[Step] | None) -> None:
        self.laws = laws
        self.knowledge = knowledge
        self.trace = trace
        self.done: dict[Query, Query] = {}

    def run(self, root: Query) -> Query:
        """The simplified node. ``waiting`` holds nodes whose law gave another node to do first."""
        done = self.done
        stack: list[Query] = [root]
        waiting: dict[Query, Query] = {}
        while stack:
            q = stack[-1]
            if q in done:
                stack.pop()
                continue
            if q in waiting:
                result = done.get(waiting[q])
                if result is None:
                    stack.append(waiting[q])
                    continue
                done[q] = result
                stack.pop()
                continue
            below = children(q)
            todo = [c for c in below if c not in done]
            if todo:
                stack.extend(todo)
                continue
            new = tuple(done[c] for c in below)
            node = q if new == below else with_children(q, new)
            after = done.get(node) if node is not q else None
            if after is None:
                after = self.apply(node)
            if after is node:
                done[node] = done[q] = node
                stack.pop()
            elif after in done:
                done[q] = done[node] = done[after]
                stack.pop()
            else:
                waiting[q] = after
        return done[root]

    def apply(self, q: Query) -> Query:
        """The first law that fires, or the node itself."""
        for law in self.laws.get(type(q), ()):
            after = law(q, self.knowledge)
            if after is not None and after is not q:
                if self.trace is not None:
                    equation = (law.__doc__ or "").split("\n")[0]
                    self.trace.append(Step(law.__name__, equation, q, after))
                return after
        return q
