"""Laws that need no proof: constants folded, equal neighbours merged, what cancels by its form."""

from __future__ import annotations

from viewkeeper.algebra.nodes import (
    Distinct,
    Empty,
    GroupBy,
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
    Semi,
)
from viewkeeper.algebra.scalar_meaning import MEANING
from viewkeeper.algebra.scalars import (
    FALSE,
    NULL,
    TRUE,
    Call,
    Col,
    Const,
    Opaque,
    Scalar,
    conjunction,
    conjuncts,
    parts_of,
    replace_columns,
)
from viewkeeper.algebra.simplify.knowledge import Knowledge

_MOST_PARTS = 40  # of an expression that a law puts together: each is walked again and again


def select_constant(q: Query, k: Knowledge) -> Query | None:
    """σ[TRUE](S) = S, σ[FALSE](S) = σ[NULL](S) = ∅, and constants inside p are computed."""
    assert isinstance(q, Select)
    p = fold(q.predicate)
    if p is TRUE:
        return q.s
    if p is FALSE or p is NULL:
        return Empty(q.scope)
    return None if p is q.predicate else Select(q.s, p)


def select_select(q: Query, k: Knowledge) -> Query | None:
    """σp(σq(S)) = σ[q and p](S)."""
    assert isinstance(q, Select)
    if not isinstance(q.s, Select):
        return None
    parts = (*conjuncts(q.s.predicate), *conjuncts(q.predicate))
    return Select(q.s.s, conjunction(parts)) if len(parts) <= _MOST_PARTS else None


def select_product(q: Query, k: Knowledge) -> Query | None:
    """σp(S × T) = S ⋈p T and σp(S ⋈q T) = S ⋈[q and p] T."""
    assert isinstance(q, Select)
    match q.s:
        case Product(s, t):
            return Join(s, t, q.predicate)
        case Join(s, t, on):
            return Join(s, t, conjunction([on, q.predicate]))
        case _:
            return None


def join_true(q: Query, k: Knowledge) -> Query | None:
    """S ⋈[TRUE] T = S × T, and S ⋈[FALSE] T = ∅."""
    assert isinstance(q, Join)
    on = fold(q.on)
    if on is TRUE:
        return Product(q.s, q.t)
    if on is FALSE or on is NULL:
        return Empty(q.scope)
    return None if on is q.on else Join(q.s, q.t, on)


def project_identity(q: Query, k: Knowledge) -> Query | None:
    """Π[all columns, in order, under their names](S) = S."""
    assert isinstance(q, Project)
    if len(q.items) != q.s.arity or q.scope != q.s.scope:
        return None
    same = all(isinstance(e, Col) and e.index == i for i, e in enumerate(q.items))
    return q.s if same else None


def project_project(q: Query, k: Knowledge) -> Query | None:
    """Πe(Πf(S)) = Π[e ∘ f](S), unless an expression of the engine would be computed twice."""
    assert isinstance(q, Project)
    if not isinstance(q.s, Project):
        return None
    inner = q.s.items
    if any(isinstance(p, Opaque) for e in inner for p in parts_of(e)):
        return None
    sizes = [sum(1 for _ in parts_of(e)) for e in inner]
    for e in q.items:  # Π[a + a](Π[a + a](…)) would double with each step
        within = (sizes[p.index] if isinstance(p, Col) else 1 for p in parts_of(e))
        if not isinstance(e, Col) and sum(within) > _MOST_PARTS:
            return None
    items = tuple(replace_columns(e, lambda i: inner[i]) for e in q.items)
    return Project(q.s.s, items, q.names)


def distinct_distinct(q: Query, k: Knowledge) -> Query | None:
    """ε(ε(S)) = ε(S)."""
    assert isinstance(q, Distinct)
    return q.s if isinstance(q.s, Distinct) else None


def distinct_below(q: Query, k: Knowledge) -> Query | None:
    """ε(Π(ε(S))) = ε(Π(S)), ε(ε(S) ⊎ T) = ε(ε(S) max T) = ε(S ⊎ T)."""
    assert isinstance(q, Distinct)
    match q.s:
        case Project(Distinct(s), items, names):
            return Distinct(Project(s, items, names))
        case Plus(Distinct(s), t) | Max(Distinct(s), t):
            return Distinct(Plus(s, t))
        case Plus(s, Distinct(t)) | Max(s, Distinct(t)):
            return Distinct(Plus(s, t))
        case _:
            return None


def same_sides(q: Query, k: Knowledge) -> Query | None:
    """S ∸ S = ∅, S min S = S, S max S = S."""
    assert isinstance(q, (Monus, Min, Max))
    if q.s is not q.t:
        return None
    return Empty(q.scope) if isinstance(q, Monus) else q.s


def monus_plus(q: Query, k: Knowledge) -> Query | None:
    """(S ⊎ T) ∸ T = S, (S ⊎ T) ∸ S = T, (S ⊎ T) ∸ (S ⊎ U) = T ∸ U."""
    assert isinstance(q, Monus)
    if not isinstance(q.s, Plus):
        return None
    s, t = q.s.s, q.s.t
    if q.t is t:
        return s
    if q.t is s and t.scope == q.scope:
        return t
    if isinstance(q.t, Plus) and q.t.s is s and t.scope == q.scope:
        return t - q.t.t
    return None


def monus_monus(q: Query, k: Knowledge) -> Query | None:
    """S ∸ (S ∸ T) = S min T, and (S ∸ T) ∸ S = ∅."""
    assert isinstance(q, Monus)
    if isinstance(q.t, Monus) and q.t.s is q.s:
        return q.s & q.t.t
    return None


def min_absorbed(q: Query, k: Knowledge) -> Query | None:
    """S min (S ⊎ T) = S min (S max T) = S."""
    assert isinstance(q, Min)
    match q:
        case Min(s, Plus(a, b)) | Min(s, Max(a, b)) if s is a or s is b:
            return s
        case Min(Plus(a, b), t) | Min(Max(a, b), t) if (t is a or t is b) and t.scope == q.scope:
            return t
        case _:
            return None


def semi_true(q: Query, k: Knowledge) -> Query | None:
    """S ⋉[FALSE] T = ∅, and constants inside the condition are computed."""
    assert isinstance(q, Semi)
    on = fold(q.on)
    if on is FALSE or on is NULL:
        return Empty(q.scope)
    return None if on is q.on else Semi(q.s, q.t, on)


def semi_distinct(q: Query, k: Knowledge) -> Query | None:
    """S ⋉ ε(T) = S ⋉ T: duplicates on the right never matter."""
    assert isinstance(q, Semi)
    return Semi(q.s, q.t.s, q.on) if isinstance(q.t, Distinct) else None


def group_distinct(q: Query, k: Knowledge) -> Query | None:
    """Γ[A;](S) without aggregates = ε(Π[A](S))."""
    assert isinstance(q, GroupBy)
    if q.aggs or not q.keys:
        return None
    names = tuple(q.s.columns[i] for i in q.keys)
    return Distinct(Project(q.s, tuple(Col(i) for i in q.keys), names))


def literal_project(q: Query, k: Knowledge) -> Query | None:
    """Π and σ of given rows are given rows, where the expressions are the algebra's own."""
    assert isinstance(q, Project)
    if not isinstance(q.s, Literal) or not all(isinstance(e, (Col, Const)) for e in q.items):
        return None

    def value(e: Scalar, row: tuple[object, ...]) -> object:
        return row[e.index] if isinstance(e, Col) else e.value if isinstance(e, Const) else None

    rows = tuple(tuple(value(e, row) for e in q.items) for row in q.s.rows)
    return Literal(q.names, rows)


# ── constants inside expressions ─────────────────────────────────────────────────────────────────

_FOLDED = ("=", "<>", "<", "<=", ">", ">=", "<=>", "is_null", "in")


def fold(e: Scalar) -> Scalar:
    """The expression with its constant predicates computed, as Python and SQL agree on them."""
    if not isinstance(e, Call):
        return e
    args = tuple(fold(a) for a in e.args)
    e = e if args == e.args else Call(e.op, args)
    assert isinstance(e, Call)
    if e.op == "and":
        parts = [p for p in conjuncts(e) if p is not TRUE]
        return FALSE if FALSE in parts else conjunction(parts)
    if e.op == "or":
        parts = list(dict.fromkeys(p for p in args if p is not FALSE))
        if TRUE in parts:
            return TRUE
        if len(parts) == len(args):
            return e
        return Call("or", tuple(parts)) if len(parts) > 1 else parts[0] if parts else FALSE
    if e.op == "not" and args[0] in (TRUE, FALSE, NULL):
        return NULL if args[0] is NULL else FALSE if args[0] is TRUE else TRUE
    if e.op in _FOLDED and all(isinstance(a, Const) for a in args):
        values = [a.value for a in args if isinstance(a, Const)]
        kinds = {_kind(v) for v in values if v is not None}
        if len(kinds) <= 1 and "other" not in kinds:
            return Const(MEANING[e.op](*values))
    return e


def _kind(v: object) -> str:
    if isinstance(v, bool):
        return "boolean"
    if isinstance(v, int):
        return "number"
    return "text" if isinstance(v, str) else "other"
