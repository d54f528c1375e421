"""Walks over shared trees: each node once, inputs before their operator, without recursion."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from viewkeeper.algebra.nodes import Query, Table, children, with_children


def postorder(*roots: Query) -> list[Query]:
    """All nodes below the roots, each once, inputs first.

    >>> R = Table("R", ("a",))
    >>> [str(q) for q in postorder((R + R) - R)]
    ['R', 'R ⊎ R', '(R ⊎ R) ∸ R']
    """
    order: list[Query] = []
    seen: set[Query] = set()
    stack: list[tuple[Query, bool]] = [(r, False) for r in reversed(roots)]
    while stack:
        q, ready = stack.pop()
        if ready:
            order.append(q)
        elif q not in seen:
            seen.add(q)
            stack.append((q, True))
            stack.extend((c, False) for c in reversed(children(q)) if c not in seen)
    return order


def size(*roots: Query) -> int:
    """The number of distinct nodes: the size of the shared graph, not of the tree."""
    return len(postorder(*roots))


def tables(*roots: Query) -> list[Table]:
    """The tables a query reads, each once, in the order of first use."""
    return [q for q in postorder(*roots) if isinstance(q, Table)]


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
