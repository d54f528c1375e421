"""What kills mutants: each operator alone, over inputs that both change, in small hard states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

from checks import check_pair, check_signed, check_simplified
from law_cases import FIRES, HOLDS
from law_cases import TABLES as LAW_TABLES
from mutate_1991 import Rules1991
from random_facts import check_simplify_facts, moments, spoken_of
from random_queries import Generator, plain_tables
from viewkeeper import algebra as al
from viewkeeper.algebra.changes import aggregates, gk98, gl95, glt97
from viewkeeper.algebra.changes.propagation import Changes, Pair, table_change
from viewkeeper.algebra.changes.signed import minus, plus, rows
from viewkeeper.algebra.meaning import Bag, Evaluation
from viewkeeper.algebra.nodes import (
    ENGINE,
    JOINED,
    Distinct,
    Empty,
    Full,
    GroupBy,
    Join,
    Literal,
    Project,
    Query,
    Semi,
    Table,
    Top,
    Unnest,
    Window,
)
from viewkeeper.algebra.scalars import Agg, Call, Col, Const, Opaque, equal_columns
from viewkeeper.algebra.simplify.knowledge import Knowledge
from viewkeeper.algebra.simplify.rewrite import LAWS
from viewkeeper.algebra.walk import postorder, rebuild
from viewkeeper.errors import ViewKeeperError

R, S, T = (al.table(n, ["a", "b"]) for n in "RST")
EQUAL = ("left.a = right.a", "left.a = right.b AND left.b = right.b", "right.b = left.a")
OTHER = ("left.a = right.a AND left.b > 1", "left.a <=> right.a", "TRUE", "left.a <= right.b")
ENGINES = Opaque(("f(", ")"), (Col(0),))
State = dict[str, Bag]
Check = Iterator[bool]  # one answer for each case: is it right?

# ── queries ──

AGGS = ({"n": "count(*)", "s": "sum(b)"}, {"m": "min(b)", "x": "max(b)", "c": "count(b)"})
AGGS += ({"v": "avg(b)", "w": "var_pop(b)"}, {"d": "stddev_samp(b)", "e": "count(DISTINCT b)"})
AGGS += ({"t": "var_samp(a + b)", "p": "stddev_pop(b)"}, {"m": "min(b)"}, {"x": "max(a)"}, {})


def groups(s: Query) -> list[Query]:
    return [s.group_by(k, a) for a in AGGS for k in (["a"], [], ["b", "a"]) if k or a]


def engine(s: Query) -> list[Query]:
    return [
        Unnest(s, ENGINES, ("c",), False),
        Window(s, (0,), (ENGINES,), ("c",)),
        Top(s, (ENGINES,), 1, 0),
    ]


def joins(s: Query, t: Query, conditions: tuple[str, ...]) -> list[Query]:
    return [node(s, t, s.join(t, on).on) for on in conditions for node in JOINED]


def basic(s: Query, t: Query) -> list[Query]:
    unary = [s.select("a > 1"), s.project(["b"]), s.project({"a": "b", "b": "a"}), s.distinct()]
    return [*unary, s + t, s - t, s & t, s | t, s.product(t), s.join(t, EQUAL[0])]


def outer_of_other_widths() -> list[Query]:
    return joins(R.project({"c": "a"}), S, ("c = a", "c = b AND a > 1"))


def lowered(q: Query) -> Query:
    """Operators of the engine replaced by some that the reference knows and that behave alike."""

    def lower(n: Query) -> Query | None:
        own = tuple(Col(i) for i in range(n.s.arity)) if isinstance(n, ENGINE) else ()
        match n:
            case Unnest(s, _, names, _):
                return Project(s, (*own, Col(0)), (*s.columns, *names)) + Project(
                    s, (*own, Const(1)), (*s.columns, *names)
                )
            case Window(s, keys, _, names):
                counted = GroupBy(s, keys, (Agg("count", ()),), names)
                both = Join(s, counted, equal_columns(keys, tuple(range(len(keys))), s.arity))
                return Project(both, (*own, Col(both.arity - 1)), (*s.columns, *names))
            case Top(s, _, _, _):
                least = GroupBy(s, (), (Agg("min", (Col(0),)),), ("m",))
                return Semi(s, least, Call("=", (Col(0), Col(s.arity))))
            case _:
                return None

    return rebuild(q, lower)


# ── states ──


def states(count: int, start: int = 0) -> Iterator[tuple[State, dict[str, tuple[Bag, Bag]], State]]:
    """Few values, many duplicates and NULLs; all three tables change."""
    for seed in range(start, start + count):
        g = Generator(seed)
        pool = [g.row(2) for _ in range(4)] + [(None, None)] * (seed % 2)
        old = {n: bag_of(g, pool) for n in "RST"}
        changes = {}
        for n in "RST":
            target = bag_of(g, pool) if seed % 3 else g.bag(2, 3)
            changes[n] = (old[n] - target, target - old[n])
        new = {n: (old[n] - changes[n][0]) + changes[n][1] for n in "RST"}
        yield old, changes, new


def bag_of(g: Generator, pool: list[Any]) -> Bag:
    return +Counter({row: g.random.choice((0, 0, 1, 1, 2, 3)) for row in pool})


def sets(count: int) -> Iterator[tuple[State, dict[str, tuple[Bag, Bag]], State]]:
    for old, _, new in states(count):
        one, two = ({n: Counter(set(rows)) for n, rows in at.items()} for at in (old, new))
        yield one, {n: (one[n] - two[n], two[n] - one[n]) for n in one}, two


# ── checks of changes ──

Make = Callable[[Query, list[str]], Pair]
FORMS: dict[str, Make] = {
    "bag": lambda q, n: Pair(*al.change(q, n)),
    "stored": lambda q, n: Pair(*al.change(q, n, aggregates="stored")),
    "log": lambda q, n: Pair(*al.change(q, n, state="after")),
    "signed": lambda q, n: al.net(al.signed(q, n)),
    "set": lambda q, n: Pair(*al.change(q, n, semantics="set")),
}
CHANGED = (["R", "S", "T"], ["R"], ["S"])


def changes_of(queries: list[Query], form: str, count: int, changed: Any = CHANGED) -> Check:
    made = []
    for q in queries:
        own = {t.name for t in al.tables(q)}
        for names in {tuple(n for n in some if n in own): None for some in changed}:
            if not names:
                continue
            pair = FORMS[form](q, list(names))
            yield all(part.columns == q.columns for part in pair)
            meant = al.as_set(q) if form == "set" else q
            made.append((lowered(meant), [lowered(part) for part in pair], names))
    for old, changes, new in sets(count) if form == "set" else states(count):
        values: dict[tuple[str, ...], tuple[Evaluation, Evaluation, Evaluation]] = {}
        for q, pair, names in made:
            if names not in values:
                after = {n: new[n] if n in names else rows for n, rows in old.items()}
                these = {n: changes[n] for n in names}
                at, state = (after, "after") if form == "log" else (old, "before")
                change = Evaluation(at, these, state=state)
                values[names] = Evaluation(old), Evaluation(after), change
            was, now, change = values[names]
            got = tuple(change(part) for part in pair)
            yield got == (was(q) - now(q), now(q) - was(q))


def bags() -> Check:
    yield from changes_of(basic(R, S), "bag", 30)
    yield from changes_of(joins(R, S, EQUAL[:1] + OTHER), "bag", 30)
    yield from changes_of([*outer_of_other_widths(), *engine(R)], "bag", 12)
    yield from changes_of([*basic(R, R.select("b = 1")), R.join(R, EQUAL[0])], "bag", 10)
    yield from changes_of([R.full(S, EQUAL[0]), *groups(R)], "log", 8)


def figure_4() -> Check:
    yield from changes_of(joins(R, S, EQUAL), "set", 40)
    c = Changes({})
    narrow = al.as_set(R.project({"c": "a"}))
    c[narrow] = Pair(*al.change(narrow, ["R"], semantics="set"))
    for t in (R, S):
        c[t] = table_change(t)
    made = []
    for s, t, conditions in ((R, S, EQUAL), (narrow, S, ("c = b",)), (S, narrow, ("a = c",))):
        for q in joins(s, t, conditions):
            if not isinstance(q, Join):
                made.append((q, s, t, (gk98.nabla(q, c), gk98.delta(q, c))))  # type: ignore[arg-type]
    for old, changes, new in sets(80):
        was, now, value = Evaluation(old), Evaluation(new), Evaluation(old, changes)
        for q, s, t, pair in made:
            rows_of_nulls = [(None,) * x.arity in at(x) for at in (was, now) for x in (s, t)]
            if isinstance(q, Full) and any(rows_of_nulls):
                continue  # two of them may be padded to one
            yield tuple(value(part) for part in pair) == (was(q) - now(q), now(q) - was(q))


def definitions() -> Check:
    for node in JOINED[1:]:
        for on in (*EQUAL, *OTHER):
            for left, right in ((R, S), (R.product(T), S)):
                if left is not R:
                    on = "#0 = #4"
                q = node(left, right, left.join(right, on).on)
                for old, _, _ in states(6):
                    yield al.evaluate(q, old) == al.evaluate(gk98.definition(q), old)
                if isinstance(q, Semi):
                    for old, _, _ in sets(6):
                        yield al.evaluate(q, old) == al.evaluate(gk98.set_definition(q), old)
    on = R.product(T).join(S, "#0 = #4 AND #3 < #5").on
    other = S.join(R.product(T), "#2 = #0 AND #5 < #1").on
    yield gk98.flip(on, 4, 2) is other and gk98.flip(gk98.flip(on, 4, 2), 2, 4) is on
    answers = [gk98.covered(R.join(S, on)) for on in (*EQUAL, *OTHER)]  # type: ignore[arg-type]
    yield answers == [True] * len(EQUAL) + [False] * len(OTHER)


def set_rules() -> Check:
    yield from changes_of(basic(R, S), "set", 40)
    yield from changes_of([*joins(R, S, OTHER), *engine(R), *groups(R)], "set", 12)
    yield from changes_of([*basic(R + S, R - T), (R + S).project(["a"])], "set", 12)
    rows = Literal(("a", "b"), ((1, 2), (1, 2)))
    forms: list[tuple[Query, Query]] = [
        ((R + S).project(["a"]), Distinct(Project(R | S, (Col(0),), ("a",)))),
        (rows, Literal(("a", "b"), ((1, 2),))),
        (R.distinct() - S, R - S),
        (R.full(S, EQUAL[0]), Distinct(R.full(S, EQUAL[0]))),
        (Unnest(R, ENGINES, ("c",), True), Distinct(Unnest(R, ENGINES, ("c",), True))),
    ]
    yield from (al.as_set(q) is want for q, want in forms)


def minimal() -> Check:
    loose = Pair(S, T)
    for made, join, at in ((gl95.strongly_minimal, "+", states), (glt97.minimal, "|", sets)):
        tight = made(R, loose)
        for old, _, _ in at(20):
            q = {"+": lambda p: (R - p.removed) + p.added, "|": lambda p: (R - p.removed) | p.added}
            new = al.evaluate(q[join](loose), old)
            got = tuple(al.evaluate(part, old) for part in tight)
            yield got == (old["R"] - new, new - old["R"])


def aggregated() -> Check:
    for form in ("stored", "bag", "set"):
        yield from changes_of(groups(R), form, 25, (["R"],))
    yield from changes_of(engine(R), "bag", 8, (["R"],))
    q = R.group_by(["a"], {"m": "min(b)", "v": "var_pop(b)"})
    assert isinstance(q, GroupBy)
    want = ["a", "count(*)", "min(b)", "count(b)", "sum(b)", "sum(b * b)"]
    kept = [aggregates.storable(q) for q in groups(R) if isinstance(q, GroupBy)]
    yield kept == ["DISTINCT" not in str(q) for q in groups(R)]
    yield str(aggregates.state(q)) == str(
        R.group_by(["a"], {f"_{i}": text for i, text in enumerate(want[1:])})
    )
    yield from (check_pair(seed) in (True, False) for seed in range(60))


def signed_form() -> Check:
    yield from changes_of(basic(R, S), "signed", 15)
    yield from changes_of(joins(R, S, EQUAL[:1] + OTHER), "signed", 15)
    yield from changes_of([*outer_of_other_widths(), *engine(R), *groups(R)], "signed", 8)
    yield from changes_of([*joins(R + T, S - T, EQUAL[:1]), R, R + R], "signed", 8)
    other = S.rename({"a": "x", "b": "y"})
    yield from changes_of(
        [R + other, other + R, (R + other).join(T, "left.a = right.b")], "signed", 8
    )
    yield al.evaluate(rows(minus(R)), {"R": [(1, 2), (1, 2)]}) == Counter({(1, 2): 2})
    yield al.signed(R, ["S"]) == Empty(plus(R).scope)
    yield al.evaluate(minus(R), {"R": [(1, 2)]}) == Counter({(1, 2, -1): 1})
    both = al.signed(R.join(S, EQUAL[0]), ["R", "S"])
    yield sum(isinstance(n, Join) for n in postorder(both)) == 2  # a term for each input


# ── the rules of 1991 ──


def rules_1991() -> Check:
    queries = [R + Literal(("a", "b"), ((1, 2),)), R - al.empty(["a", "b"]), *basic(R, S)]
    turned = {2: T, 1: T.project(["a"]), 4: T.product(T)}  # right of −, the other form is used
    for s, t in ((R, S), (R | S, T & R), (R - S, S - T), (T & S, R)):
        queries += [turned[q.arity] - q for q in basic(s, t)]
    queries += [q for s, t in ((R | S, S & T), (R - T, T - S)) for q in basic(s, t)]
    queries += [T - (T - (S - R)), R.project(["a"]) - S.project(["a"])]
    queries = [al.as_set(q) for q in queries]
    made = [(q, Pair(*al.change(q, plain_tables(q), semantics="set-1991"))) for q in queries]
    for at, (old, proper, new) in enumerate(sets(80)):
        changes = proper
        if at % 2:  # any sets: the rules say exactly what comes out, minimal or not
            g = Generator(at)
            pool = [g.row(2) for _ in range(3)] + [row for rows in old.values() for row in rows]
            if at % 4 == 3:  # few rows, so that changes and tables meet
                pool = [g.row(2), *list(old["T"])[:2]]
            some = iter(Counter(set(bag_of(g, pool))) for _ in range(6))
            changes = {n: (next(some), next(some)) for n in old}
        rules = Rules1991(old, changes)
        now = Evaluation(new)
        for q, pair in made:
            got = tuple(frozenset(rules.value(part)) for part in pair)
            yield got == rules.solve(q, True)
            if not at % 2:
                before, after = frozenset(rules.value(q)), frozenset(now(q))
                yield (before - got[0]) | got[1] == after


# ── transactions ──


FEW: list[Any] = [(1, 1), (1, 2), (2, 2), (None, 1)]


def said(table: Table, some: Bag, now: State) -> list[tuple[al.Statement, Bag]]:
    """Statements on a table, and what each makes of its rows."""
    here = now[table.name]
    given = al.literal(["a", "b"], list(some.elements()))
    larger = Counter({(a, b): n for (a, b), n in now["R"].items() if a is not None and a > 1})
    grown: Bag = Counter()
    turned: Bag = Counter()
    for (a, b), n in here.items():
        grown[(a, b + 1 if a is not None and a > 1 else b)] += n
        turned[(b, a)] += n
    return [
        (al.insert(table, given), here + some),
        (al.insert(table, R.select("a > 1")), here + larger),
        (al.delete(table, "a = 1"), Counter({r: n for r, n in here.items() if r[0] != 1})),
        (al.delete(table, given), here - some),
        (al.delete(table, given + S), here - (some + now["S"])),
        (al.update(table, {"b": "b + 1"}, where="a > 1"), grown),
        (al.update(table, {"a": "b", "b": "a"}), turned),
    ]


def refused(call: Callable[[], object], words: str) -> bool:
    """Is the call refused, with these words?"""
    try:
        call()
    except ViewKeeperError as e:
        return words in e.what
    return False


def transactions() -> Check:
    one, three = R.project(["a"]), R.product(R).project({"x": "#0", "y": "#1", "z": "#2"})
    for gone, come in ((one, R), (R, one), (one, three)):
        yield refused(lambda g=gone, c=come: al.Statement(R, g, c), "rows have 1")  # type: ignore[misc]
    for seed in range(120):
        g = Generator(seed)
        old = {n: bag_of(g, FEW) for n in "RST"}
        now = dict(old)
        statements = []
        for _ in range(g.random.randint(1, 4)):
            table = g.random.choice((R, S))
            statement, after = g.random.choice(said(table, bag_of(g, FEW), now))
            statements.append(statement)
            now[table.name] = after
        t = al.transaction(statements)
        for n in t:
            yield tuple(al.evaluate(p, old) for p in t[n]) == (old[n] - now[n], now[n] - old[n])
        for q in (R, R - S, R.join(S, EQUAL[0])):
            yield al.evaluate(t.pre(q), old) == al.evaluate(q, now)
        yield all(al.evaluate(t.after(x), old) == now[x.name] for x in (R, S) if x.name in t)
        yield len(t) == len({s.table.name for s in statements}) == len(list(t))
        bad = R.select("a = 3")
        if not al.evaluate(bad, old):
            yield al.evaluate(al.violations(bad, t), old) == al.evaluate(bad, now)
    up = al.update(R, {"b": "b + 1"}, where="a = 1")
    state = {"R": [(1, 1), (2, 2), (None, 3)]}
    yield al.evaluate(up.removed, state) == Counter([(1, 1)])
    yield al.evaluate(up.added, state) == Counter([(1, 2)])


# ── laws ──


def laws() -> Check:
    by_name = {law.__name__: law for law in LAWS}
    for name, cases in FIRES.items():
        for q, facts in cases:
            after = by_name[name](q, Knowledge(facts))
            yield after is not None and after is not q and after.columns == q.columns
            if any(isinstance(n, ENGINE) for n in postorder(q)):
                continue
            for old, changes in moments(Generator(7), facts, spoken_of(facts, LAW_TABLES, q), 12):
                value = Evaluation(old, changes)
                yield value(q) == value(after)
    for q, facts in HOLDS:
        small = al.simplify(q, facts)
        for old, changes in moments(Generator(8), facts, spoken_of(facts, LAW_TABLES, q), 25):
            value = Evaluation(old, changes)
            yield value(q) == value(small)
    yield from (check_simplify_facts(seed) is not None for seed in range(150))


def random_queries() -> Check:
    for seed in range(100):
        check_pair(seed)
        check_signed(seed)
        check_simplified(seed)
        yield True


CHECKS: dict[str, tuple[Callable[[], Check], ...]] = {
    "changes/gl95": (bags, minimal, random_queries),
    "changes/gk98": (definitions, figure_4, bags, signed_form),
    "changes/glt97": (set_rules, figure_4, minimal),
    "changes/qw91": (rules_1991,),
    "changes/aggregates": (aggregated,),
    "changes/signed": (signed_form, random_queries),
    "changes/transactions": (transactions,),
    "simplify/laws_empty": (laws,),
    "simplify/laws_structure": (laws,),
    "simplify/laws_proof": (laws,),
}


FOR_BAGS = ("deserted", "engaged", "bag_nabla", "bag_delta", "bag_outer")  # of gk98


def killer(module: str, function: str) -> str | None:
    """The first check that a broken module fails; None where all pass."""
    checks = CHECKS[module]
    if function in FOR_BAGS:
        checks = (bags, *(c for c in checks if c is not bags))
    for check in checks:
        try:
            for i, right in enumerate(check()):
                if not right:
                    return f"{check.__name__}, case {i}"
        except Exception as e:
            return f"{check.__name__}: {type(e).__name__}"
    return None
