"""Walks over shared trees: each node once, inputs before their operator, without recursion."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from viewkeeper.algebra.nodes import Node, Query, Table, children, with_children
from viewkeeper.algebra.scope import A_QUERY, expect


def postorder(*roots: Query, known: Collection[Query] = ()) -> list[Query]:
    """All nodes below the roots, each once, inputs first; without what is known, and what is below.

    >>> R = Table("R", ("a",))
    >>> [str(q) for q in postorder((R + R) - R)]
    ['R', 'R ⊎ R', '(R ⊎ R) ∸ R']
    """
    order: list[Query] = []
    seen: set[Query] = set(known)
    stack: list[Query | None] = list(reversed(roots))
    open_: list[Query] = []  # their inputs are above them on the stack; None ends them
    while stack:
        q = stack.pop()
        if q is None:
            order.append(open_.pop())
        elif q not in seen:
            seen.add(q)
            below = children(q)
            if below:
                open_.append(q)
                stack.append(None)
                stack.extend(reversed(below))
            else:
                order.append(q)
    return order


def size(*roots: Query) -> int:
    """The number of distinct nodes: the size of the shared graph, not of the tree."""
    return len(postorder(*_queries(roots)))


def tables(*roots: Query) -> list[Table]:
    """The tables a query reads, each once, in the order of first use."""
    return [q for q in postorder(*_queries(roots)) if isinstance(q, Table)]


def _queries(given: tuple[Query, ...]) -> tuple[Query, ...]:
    for q in given:
        expect(q, Node, "the query", A_QUERY)
    return given


def rebuild(root: Query, leaf: Callable[[Query], Query | None]) -> Query:
    """The query with nodes replaced bottom-up: ``leaf`` gives the new node, or None to keep it."""
    done: dict[Query, Query] = {}
    for q in postorder(root):
        below = children(q)
        new = tuple(done[c] for c in below)
        kept = q if new == below else with_children(q, new)
        done[q] = leaf(kept) or kept
    return done[root]


def substitute(root: Query, by: Mapping[Query, Query]) -> Query:
    """The query with each occurrence of a key of ``by`` replaced by its value.

    >>> R, S = Table("R", ("a",)), Table("S", ("a",))
    >>> print(substitute(R + S, {R: R - S}))
    (R ∸ S) ⊎ S
    """
    done: dict[Query, Query] = {}
    for q in postorder(root):
        if q in by:
            done[q] = by[q]
            continue
        below = children(q)
        new = tuple(done[c] for c in below)
        done[q] = q if new == below else with_children(q, new)
    return done[root]
