"""Griffin & Libkin 1995, section 6: is the change cheaper than the view computed again?

t_view estimates recomputing, optimistically; t_Δ estimates a change expression evaluated by
iterating over the changes and fetching what they ask for. ``fetch`` is the cost of finding one row
in a table: 1 with an index, more without. The paper defines these for σ Π ⊎ ∸ min max ε ×; the
joins follow by their definitions (⋈ fetches partners instead of pairing with all of them).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.algebra.changes.change import Change
from viewkeeper.algebra.nodes import (
    ADDED,
    REMOVED,
    Anti,
    Distinct,
    Empty,
    Full,
    GroupBy,
    Join,
    Left,
    Literal,
    Max,
    Min,
    Monus,
    Net,
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
)
from viewkeeper.algebra.pool import assert_never
from viewkeeper.algebra.scope import expect
from viewkeeper.algebra.walk import postorder


@dataclass(frozen=True)
class Cost:
    """Estimates in rows touched."""

    t_view: float
    t_change: float
    controlled: bool
    share: float

    @property
    def cheaper(self) -> str:
        """ "change" or "view": what to compute."""
        return "change" if self.t_change < self.t_view else "view"

    def __str__(self) -> str:
        bound = "bounded by the change (Prop. 2)" if self.controlled else "not Δ-controlled"
        return (
            f"recompute {self.t_view:,.0f} rows, change {self.t_change:,.0f} rows: {self.cheaper}"
            f" is cheaper; changed share {self.share:.4%}; {bound}"
        )


def cost(
    change: Change,
    sizes: Mapping[str, float],
    changes: Mapping[str, tuple[float, float]],
    fetch: float | Mapping[str, float] = 1.0,
) -> Cost:
    """What it costs to recompute a view, and to compute its change.

    Parameters
    ----------
    change : Change
        From ``change(query, …)``, simplified or not.
    sizes : mapping of str to number
        Rows of each table.
    changes : mapping of str to (removed, added)
        Rows removed from and added to each changed table.
    fetch : number or mapping of str to number
        The cost of finding one row in a table, the paper's F.

    Examples
    --------
    >>> from viewkeeper import algebra as al
    >>> R, S = al.table("R", ["a"]), al.table("S", ["a"])
    >>> c = al.cost(al.change(R - S, ["S"]), {"R": 1e6, "S": 1e6}, {"S": (10, 20)})
    >>> c.t_view, c.t_change, c.cheaper, c.controlled
    (2000010.0, 60.0, 'change', True)
    """
    expect(change, Change, "the change", "Make it with al.change(…).")
    estimate = _Estimate(sizes, changes, fetch)
    # c(D): the largest relative change of a table
    share = max(
        (sum(changes[r]) / max(sizes.get(r, 1), 1) for r in changes),
        default=0.0,
    )
    t_change = estimate.t_delta(change.removed) + estimate.t_delta(change.added)
    controlled = is_controlled(change.removed) and is_controlled(change.added)
    return Cost(estimate.t_view(change.query), t_change, controlled, share)


class _Estimate:
    def __init__(
        self,
        sizes: Mapping[str, float],
        changes: Mapping[str, tuple[float, float]],
        fetch: float | Mapping[str, float],
    ) -> None:
        self.sizes = sizes
        self.changes = changes
        self.by_row = fetch
        self._fetch: dict[Query, float] = {}
        self._delta: dict[Query, float] = {}
        self._view: dict[Query, float] = {}

    def size(self, table: Table) -> float:
        """The number of rows of R, ∇R, ΔR; after the change for the rest, as t_view asks."""
        removed, added = self.changes.get(table.name, (0, 0))
        if table.state == REMOVED:
            return removed
        if table.state == ADDED:
            return added
        return max(self.sizes.get(table.name, 0) - removed + added, 0)

    def t_view(self, q: Query) -> float:
        """t_view(pre(Q)): an optimistic estimate of computing the view from scratch."""
        done = self._view
        for node in postorder(q):
            if node not in done:
                done[node] = self._t_view(node, done)
        return done[q]

    def _t_view(self, q: Query, t: Mapping[Query, float]) -> float:
        match q:
            case Table():
                return self.size(q)
            case Empty():
                return 0
            case Literal(_, rows):
                return len(rows)
            case Select(s) | Project(s) | Distinct(s) | GroupBy(s) | Unnest(s) | Net(s):
                return t[s]
            case Window(s) | Top(s):
                return t[s]
            case Plus(a, b) | Monus(a, b) | Min(a, b) | Max(a, b):
                return t[a] + t[b]
            case Product(a, b):
                return t[a] * t[b]
            case Join(a, b) | Semi(a, b) | Anti(a, b) | Left(a, b) | Right(a, b) | Full(a, b):
                return t[a] + t[b]  # optimistic: a hash join reads each input once
            case _:
                assert_never(q)

    def fetch(self, q: Query) -> float:
        """fetch(Q): the cost of retrieving one row of Q."""
        done = self._fetch
        for node in postorder(q):
            if node not in done:
                done[node] = self._fetch_node(node, done)
        return done[q]

    def _fetch_node(self, q: Query, f: Mapping[Query, float]) -> float:
        match q:
            case Table():
                if isinstance(self.by_row, Mapping):
                    return self.by_row.get(q.name, 1.0)
                return float(self.by_row)
            case Empty() | Literal():
                return 1
            case Select(s) | Project(s) | Distinct(s) | GroupBy(s) | Unnest(s) | Net(s):
                return f[s]
            case Window(s) | Top(s):
                return f[s]
            case Plus() | Monus() | Min() | Max() | Product() | Join() | Semi() | Anti():
                return f[q.s] + f[q.t]
            case Left() | Right() | Full():
                return f[q.s] + f[q.t]
            case _:
                assert_never(q)

    def t_delta(self, q: Query) -> float:
        """t_Δ(Q): evaluating a change by iterating over ∇R and ΔR."""
        done = self._delta
        for node in postorder(q):
            if node not in done:
                done[node] = self._t_delta(node, done)
        return done[q]

    def _t_delta(self, q: Query, t: Mapping[Query, float]) -> float:
        match q:
            case Table() | Empty() | Literal():
                return self._t_view(q, t)
            case Select(s) | Project(s) | Distinct(s) | GroupBy(s) | Unnest(s) | Net(s):
                return t[s]
            case Window(s) | Top(s):
                return t[s]
            case Monus(a, b) | Anti(a, b):
                return t[a] * self.fetch(b)
            case Min(a, b) | Semi(a, b):
                return min(t[a] * self.fetch(b), t[b] * self.fetch(a))
            case Plus(a, b) | Max(a, b):
                return t[a] + t[b]
            case Product(a, b):
                return t[a] * t[b]
            case Join(a, b) | Left(a, b) | Right(a, b) | Full(a, b):
                return min(t[a] * self.fetch(b), t[b] * self.fetch(a), t[a] + t[b])
            case _:
                assert_never(q)


def is_controlled(q: Query) -> bool:
    """Is the expression Δ-controlled? Then it takes time linear in the change (Proposition 2).

        S_Δ := ∇R | ΔR | S_Δ min T | S_Δ ∸ T | S_Δ ⊎ S_Δ | S_Δ max S_Δ | ε(S_Δ) | σp(S_Δ)

    with T free of projections and products. The paper's max is garbled; both sides must be S_Δ.
    """
    controlled: dict[Query, bool] = {}
    free: dict[Query, bool] = {}
    for node in postorder(q):
        match node:
            case Table(_, _, state):
                controlled[node], free[node] = state in (REMOVED, ADDED), True
            case Empty() | Literal():
                controlled[node] = free[node] = True
            case Select(s) | Distinct(s):
                controlled[node], free[node] = controlled[s], free[s]
            case Min(a, b):
                either = (controlled[a] and free[b]) or (controlled[b] and free[a])
                controlled[node], free[node] = either, free[a] and free[b]
            case Monus(a, b):
                controlled[node] = controlled[a] and free[b]
                free[node] = free[a] and free[b]
            case Plus(a, b) | Max(a, b):
                controlled[node] = controlled[a] and controlled[b]
                free[node] = free[a] and free[b]
            case Project() | Product() | Join() | Semi() | Anti() | Left() | Right() | Full():
                controlled[node] = free[node] = False
            case GroupBy() | Unnest() | Window() | Top() | Net():
                controlled[node] = free[node] = False
            case _:
                assert_never(node)
    return controlled[q]
