"""Queries as text, in the papers' notation; ``reading.parse`` reads it back.

A query whose tree is deep, or would repeat much, is written with names for its shared parts:
``let v1 := R ∸ ∇R; v2 := … in …``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from viewkeeper.algebra.nodes import (
    ADDED,
    REMOVED,
    SIGNED,
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
    children,
)
from viewkeeper.algebra.pool import assert_never
from viewkeeper.algebra.scalars import Agg, Col, Opaque, show, show_agg, show_constant
from viewkeeper.algebra.scope import Columns, Scope, quote
from viewkeeper.algebra.walk import postorder

GLYPH = {Plus: "⊎", Monus: "∸", Min: "min", Max: "max", Product: "×", Join: "⋈", Semi: "⋉"}
GLYPH |= {Anti: "▷", Left: "⟕", Right: "⟖", Full: "⟗"}
_MOST_NODES, _MOST_DEPTH = 60, 40


def write(q: Query) -> str:
    """The text of a query.

    >>> R = Table("R", ("a", "b"))
    >>> write((R.select("a > 1") - R).project(["a"]).distinct())
    'ε(Π[a](σ[a > 1](R) ∸ R))'
    """
    order = postorder(q)
    named = _named(q, order)
    text: dict[Query, str] = {}
    lets: list[str] = []
    for node in order:
        text[node] = _write(node, text)
        if node in named:
            name = f"v{len(lets) + 1}"
            lets.append(f"{name} := {text[node]}")
            text[node] = name
    return f"let {'; '.join(lets)} in {text[q]}" if lets else text[q]


def _named(root: Query, order: list[Query]) -> set[Query]:
    """The nodes to be named: none, unless the tree is large or deep."""
    tree: dict[Query, int] = {}
    depth: dict[Query, int] = {}
    uses: Counter[Query] = Counter()
    for q in order:
        below = children(q)
        uses.update(below)
        tree[q] = 1 + sum(tree[c] for c in below)
        depth[q] = 1 + max((depth[c] for c in below), default=0)
    if tree[root] <= _MOST_NODES and depth[root] <= _MOST_DEPTH:
        return set()
    chosen = {q for q in order if uses[q] > 1 and children(q)}
    since: dict[Query, int] = {}  # depth since the last name
    for q in order:
        since[q] = 1 + max((since[c] for c in children(q)), default=0)
        if since[q] >= _MOST_DEPTH and q is not root:
            chosen.add(q)
        if q in chosen:
            since[q] = 0
    return chosen


def _write(q: Query, text: dict[Query, str]) -> str:
    match q:
        case Table(name, _, state):
            if state in (REMOVED, ADDED, SIGNED):
                return state + quote(name)
            return quote(name) + state
        case Empty(header):
            return f"∅[{', '.join(quote(c.name) for c in header)}]"
        case Literal(names, rows):
            inside = ", ".join(f"({', '.join(show_constant(v) for v in row)})" for row in rows)
            return f"{{{inside}}}[{', '.join(quote(n) for n in names)}]"
        case Select(s, p):
            return f"σ[{show(p, Scope(s.scope).describe)}]({text[s]})"
        case Project(s, items, names):
            describe = Scope(s.scope).describe
            shown = []
            for item, name in zip(items, names, strict=True):
                kept = isinstance(item, Col) and s.scope[item.index].name == name
                column = show(item, describe)
                shown.append(column if kept else f"{column} AS {quote(name)}")
            return f"Π[{', '.join(shown)}]({text[s]})"
        case GroupBy(s, keys, aggs, names):
            describe = Scope(s.scope).describe
            head = ", ".join(describe(k) for k in keys)
            tail = ", ".join(
                f"{_aggregate(a, describe)} AS {quote(n)}" for a, n in zip(aggs, names, strict=True)
            )
            return f"Γ[{head}; {tail}]({text[s]})"
        case Unnest(s, generator, names, outer):
            shown_names = ", ".join(quote(n) for n in names)
            word = "λ⟕" if outer else "λ"
            return f"{word}[{show(generator, Scope(s.scope).describe)} AS {shown_names}]({text[s]})"
        case Window(s, keys, functions, names):
            describe = Scope(s.scope).describe
            head = ", ".join(describe(k) for k in keys)
            tail = ", ".join(
                f"{show(f, describe)} AS {quote(n)}" for f, n in zip(functions, names, strict=True)
            )
            return f"ω[{head}; {tail}]({text[s]})"
        case Top(s, order, limit, offset):
            head = ", ".join(show(o, Scope(s.scope).describe) for o in order)
            most = "ALL" if limit is None else limit
            return f"τ[{head}; {most}, {offset}]({text[s]})"
        case Distinct(s):
            return f"ε({text[s]})"
        case Net(s):
            return f"net({text[s]})"
        case Plus(s, t) | Monus(s, t) | Min(s, t) | Max(s, t) | Product(s, t):
            return f"{_operand(s, text)} {GLYPH[type(q)]} {_operand(t, text)}"
        case Join() | Semi() | Anti() | Left() | Right() | Full():
            return f"{_operand(q.s, text)} {GLYPH[type(q)]}[{_condition(q)}] {_operand(q.t, text)}"
        case _:
            assert_never(q)


def _operand(q: Query, text: dict[Query, str]) -> str:
    """An input of a binary operator, in parentheses if it is one itself and has no name."""
    written = text[q]
    binary = isinstance(q, tuple(GLYPH)) and not written.isidentifier()
    return f"({written})" if binary else written


def _aggregate(a: Agg | Opaque, name: Callable[[int], str]) -> str:
    return show_agg(a, name) if isinstance(a, Agg) else show(a, name)


def _condition(q: Join | Semi | Anti | Left | Right | Full) -> str:
    both: Columns = q.s.scope + q.t.scope
    return show(q.on, Scope(both, split=q.s.arity).describe)
