"""Griffin & Libkin 1995, section 5, with GROUP BY, which the paper leaves open.

Windows and top-k are divided in the same way, and have the first form.
Two forms of the change of Q = Γ[A; f](S), with K = ε(ΠA(∇S ⊎ ΔS)), the touched groups:

* **recompute**: ∇Q = Γ(S ⋉ K) ∸ Γ(Sᵐ ⋉ K) and ΔQ = Γ(Sᵐ ⋉ K) ∸ Γ(S ⋉ K). Right for every
  aggregate; reads the touched groups only.
* **stored**: what the paper has. An aggregate is φ(Σf₁(S), …, Σfₖ(S)); the sums are kept in a
  hidden table ``state(q)`` and follow Σf(Sᵐ) = (Σf(S) − Σf(∇S)) + Σf(ΔS), without reading S.
  MIN (MAX likewise), with n = MIN(S), m = MIN(∇S), k = MIN(ΔS):
  k ≤ n gives k; else m > n gives n; else the group, and only it, is computed again from Sᵐ.
  The sums must be exact: integers and decimals, not floating point.
"""

from __future__ import annotations

from viewkeeper.algebra.changes.propagation import Changes
from viewkeeper.algebra.nodes import (
    Distinct,
    GroupBy,
    Project,
    Query,
    Select,
    Semi,
    Top,
    Window,
    with_children,
)
from viewkeeper.algebra.scalars import (
    NULL,
    TRUE,
    Agg,
    Call,
    Col,
    Const,
    Opaque,
    Scalar,
    call,
    conjunction,
    equal_columns,
)

_SUMS = ("count", "sum", "avg", "var_pop", "var_samp", "stddev_pop", "stddev_samp")
_EXTREMA = ("min", "max")


Keyed = GroupBy | Window | Top


def nabla(q: Keyed, c: Changes) -> Query:
    """∇Γ(S) = Γ(S ⋉ K) ∸ Γ(Sᵐ ⋉ K)."""
    k = touched(q, c)
    return _again(q, q.s, k) - _again(q, c.mod(q.s), k)


def delta(q: Keyed, c: Changes) -> Query:
    """ΔΓ(S) = Γ(Sᵐ ⋉ K) ∸ Γ(S ⋉ K)."""
    k = touched(q, c)
    return _again(q, c.mod(q.s), k) - _again(q, q.s, k)


def keys_of(q: Keyed) -> tuple[int, ...]:
    """The columns by which the operator divides its input; none for a top-k."""
    return () if isinstance(q, Top) else q.keys


def touched(q: Keyed, c: Changes) -> Query:
    """K = ε(ΠA(∇S ⊎ ΔS)): the keys of the groups that may change."""
    names = tuple(q.s.columns[k] for k in keys_of(q))
    keys = tuple(Col(k) for k in keys_of(q))
    return Distinct(Project(c.nabla(q.s) + c.delta(q.s), keys, names))


def _again(q: Keyed, s: Query, keys: Query) -> Query:
    """The operator on the touched groups of another bag."""
    return with_children(q, (restrict(q, s, keys),))


def restrict(q: Keyed, s: Query, keys: Query) -> Query:
    """S ⋉ K by the grouping columns, NULL being one key; all of S when there are no columns."""
    by = keys_of(q)
    if not by:
        return s
    return Semi(s, keys, equal_columns(by, tuple(range(len(by))), s.arity))


# ── The stored form ──────────────────────────────────────────────────────────────────────────────


def storable(q: GroupBy) -> bool:
    """Can the result be had from stored sums and extrema?"""
    return all(
        isinstance(a, Agg) and not a.distinct and a.function in _SUMS + _EXTREMA for a in q.aggs
    )


def stored_nabla(q: GroupBy, c: Changes) -> Query:
    """∇Γ(S) from the stored state."""
    return _finished(q, _stored_groups(q, c)) - _renewed(q, c)


def stored_delta(q: GroupBy, c: Changes) -> Query:
    """ΔΓ(S) from the stored state."""
    return _renewed(q, c) - _finished(q, _stored_groups(q, c))


def state(q: GroupBy) -> GroupBy:
    """The hidden table: per group its number of rows, and sums and extrema for the aggregates."""
    return _state_of(q, q.s)


def _state_of(q: GroupBy, s: Query) -> GroupBy:
    parts = _parts(q)
    names = tuple(f"_{i}" for i in range(len(parts)))
    made = GroupBy(s, q.keys, parts, names)
    assert isinstance(made, GroupBy)
    return made


def _parts(q: GroupBy) -> tuple[Agg, ...]:
    """count(*), then what each aggregate needs, each once."""
    parts = [Agg("count", ())]
    for a in q.aggs:
        parts += _needs(a)
    return tuple(dict.fromkeys(parts))


def _needs(a: Agg | Opaque) -> list[Agg]:
    assert isinstance(a, Agg)  # storable
    if not a.args:
        return []
    if a.function in _EXTREMA:
        return [a]
    (x,) = a.args
    needs = [Agg("count", (x,))]
    if a.function != "count":
        needs.append(Agg("sum", (x,)))
    if a.function not in ("count", "sum", "avg"):
        needs.append(Agg("sum", (call("*", x, x),)))
    return needs


def _place(q: GroupBy, part: Agg) -> Col:
    """The column of the state that holds a part."""
    return Col(len(q.keys) + _parts(q).index(part))


def _finish(q: GroupBy, a: Agg | Opaque) -> Scalar:
    """φ: the aggregate from its parts."""
    assert isinstance(a, Agg)  # storable
    if not a.args:
        return _place(q, Agg("count", ()))
    if a.function in _EXTREMA:
        return _place(q, a)
    n, *sums = (_place(q, p) for p in _needs(a))
    if a.function == "count":
        return n
    s = sums[0]
    none = call("=", n, Const(0))
    if a.function == "sum":
        return call("case", none, NULL, s)
    if a.function == "avg":  # TOTAL / COUNT
        return call("/", s, n)
    squares = call("-", call("*", n, sums[1]), call("*", s, s))  # n·Σx² − (Σx)²
    others = call("-", n, Const(1)) if a.function.endswith("_samp") else n
    variance = call("/", squares, call("*", n, others))
    return call("sqrt", variance) if a.function.startswith("stddev") else variance


def _finished(q: GroupBy, groups: Query) -> Query:
    """The user's columns from rows of the state."""
    keys: tuple[Scalar, ...] = tuple(Col(i) for i in range(len(q.keys)))
    return Project(groups, (*keys, *(_finish(q, a) for a in q.aggs)), q.columns)


def _stored_groups(q: GroupBy, c: Changes) -> Query:
    """The touched groups' rows of the state."""
    if not q.keys:
        return state(q)
    places = tuple(range(len(q.keys)))
    kept = state(q)
    return Semi(kept, touched(q, c), equal_columns(places, places, kept.arity))


def _renewed(q: GroupBy, c: Changes) -> Query:
    """The touched groups after the change."""
    width = len(q.keys)
    parts = _parts(q)
    extrema = [i for i, p in enumerate(parts) if p.function in _EXTREMA]
    merged = _merged(q, c, extrema)
    present = call(">", Col(width), Const(0)) if q.keys else TRUE
    # columns of ``merged``: keys, parts (n for an extremum), then m and k of each extremum
    value: list[Scalar] = [Col(width + i) for i in range(len(parts))]
    unsure: list[Scalar] = []
    for at, i in enumerate(extrema):
        n, m, k = Col(width + i), *(Col(width + len(parts) + 2 * at + j) for j in (0, 1))
        before, after = ("<=", ">") if parts[i].function == "min" else (">=", "<")
        beaten = call("or", call("is_null", n), call(before, k, n))
        value[i] = call("case", call("and", _known(k), beaten), k, n)
        # the extremum was deleted and not beaten: m = n, and not k ≤ n
        open_ = call("or", call("is_null", k), call(after, k, n))
        unsure.append(call("and", call(before, m, n), open_))
    keys: tuple[Scalar, ...] = tuple(Col(i) for i in range(width))
    names = state(q).columns
    if not unsure:
        return _finished(q, Project(Select(merged, present), (*keys, *value), names))
    doubt: Scalar = call("coalesce", _any(unsure), Const(False))
    sure = Select(merged, conjunction([present, call("not", doubt)]))
    known = _finished(q, Project(sure, (*keys, *value), names))
    in_doubt = Select(merged, conjunction([present, doubt]))
    if not q.keys:  # one group: all of Sᵐ, if in doubt
        again: Query = Semi(with_children(q, (c.mod(q.s),)), in_doubt, TRUE)
    else:
        lost = Project(in_doubt, keys, merged.columns[:width])
        again = _again(q, c.mod(q.s), lost)
    return known + again


def _merged(q: GroupBy, c: Changes, extrema: list[int]) -> Query:
    """Per touched group one row: Σ(S) − Σ(∇S) + Σ(ΔS), and n, m, k of each extremum."""
    width, parts = len(q.keys), _parts(q)
    old = _tagged(q, _stored_groups(q, c), 0, extrema)
    gone = _tagged(q, _state_of(q, c.nabla(q.s)), 1, extrema)
    come = _tagged(q, _state_of(q, c.delta(q.s)), 2, extrema)
    everything = (old + gone) + come
    aggs = [
        Agg(p.function if i in extrema else "sum", (Col(width + i),)) for i, p in enumerate(parts)
    ]
    for at, i in enumerate(extrema):
        place = width + len(parts) + 2 * at
        aggs += [Agg(parts[i].function, (Col(place + j),)) for j in (0, 1)]
    return GroupBy(everything, tuple(range(width)), tuple(aggs), everything.columns[width:])


def _tagged(q: GroupBy, groups: Query, source: int, extrema: list[int]) -> Query:
    """Rows of the old state (0), of ∇'s (1, negated) or of Δ's (2), in the shape of ``_merged``."""
    width, parts = len(q.keys), _parts(q)
    items: list[Scalar] = [Col(i) for i in range(width)]
    for i in range(len(parts)):
        column = Col(width + i)
        if i in extrema:
            items.append(column if source == 0 else NULL)
        else:
            number = call("coalesce", column, Const(0))
            items.append(call("neg", number) if source == 1 else number)
    for i in extrema:
        items += [Col(width + i) if source == j else NULL for j in (1, 2)]
    names = groups.columns + tuple(f"_{i}{tag}" for i in extrema for tag in "mk")
    return Project(groups, tuple(items), names)


def _known(e: Scalar) -> Scalar:
    return call("not", call("is_null", e))


def _any(parts: list[Scalar]) -> Scalar:
    return parts[0] if len(parts) == 1 else Call("or", tuple(parts))
