"""A short cycle among given edges."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any


def find_cycle(edges: Iterable[tuple[Any, Any]]) -> list[Any]:
    """The nodes of a short cycle, in order; an empty list if there is none.

    It is a shortest one among those through the first hundred nodes that are on one.

    Examples
    --------
    >>> find_cycle([(1, 2), (2, 3), (3, 1), (3, 4), (4, 3)])
    [3, 4]
    >>> find_cycle([(1, 2)])
    []
    """
    after: dict[Any, list[Any]] = {}
    for start, end in edges:
        after.setdefault(start, []).append(end)
    best: list[Any] = []
    found = 0
    for root in after:
        came: dict[Any, Any] = {}
        queue = deque([root])
        while queue and root not in came:
            node = queue.popleft()
            for end in after.get(node, ()):
                if end not in came:
                    came[end] = node
                    queue.append(end)
        if root not in came:
            continue
        cycle = [root]
        while came[cycle[-1]] != root:
            cycle.append(came[cycle[-1]])
        cycle = [root, *reversed(cycle[1:])]
        if not best or len(cycle) < len(best):
            best = cycle
        found += 1
        if len(best) <= 2 or found == 100:
            break
    return best
