"""Laws: each single-update equation of the papers, both sides on hundreds of random states; and the
paper's derivation by these equations agrees with figure 3."""

from __future__ import annotations

from collections import Counter

import pytest

from random_queries import TABLES, Generator, plain_tables
from viewkeeper import algebra as al
from viewkeeper.algebra.changes import equations, equations_sets, gk98, gl95, glt97
from viewkeeper.algebra.changes.equations import GL95_FIGURE_2, GL95_LAWS, GL95_MORE, Equation
from viewkeeper.algebra.changes.equations_sets import (
    GK98_FIGURE_3,
    GLT97_FIGURE_1,
    NO_NULL_ROWS,
    r1,
)
from viewkeeper.algebra.changes.gk98 import flip
from viewkeeper.algebra.changes.propagation import (
    Changes,
    Figure,
    Pair,
    Rule,
    propagate,
    table_change,
)
from viewkeeper.algebra.meaning import Bag
from viewkeeper.algebra.nodes import (
    JOINED,
    Distinct,
    Full,
    Join,
    Max,
    Min,
    Monus,
    Plus,
    Product,
    Project,
    Query,
    Select,
    Semi,
    Table,
)
from viewkeeper.algebra.scope import Scope
from viewkeeper.errors import ChangeError

S, T, D, W = (al.table(n, ["a", "b"]) for n in ("S", "T", "d", "W"))
STATES = 200
FEWER = 80
CONDITIONS = ("left.a = right.a", "left.a = right.b", "right.b = left.b AND left.a = right.a")


def operator(g: Generator, e: Equation) -> Query:
    """The equation's operator over S and T."""
    if e.node is Select:
        return S.select(g.predicate(Scope(S.scope)))
    if e.node is Project:
        return S.project({n: g.scalar(Scope(S.scope)) for n in "ab"[: g.random.randint(1, 2)]})
    if e.node is Distinct:
        return S.distinct()
    if e.node is Join and not e.sets:
        return S.join(T, g.condition(S, T))
    if e.node in JOINED:
        return e.node(S, T, S.join(T, g.random.choice(CONDITIONS)).on)
    return e.node(S, T)


def change_of(g: Generator, old: Bag, by: type) -> Bag:
    """Any bag: some rows of the input, and some others, so that ∇S need not be contained in S."""
    bag = g.bag(2, 3)
    for row in old:
        if g.random.random() < 0.5:
            bag[row] += g.random.randint(1, 2)
    return bag


def state(g: Generator, e: Equation) -> dict[str, Bag]:
    found = {n: g.bag(2) for n in "ST"}
    found["d"] = change_of(g, found[e.changes], e.by)
    if e.given == NO_NULL_ROWS:
        for bag in found.values():
            del bag[None, None]
    if e.sets:
        found = {n: Counter(dict.fromkeys(bag, 1)) for n, bag in found.items()}
    return found


def value(e: Equation, q: Query, at: dict[str, Bag]) -> Bag | set[tuple[object, ...]]:
    """The bag that a query gives; for an equation on sets, the set."""
    return set(al.evaluate(al.as_set(q), at)) if e.sets else al.evaluate(q, at)


def name(e: Equation) -> str:
    return f"{e.paper} {e.number}"


ALL = GL95_FIGURE_2 + GL95_MORE + GLT97_FIGURE_1 + GK98_FIGURE_3


@pytest.mark.parametrize("e", ALL, ids=name)
def test_equation_holds(e: Equation) -> None:
    fired = 0
    for seed in range(STATES):
        g = Generator(seed)
        q = operator(g, e)
        at = state(g, e)
        for place in (0, 1) if e.commutes else (None,):
            left = value(e, e.left(q, D, place), at)
            right = value(e, e.right(q, D, place), at)
            assert left == right, f"{e.text}, seed {seed}, {q}, {at}"
            fired += left != value(e, q, at)
    assert fired > STATES / 20, "the change had an effect too rarely to show anything"


@pytest.mark.parametrize("e", ALL, ids=name)
def test_equation_needs_each_step(e: Equation) -> None:
    """Without its first step, the right side is another query."""
    for seed in range(STATES):
        g = Generator(seed)
        q = operator(g, e)
        at = state(g, e)
        broken = q
        for step in e.steps(e.terms(q, D))[1:]:
            broken = step.of(broken)
        if value(e, e.left(q, D), at) != value(e, broken, at):
            return
    pytest.fail("no state tells the right side from a shorter one")


def test_numbers_are_the_papers() -> None:
    assert [e.number for e in GL95_FIGURE_2] == [f"P{i}" for i in range(1, 19)]
    assert [e.number for e in GLT97_FIGURE_1] == [str(i) for i in range(1, 17)]
    numbers = [e.number for e in GK98_FIGURE_3]
    assert numbers == ["P3′", "P4", *(f"P{i}" for i in range(17, 37))]


def test_text_is_what_is_built() -> None:
    """The texts of the equations without subscripts are read back as the queries that are built."""
    schemas = {"S": ["a", "b"], "T": ["a", "b"]}
    read = 0
    for e in GL95_FIGURE_2 + GL95_MORE + GLT97_FIGURE_1:
        if e.node not in (Plus, Monus, Min, Max, Product, Distinct):
            continue
        q = S.distinct() if e.node is Distinct else e.node(S, T)
        pair = table_change(S if e.changes == "S" else T)
        d = pair.removed if e.by is Monus else pair.added
        text = e.text.replace("∪", "max").replace("∩", "min").replace("−", "∸")
        sides = [al.parse(side, schemas) for side in text.split("=")]
        assert sides == [e.left(q, d), e.right(q, d)], name(e)
        read += 1
    assert read == 25


@pytest.mark.parametrize("law", GL95_LAWS, ids=lambda law: law.number)
def test_collecting_law_holds(law: equations.Law) -> None:
    for seed in range(STATES):
        g = Generator(seed)
        at = {n: g.bag(2) for n in "STW"}
        at["W"] += change_of(g, at["S"] + at["T"], Monus)
        left, right = (al.evaluate(side(S, T, W), at) for side in (law.left, law.right))
        assert left == right, f"{law.text}, seed {seed}"


@pytest.mark.parametrize("on", CONDITIONS)
def test_r1_holds_on_sets_and_bags(on: str) -> None:
    law = r1(S.join(T, on).on)
    fired = 0
    for seed in range(STATES):
        g = Generator(seed)
        at = {n: g.bag(2) for n in "STW"}
        left, right = (al.evaluate(side(S, T, W), at) for side in (law.left, law.right))
        assert left == right, f"{law.text}, seed {seed}"
        fired += bool(left)
    assert fired > STATES / 20


# ── where the papers' equations end ──


def test_p3_prime_needs_no_containment() -> None:
    """P3′ is printed for ∇S ⊂ S; the states above have ∇S outside S, and it holds there too."""
    outside = 0
    e = GK98_FIGURE_3[0]
    for seed in range(STATES):
        at = state(Generator(seed), e)
        outside += bool(at["d"] - at["S"])
    assert e.number == "P3′" and not e.given and outside > STATES / 2


@pytest.mark.parametrize("number", ["P33", "P35"])
def test_full_join_needs_rows_that_are_not_all_null(number: str) -> None:
    """Rows of NULLs on both sides are padded to the same row: deleting one must leave the other."""
    (e,) = (e for e in GK98_FIGURE_3 if e.number == number)
    assert e.given == NO_NULL_ROWS
    q = Full(S, T, S.join(T, "left.a = right.a").on)
    nulls = (None, None)
    at = {"S": [nulls], "T": [nulls], "d": [nulls]}
    printed: Query = Distinct(q)  # a set
    for step in e.steps(e.terms(q, D)):
        printed = step.of(printed)
    assert al.evaluate(e.left(q, D), at) == Counter({nulls + nulls: 1})
    assert al.evaluate(printed, at) == Counter()


def test_semijoin_on_other_conditions_needs_the_view_from_s() -> None:
    """P19 with s.a < t.a: loyal rows say nothing, as unequal rows may serve the same row of S."""
    (e,) = (e for e in GK98_FIGURE_3 if e.number == "P19")
    q = Semi(S, T, S.join(T, "left.a < right.a").on)
    at = {"S": [(1, 1)], "T": [(2, 2), (3, 3)], "d": [(2, 2)]}
    on = q.on
    loyal = (D & T).anti(T - D, "left.a = right.a")
    printed = q - Semi(S, loyal, on)
    ours = q - Semi(S, D & T, on).anti(T - D, "left.a < right.a")
    assert al.evaluate(e.left(q, D), at) == al.evaluate(ours, at) == Counter({(1, 1): 1})
    assert al.evaluate(printed, at) == Counter()


# ── figures as laws: each operator alone, over changed inputs ──

BINARY = {"plus": S + T, "monus": S - T, "min": S & T, "max": S | T, "times": S.product(T)}
UNARY = {"select": S.select("a > 1"), "project": S.project(["b"]), "distinct": S.distinct()}


def as_sets(found: dict[str, Bag]) -> dict[str, Bag]:
    return {n: Counter(dict.fromkeys(bag, 1)) for n, bag in found.items()}


def set_change(g: Generator, old: Bag) -> tuple[Bag, Bag]:
    gone = Counter({r: 1 for r in old if g.random.random() < 0.4})
    return gone, Counter({r: 1 for r in g.bag(2) if r not in old})


def check_figure(figure: Figure, q: Query, *, sets: bool, nulls: bool = True) -> None:
    """∇ = old ∸ new and Δ = new ∸ old, on random states and changes of S and T."""
    pairs = {S: table_change(S), T: table_change(T)}
    pair = propagate(q, pairs, figure)
    fired = [0, 0]
    for seed in range(FEWER):
        g = Generator(seed)
        old = {n: g.bag(2) for n in "ST"}
        old = as_sets(old) if sets else old
        changes = {n: set_change(g, old[n]) if sets else g.change(old[n]) for n in "ST"}
        if not nulls:
            for bag in (*old.values(), *(b for pair in changes.values() for b in pair)):
                del bag[None, None]
        new = {n: (old[n] - changes[n][0]) + changes[n][1] for n in "ST"}
        before, after = al.evaluate(q, old), al.evaluate(q, new)
        found = tuple(al.evaluate(part, old, changes) for part in pair)
        assert found == (before - after, after - before), f"seed {seed}, {q}"
        fired = [n + bool(part) for n, part in zip(fired, found, strict=True)]
    assert min(fired) > 0


@pytest.mark.parametrize("q", [S, *UNARY.values(), *BINARY.values()], ids=str)
def test_gl95_figure_3_holds(q: Query) -> None:
    check_figure(gl95.FIGURE_3, q, sets=False)


@pytest.mark.parametrize("on", [*CONDITIONS, "left.a <= right.a", "left.a <=> right.b"])
@pytest.mark.parametrize("node", JOINED)
def test_gl95_figure_3_extends_to_joins(node: type, on: str) -> None:
    check_figure(gl95.FIGURE_3, node(S, T, S.join(T, on).on), sets=False)


@pytest.mark.parametrize("q", [S, S.select("a > 1"), S.project(["b"]), *BINARY.values()], ids=str)
def test_glt97_figure_2_holds(q: Query) -> None:
    check_figure(glt97.FIGURE_2, al.as_set(q), sets=True)


@pytest.mark.parametrize("on", CONDITIONS)
@pytest.mark.parametrize("node", JOINED)
def test_gk98_figure_4_holds(node: type, on: str) -> None:
    """Figure 4 on sets; its full outer join where not both sides have a row of NULLs."""
    figure = glt97.FIGURE_2 if node is Join else Figure(*map(_figure_4, ("nabla", "delta")))
    check_figure(figure, node(S, T, S.join(T, on).on), sets=True, nulls=node is not Full)


def _figure_4(half: str) -> Rule:
    def rule(q: Query, c: Changes) -> Query:
        is_table = isinstance(q, Table)
        return getattr(glt97 if is_table else gk98, half)(q, c)  # type: ignore[no-any-return]

    return rule


def test_gk98_figure_4_semijoin_last_term() -> None:
    """∇(S ⋉ T) ends in ∇S ⋉ (ΔT ⋉ T). With ▷ for the inner ⋉ a row that was never there goes."""
    old, changes = {"S": [(1, 1)], "T": []}, {"S": ([(1, 1)], []), "T": ([], [(1, 2)])}
    gone, come = table_change(S).removed, table_change(T).added
    friends = come.semi(T, "left.a = right.a")
    strangers = come.anti(T, "left.a = right.a")
    assert al.evaluate(gone.semi(friends, "left.a = right.a"), old, changes) == Counter()
    assert al.evaluate(gone.semi(strangers, "left.a = right.a"), old, changes)  # not in S ⋉ T
    # and without the term, a row whose old partner left while a friend of it came stays behind
    old, changes = {"S": [(1, 1)], "T": [(1, 1)]}, {"S": ([(1, 1)], []), "T": ([(1, 1)], [(1, 2)])}
    assert al.evaluate(gone.semi(friends, "left.a = right.a"), old, changes) == Counter({(1, 1): 1})
    found = al.change(S.semi(T, "left.a = right.a"), ["S", "T"], semantics="set")
    assert al.evaluate(found.removed, old, changes) == Counter({(1, 1): 1})


@pytest.mark.parametrize("node", JOINED[1:])
def test_gk98_definition_is_the_operator(node: type) -> None:
    """D1–D5: each derived operator means its definition, on bags; D1 as printed, on sets."""
    for on in CONDITIONS:
        q = node(S, T, S.join(T, on).on)
        for seed in range(FEWER):
            g = Generator(seed)
            at = {n: g.bag(2) for n in "ST"}
            assert al.evaluate(q, at) == al.evaluate(gk98.definition(q), at), f"seed {seed}"
            if isinstance(q, Semi):
                at = as_sets(at)
                assert al.evaluate(q, at) == al.evaluate(gk98.set_definition(q), at)


@pytest.mark.parametrize("sets", [False, True])
def test_any_solution_becomes_minimal(sets: bool) -> None:
    """Theorem 2 of 1995 (bags) and Proposition 2 of 1997 (sets), on arbitrary pairs."""
    for seed in range(FEWER):
        g = Generator(seed)
        at = {n: g.bag(2) for n in ("S", "d", "W")}
        at["d"] = change_of(g, at["S"], Monus)
        at = as_sets(at) if sets else at
        loose = Pair(D, W)
        tight = glt97.minimal(S, loose) if sets else gl95.strongly_minimal(S, loose)
        union = Max if sets else Plus
        old = at["S"]
        removed, added = (al.evaluate(part, at) for part in tight)
        whole = [al.evaluate(union(S - gone, come), at) for gone, come in (loose, tight)]
        assert whole[0] == whole[1], f"seed {seed}"
        assert not removed - old and not removed & added, f"seed {seed}"
        assert not (sets and added & old), f"seed {seed}"


def test_flip_is_its_own_inverse() -> None:
    on = S.join(T, "left.a = right.b AND left.b < right.a").on
    assert flip(flip(on, 2, 2), 2, 2) is on


# ── the derivation ──


class Basic(Generator):
    """Random queries over φ σ Π ⊎ ∸ min max ε × ⋈, the operators of figure 2."""

    def unary(self, s: Query) -> Query:
        roll = self.random.random()
        if roll < 0.35:
            return s.select(self.predicate(Scope(s.scope)))
        if roll < 0.7:
            scope = Scope(s.scope)
            return s.project({n: self.scalar(scope) for n in "ab"[: self.random.randint(1, 2)]})
        return s.distinct()

    def binary(self, s: Query, t: Query) -> Query:
        roll = self.random.random()
        if roll < 0.7:
            s, t = self.aligned(s), self.aligned(t)
            return self.random.choice((s + t, s - t, s & t, s | t))
        if roll < 0.8:
            return s.product(t)
        return s.join(t, self.condition(s, t))


def test_derivation_agrees_with_figure_3() -> None:
    changed = 0
    for seed in range(400):
        g = Basic(seed)
        q = g.query(g.random.randint(2, 5))
        names = plain_tables(q)
        before = g.state()
        changes = g.changes(before, names)
        pair = equations.by_equations(q, {t: table_change(t) for t in TABLES if t.name in names})
        figure = al.change(q, names)
        for derived, printed in zip(pair, (figure.removed, figure.added), strict=True):
            left = al.evaluate(derived, before, changes)
            right = al.evaluate(printed, before, changes)
            assert left == right, f"seed {seed}, {q}"
            changed += bool(left)
    assert changed > 100


def test_derivation_refuses_what_figure_2_does_not_have() -> None:
    with pytest.raises(ChangeError):
        equations.by_equations(S.semi(T, ["a"]), {S: table_change(S)})


def test_set_equations_are_the_rules_of_1991() -> None:
    """P1–P16 of the 1998 paper are rules 1–16, but for P4, which adds what may be there already."""
    four, p4 = GLT97_FIGURE_1[3], equations_sets.GK98_FIGURE_3[1]
    q = S.project(["a"])
    at = {"S": [(1, 1)], "d": [(1, 2)]}
    assert al.evaluate(four.right(q, D), at) == al.evaluate(p4.right(q, D), at)
    exact, more = (e.steps(e.terms(q, D))[0].bag for e in (four, p4))
    assert al.evaluate(al.as_set(exact), at) == Counter()
    assert al.evaluate(al.as_set(more), at) == Counter({(1,): 1})
