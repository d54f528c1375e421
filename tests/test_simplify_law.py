"""Laws of the optimizer: both sides mean the same and the law did fire; facts are never wrong."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest

from law_cases import FIRES, HOLDS, TABLES
from random_facts import (
    FactGenerator,
    admits,
    check_facts,
    check_simplify_facts,
    moments,
    spoken_of,
)
from random_queries import Generator
from viewkeeper import algebra as al
from viewkeeper.algebra.nodes import ENGINE, Query
from viewkeeper.algebra.scalar_meaning import compile_scalar
from viewkeeper.algebra.scalars import TRUE, Call, Col, Const, Scalar
from viewkeeper.algebra.simplify.domains import of_predicate
from viewkeeper.algebra.simplify.knowledge import Knowledge
from viewkeeper.algebra.simplify.laws_structure import fold
from viewkeeper.algebra.simplify.rewrite import LAWS, Law
from viewkeeper.algebra.walk import postorder, tables

STATES = 30
SEEDS = 350


def test_every_law_has_its_equation() -> None:
    assert len(LAWS) == len({law.__name__ for law in LAWS})
    for law in LAWS:
        first = (law.__doc__ or "").split("\n")[0]
        assert "=" in first or "are given rows" in first, law.__name__


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
def test_law_fires_and_holds(law: Law) -> None:
    assert law.__name__ in FIRES, "write an instance of the new law in law_cases.FIRES"
    shown = 0
    for q, facts in FIRES[law.__name__]:
        after = law(q, Knowledge(facts))
        assert after is not None and after is not q, f"{law.__name__} does not fire on {q}"
        assert after.columns == q.columns
        g = Generator(7)
        if any(isinstance(n, ENGINE) for n in postorder(q)):
            continue
        for old, changes in moments(g, facts, spoken_of(facts, TABLES, q), STATES):
            left, right = (al.evaluate(x, old, changes) for x in (q, after))
            assert left == right, f"{q} = {after}, {facts}, {old}, {changes}"
            shown += 1
    assert shown >= STATES / 2


@pytest.mark.parametrize("name", FIRES)
def test_simplify_uses_the_law(name: str) -> None:
    """Each instance gets smaller, or is at least rewritten, by the optimizer as a whole."""
    assert name in {law.__name__ for law in LAWS}, "a case of a law that is gone"
    for q, facts in FIRES[name]:
        steps: list[al.Step] = []
        small = al.simplify(q, facts, trace=steps)
        assert steps and al.size(small) <= al.size(q) + 1, str(q)
        assert all(s.law in FIRES and s.equation for s in steps)


@pytest.mark.parametrize(("q", "facts"), HOLDS, ids=[str(q) for q, _ in HOLDS])
def test_law_does_not_overreach(q: Query, facts: al.Facts) -> None:
    """The optimizer keeps the meaning where a bolder law would lose it."""
    small = al.simplify(q, facts)
    rows, here = 0, spoken_of(facts, TABLES, q)
    for seed in range(4):
        for old, changes in moments(FactGenerator(seed), facts, here, STATES):
            left, right = (al.evaluate(x, old, changes) for x in (q, small))
            assert left == right, f"{q} = {small}, {facts}, {old}, {changes}"
            rows += len(left)
    assert rows, "no state shows that the query may have rows"


# ── random queries under random facts ──


def test_facts_are_never_wrong() -> None:
    proofs = sum(check_facts(seed) > 0 for seed in range(SEEDS))
    assert proofs > SEEDS / 4, "too few proofs to show anything"


def test_simplified_under_facts_agrees() -> None:
    fired: Counter[str] = Counter()
    for seed in range(SEEDS):
        fired.update({step.law for step in check_simplify_facts(seed)})
    assert len(fired) > len(LAWS) / 2, sorted({law.__name__ for law in LAWS} - fired.keys())


# ── predicates: domains and folding ──

VALUES: tuple[Any, ...] = (None, 0, 1, 2, 3, True, False, 1.0, 2.5, "x", "1")


def predicate(r: random.Random, values: tuple[Any, ...], depth: int = 3) -> Scalar:
    """Any predicate over three columns, with constants of mixed types."""
    if depth and r.random() < 0.5:
        op = r.choice(("and", "and", "or", "not"))
        count = 1 if op == "not" else r.randint(2, 3)
        return Call(op, tuple(predicate(r, values, depth - 1) for _ in range(count)))

    def operand() -> Scalar:
        return Col(r.randrange(3)) if r.random() < 0.6 else Const(r.choice(values))

    op = r.choice(("=", "<>", "<", "<=", ">", ">=", "<=>", "=", "is_null", "in", "constant"))
    if op == "is_null":
        return Call(op, (operand(),))
    if op == "in":
        return Call(op, (operand(), *(operand() for _ in range(r.randint(1, 3)))))
    if op == "constant":
        return Const(r.choice((True, False, None)))
    return Call(op, (operand(), operand()))


@pytest.mark.parametrize("values", [VALUES, VALUES[:5]], ids=["mixed types", "numbers"])
def test_domains_and_folding_hold_of_every_row(values: tuple[Any, ...]) -> None:
    r = random.Random(1)
    known = impossible = folded = 0
    for _ in range(1500):
        p = predicate(r, values)
        holds, domains, small = compile_scalar(p), of_predicate(p), fold(p)
        smaller = compile_scalar(small)
        known += bool(domains)
        impossible += domains is None
        folded += small is not p
        for _ in range(25):
            row = tuple(r.choice(values) for _ in range(3))
            try:
                value = holds(row)
            except TypeError:  # 'x' < 1
                continue
            assert smaller(row) is value, f"{p} {small} {row}"
            if value is not True:
                continue
            assert domains is not None, f"{p} {row}"
            for column, domain in domains.items():
                try:
                    assert admits(domain, row[column]), f"{p} {row} {domain}"
                except TypeError:
                    continue
    assert min(known, impossible, folded) > 100


def test_nan_is_in_no_domain() -> None:
    """Engines say that NaN = NaN, Python does not: nothing is concluded from it."""
    nan = float("nan")
    for p in (Call("=", (Col(0), Const(nan))), Call(">", (Const(nan), Col(0)))):
        assert of_predicate(p) == {}
    both = [Call("in", (Col(0), Const(nan), Const(n))) for n in (1, 2)]
    assert of_predicate(Call("and", tuple(both))) is not None
    assert fold(Call("=", (Const(nan), Const(nan)))) is not TRUE
    twice = al.literal(["a"], [(nan,), (float("nan"),)])
    assert not Knowledge(al.Facts()).duplicate_free(twice)


# ── size ──


def test_merged_expressions_stay_small() -> None:
    """Π[a + b, a](Π[a + b, a](…)) merged without limit would have as many parts as Fibonacci."""
    q: Query = al.table("R", ["a", "b"])
    for i in range(300):
        q = q.project({"a": "a + b", "b": "a"}).select(f"a <> {i}")
    small = al.simplify(q)
    assert al.size(small) <= al.size(q)
    assert len(str(al.simplify(q))) < 100_000
    chain: Query = al.table("R", ["a", "b"])
    for i in range(1000):
        chain = chain.project({"a": "a + 1", "b": "b"}) if i % 2 else chain.select(f"b <> {i + 5}")
    rows = {"R": [(1, 1), (1, None)]}
    assert al.evaluate(al.simplify(chain), rows) == al.evaluate(chain, rows)


def test_names_stay() -> None:
    r, s = al.table("R", ["a", "b"]), al.table("S", ["x", "y"])
    none = al.empty(["a", "b"])
    for q in (none + s, none | s, (r + s) - r, (s & r) | r, r.left(al.empty(["x"]), "TRUE")):
        assert al.simplify(q).columns == q.columns
    assert {t.name for t in tables(al.simplify((r + s) - r))} == {"R", "S"}
