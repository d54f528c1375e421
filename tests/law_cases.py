"""Hand-written instances of every law: where it fires, and where it must not."""

from __future__ import annotations

from typing import Any

from viewkeeper import algebra as al
from viewkeeper.algebra.nodes import (
    ADDED,
    NEW,
    OLD,
    REMOVED,
    SIGNED,
    Anti,
    GroupBy,
    Net,
    Project,
    Query,
    Select,
    Semi,
    Table,
    Top,
    Unnest,
    Window,
)
from viewkeeper.algebra.scalars import Call, Col, Const, Opaque, Scalar

TABLES = {n: al.table(n, ["a", "b"]) for n in ("R", "S", "T", "U")}
TABLES |= {n: al.table(n, ["x"]) for n in ("X", "Y")}
R, S, T, U, X, Y = TABLES.values()
NONE = al.empty(["a", "b"])
NO_ROWS = al.literal(["a", "b"], [])
ROWS = al.literal(["a", "b"], [(1, 2), (1, 2), (None, 3)])
A, B = "left.a = right.a", "left.b = right.b"
SAME = "left.a <=> right.a AND left.b <=> right.b"
FACTS = al.Facts()


def at(table: Query, state: str) -> Query:
    assert isinstance(table, Table)
    return Table(table.name, table.names, state)


def xy(q: Query) -> Query:
    """Under other names."""
    return q.rename({q.columns[0]: "x", q.columns[1]: "y"})


def where(q: Query, p: Scalar) -> Query:
    return Select(q, p)


def signed(q: Query) -> Query:
    return Project(q, (Col(0), Col(1), Const(1)), ("a", "b", "weight"))


def references(child: str = "a", parent: str = "a", **more: Any) -> al.Facts:
    """S's columns reference R's key, and R only grows."""
    more.setdefault("append_only", ["R"])
    return al.Facts(foreign_keys=[("S", list(child), "R", list(parent))], **more)


GENERATOR = Opaque(("explode(", ")"), (Col(0),))
dR, dS, nR, nS = at(R, ADDED), at(S, ADDED), at(R, REMOVED), at(S, REMOVED)
SPLIT = al.Facts(checks={"R": "a < 2", "S": "a > 2"})
SELF = al.Facts(foreign_keys=[("R", "b", "R", "a")], append_only=["R"])
KEY = al.Facts(keys={"R": ["a"], "S": [["a"], ["b"]]})
INSIDE = al.Facts(contained=[(R, S)])
APART = al.Facts(disjoint=[(R, S)])

# A law fires on each of these, under the facts.
FIRES: dict[str, list[tuple[Query, al.Facts]]] = {
    "table_append_only": [
        (nR, al.Facts(append_only=["R"])),
        (dR, al.Facts(insert_free=["R"])),
    ],
    "literal_empty": [(NO_ROWS, FACTS)],
    "unary_empty": [
        (NONE.select("a > 1"), FACTS),
        (NONE.project(["b"]), FACTS),
        (NONE.distinct(), FACTS),
        (Net(NONE), FACTS),
        (Unnest(NONE, GENERATOR, ("c",), False), FACTS),
        (Window(NONE, (0,), (GENERATOR,), ("c",)), FACTS),
        (Top(NONE, (GENERATOR,), 3, 0), FACTS),
    ],
    "group_empty": [(NONE.group_by(["a"], {"n": "count(*)"}), FACTS)],
    "plus_empty": [
        (R + NONE, FACTS),
        (NONE + R, FACTS),
        (R | NONE, FACTS),
        (NONE | R, FACTS),
        (NONE + xy(R), FACTS),
    ],
    "monus_empty": [(R - NONE, FACTS), (NONE - R, FACTS)],
    "min_empty": [(R & NONE, FACTS), (NONE & R, FACTS)],
    "join_empty": [
        (R.product(NONE), FACTS),
        (NONE.product(R), FACTS),
        (R.join(NONE, A), FACTS),
        (NONE.join(R, A), FACTS),
        (R.semi(NONE, A), FACTS),
        (NONE.semi(R, A), FACTS),
    ],
    "anti_empty": [(R.anti(NONE, A), FACTS), (NONE.anti(R, A), FACTS)],
    "left_empty": [(R.left(NONE, A), FACTS), (NONE.left(R, A), FACTS)],
    "right_empty": [(R.right(NONE, A), FACTS), (NONE.right(R, A), FACTS)],
    "full_empty": [(R.full(NONE, A), FACTS), (NONE.full(R, A), FACTS)],
    "select_constant": [
        (R.select("TRUE"), FACTS),
        (R.select("FALSE"), FACTS),
        (R.select("NULL"), FACTS),
        (R.select("1 = 2 OR a = 1"), FACTS),
        (R.select("a = 1 AND NOT (2 > 3)"), FACTS),
        (R.select("a > 1 OR NULL IS NULL"), FACTS),
        (R.select("NOT (a > 1 AND 1 > 2)"), FACTS),
        (R.select("a > 1 AND NULL = 1"), FACTS),
        (R.select("1 IN (2, NULL) OR a = 1 OR 'x' = 'y'"), FACTS),
    ],
    "select_select": [(R.select("a > 1").select("b = 2 AND a < 3"), FACTS)],
    "select_product": [
        (R.product(S).select("#0 = #2"), FACTS),
        (R.join(S, A).select("#1 < #3"), FACTS),
    ],
    "project_identity": [(R.project(["a", "b"]), FACTS)],
    "project_project": [
        (R.project({"a": "b", "c": "a + 1"}).project({"d": "c * a", "e": "c"}), FACTS),
    ],
    "literal_project": [(ROWS.project({"b": "b", "c": "7", "a": "a"}), FACTS)],
    "distinct_distinct": [(R.distinct().distinct(), FACTS)],
    "distinct_below": [
        (R.distinct().project(["a"]).distinct(), FACTS),
        ((R.distinct() + S).distinct(), FACTS),
        ((R + S.distinct()).distinct(), FACTS),
        ((R.distinct() | S).distinct(), FACTS),
        ((R | S.distinct()).distinct(), FACTS),
        ((R.distinct() + xy(S)).distinct(), FACTS),
        ((R | xy(S).distinct()).distinct(), FACTS),
    ],
    "group_distinct": [(GroupBy(R, (1,), (), ()), FACTS), (GroupBy(R, (1, 0, 1), (), ()), FACTS)],
    "same_sides": [(R - R, FACTS), (R & R, FACTS), (R | R, FACTS)],
    "monus_plus": [
        ((R + S) - S, FACTS),
        ((R + R.select("a > 1")) - R, FACTS),
        ((R + R.distinct()) - (R + T), FACTS),
    ],
    "monus_monus": [(R - (R - S), FACTS)],
    "min_absorbed": [
        (R & (R + S), FACTS),
        (R & (S + R), FACTS),
        (R & (R | S), FACTS),
        (R & (S | R), FACTS),
        ((R + S) & R, FACTS),
        ((R | S) & R, FACTS),
    ],
    "join_true": [
        (R.join(S, "TRUE"), FACTS),
        (R.join(S, "FALSE"), FACTS),
        (R.join(S, "NULL"), FACTS),
        (R.join(S, f"{A} AND 1 = 1"), FACTS),
    ],
    "semi_true": [
        (R.semi(S, "FALSE"), FACTS),
        (R.semi(S, "NULL"), FACTS),
        (R.semi(S, f"1 = 1 AND {A}"), FACTS),
        (R.semi(S, "2 > 1"), FACTS),
    ],
    "semi_distinct": [(R.semi(S.distinct(), A), FACTS)],
    "contradiction": [
        (R.select("a > 1 AND a < 1"), FACTS),
        (R.select("a = 1").select("a IN (2, 3) OR a IS NULL"), FACTS),
        (R.select("a = b AND a > 1 AND b < 1"), FACTS),
        (R.select("a > 2"), SPLIT),
        (R.select("a > 2").product(S), SPLIT),
        (R.join(S, "left.a = right.a AND left.a > 2"), SPLIT),
        (R.semi(S, "left.a = right.a AND left.b IS NULL AND left.b = 1"), FACTS),
        (ROWS.select("b > 3"), FACTS),
        (R.group_by(["a"], {"n": "count(*)"}).select("a = 3"), SPLIT),
        (R.join(S, A), SPLIT),
        (R.semi(S, f"{B} AND {A}"), SPLIT),
        (R.join(S, "left.a <=> right.a"), SPLIT),
        (R.join(S, "left.b = right.a").select("#1 = 1"), SPLIT),
        (R.semi(S, "left.b = right.a").select("b < 2"), SPLIT),
        (R.select("a <> 1 AND a = 1"), FACTS),
        (R.select("a IN (1, 2) AND NOT a IN (2, 1)"), FACTS),
        (R.select("NOT a = 1").select("a <=> 1"), FACTS),
    ],
    "no_partner": [
        (R.anti(S, A), SPLIT),
        (R.left(S, A), SPLIT),
        (R.right(S, A), SPLIT),
        (R.anti(S, "left.b = right.b AND left.b <> 1 AND right.b = 1"), FACTS),
        (R.left(S, "left.a > 2"), SPLIT),
        (R.right(S, f"{B} AND left.b IS NULL"), FACTS),
    ],
    "join_foreign_key": [
        (S.join(dR, A), references()),
        (dR.join(S, A), references()),
        (S.semi(dR, A), references()),
        (dR.semi(S, A), references()),
        (nS.join(dR, A), references()),
        (at(S, OLD).join(dR, A), references()),
        (S.join(dR, "left.b = right.a"), references("b", "a")),
        (S.join(at(R, SIGNED), A), references()),
        (S.join(dR, f"{A} AND {B} AND left.a > 1"), references("ab", "ab")),
        ((S - nS).select("b = 1").project(["a"]).join(dR.select("b > 1"), A), references()),
        (S.group_by(["a"], {"n": "count(*)"}).join(dR, A), references()),
        (S.distinct().semi(T, B).anti(T, A).join(dR, A), references()),
        (S.left(T, B).join(dR.project({"k": "a"}), "#0 = k"), references()),
        (T.right(S, B).join(dR.project({"k": "a"}), "#2 = k"), references()),
        ((S & T).product(T).join(dR.project({"k": "a"}), "#0 = k"), references()),
        (Net(signed(S)).join(dR, A), references()),
        (R.join(dR, "left.b = right.a"), SELF),
    ],
    "anti_foreign_key": [
        (S.anti(dR, A), references()),
        (dR.anti(S, A), references()),
        (S.anti(dR, f"{A} AND {B}"), references("ab", "ab")),
    ],
    "semi_contained": [
        (R.select("a > 1").semi(R, SAME), FACTS),
        (R.semi(S, SAME), INSIDE),
    ],
    "semi_disjoint": [
        (R.semi(S, SAME), SPLIT),
        (R.semi(S, SAME), APART),
        (S.semi(R, SAME), APART),
    ],
    "monus_contained": [
        (R.select("a > 1") - R, FACTS),
        ((R - S) - R, FACTS),
        (nR - R, FACTS),
        (nR - at(R, OLD), FACTS),
        (dR - at(R, NEW), FACTS),
        (R - S, INSIDE),
        (R.join(S, A) - R.join(S + T, A), FACTS),
        (R.semi(S, A) - (R | T).semi(S + T, A), FACTS),
        (R.anti(S + T, A) - R.anti(S, A), FACTS),
        ((R - (S + T)) - ((R | S) - S), FACTS),
        ((R & S) - (T | S), FACTS),
        ((R.select("a > 1") | R.distinct()) - R, FACTS),
        ((R - S).project(["b"]) - R.project(["b"]), FACTS),
        ((R - S).distinct() - (R + T).distinct(), FACTS),
        ((R - T).product(S) - R.product(S | U), FACTS),
        (((R - T) + S) - (S + R), FACTS),
        (R.select("a > 1").select("b > 1") - (R + S).select("b > 1"), FACTS),
    ],
    "monus_disjoint": [
        (R - S, SPLIT),
        (R.select("a > 1") - R.select("a IS NULL"), FACTS),
        (nR - dR, FACTS),
        (R - dR, KEY),
        (nR - at(R, NEW), KEY),
        ((R - S) - (S - R), FACTS),
        (R.semi(S, A) - T.anti(S, A), FACTS),
        ((R - S) - S, KEY),
        (R - S, APART),
        (S.distinct() - R.select("b = 1"), APART),
        (R.product(T) - S.product(U), APART),
        (T.join(R, A) - U.join(S, B), APART),
        (R.project({"a": "1", "b": "b"}) - S.project({"a": "2", "b": "b"}), FACTS),
        ((R & T) - (S + S.select("a = 1")), SPLIT),
        (R.select("a = 1") - (S.select("a = 2") | T.select("a <=> 3")), FACTS),
    ],
    "monus_part_disjoint": [
        (R - (S + T), APART),
        (R - (T + S), APART),
        (R - (S | T), APART),
        (R - (T | S), APART),
    ],
    "monus_plus_parts": [
        ((R + S.select("a = 1")) - S, APART),
        ((R.select("a = 1") + R.select("a = 2").distinct()) - R.select("a = 2"), FACTS),
        ((R.select("a = 2").distinct() + R.select("a = 1")) - R.select("a = 2"), FACTS),
    ],
    "min_part_disjoint": [
        ((R + R.distinct()) & S, APART),
        ((R.select("a = 1") + R) & S.select("a = 2"), FACTS),
        ((T | R) & S, APART),
        ((R | R.select("a IS NULL")) & S, al.Facts(disjoint=[(R, S)])),
        (R & (S + T), APART),
        (R & (T + S), APART),
        (R & (S | T), APART),
        (R & (T | S), APART),
    ],
    "min_disjoint": [(R & S, SPLIT), (S & R, APART), (nR & dR, FACTS)],
    "min_contained": [
        (R & S, INSIDE),
        (R & R.select("a > 1"), FACTS),
        (R.distinct() & R, FACTS),
    ],
    "max_contained": [(R | R.select("a > 1"), FACTS), (R.distinct() | R, FACTS)],
    "plus_restored": [
        ((R - nR) + nR, FACTS),
        (nR + (R - nR), FACTS),
        ((R - R.distinct()) + R.distinct(), FACTS),
    ],
    "distinct_duplicate_free": [
        (R.distinct(), KEY),
        (R.distinct(), al.Facts(duplicate_free=["R"])),
        (R.group_by(["a"], {"n": "count(*)"}).distinct(), FACTS),
        (R.group_by([], {"n": "sum(a)"}).distinct(), FACTS),
        (R.project(["a"]).distinct(), KEY),
        ((R + S.select("a > 2")).distinct(), al.Facts(keys=KEY.keys, checks={"R": "a < 2"})),
        ((R | S).distinct(), KEY),
        ((R & T).distinct(), KEY),
        ((T & R).distinct(), KEY),
        (R.join(S, A).distinct(), KEY),
        (R.product(S).distinct(), KEY),
        (R.left(S, A).distinct(), KEY),
        (R.right(S, A).distinct(), KEY),
        ((R - T).select("a > 1").semi(T, A).anti(U, B).distinct(), KEY),
        (al.literal(["a"], [(1,), (None,), (2,)]).distinct(), FACTS),
        (R.project({"n": "1"}).distinct(), al.Facts(keys={"R": [[]]})),
    ],
}

_P = Call("=", (Col(0), Col(1)))

# No law may fire on these: each is wrong in some state that satisfies the facts.
HOLDS: list[tuple[Query, al.Facts]] = [
    # <=> joins NULLs, of which a foreign key says nothing
    (S.semi(dR, "left.a <=> right.a"), references()),
    (S.join(dR, f"{A} AND left.b <=> right.b"), references("ab", "ab")),
    # a foreign key says nothing of what is added on both sides, nor of half of it, nor of the new
    (dS.join(dR, A), references()),
    (S.join(dR, A), references("ab", "ab")),
    (S.join(dR, "left.a = right.b"), references()),
    (S.join(dR, A), references(append_only=())),
    (S.join(R, A), references()),
    (at(S, NEW).join(dR, A), references()),
    (T.left(S, B).join(dR.project({"k": "a"}), "#0 = k"), references()),
    (S.join(dR, "left.a + 0 = right.a"), references("b", "a")),
    # ±R may have the old row and the new row of one key
    (at(R, SIGNED).project(["a"]).distinct(), KEY),
    (at(R, SIGNED).join(S, A), references(append_only=["S"])),
    # the columns must come from one row of the table
    (
        S.product(S).join(dR.project({"j": "a", "k": "b"}), "#0 = j AND #3 = k"),
        references("ab", "ab"),
    ),
    # columns at other places
    (X.product(S.select("a > 2") + S.select("a >= 2")) & R.product(Y.select("x < 2")), FACTS),
    (Semi(Semi(X, Y, _P), Anti(R, Y, _P), Call("<=>", (Col(0), Col(1)))), FACTS),
    (Semi(X, R, Call("<=>", (Col(0), Col(1)))), FACTS),
    # NULL is neither smaller nor larger, and may be both
    (R.select("a > 1 OR a IS NULL") & S.select("a < 1 OR a IS NULL"), FACTS),
    (R.select("a <=> b AND a IS NULL"), FACTS),
    (R.left(S, A).select("#2 IS NULL"), al.Facts(checks={"S": "a > 1"})),
    (R.right(S, A).select("#0 IS NULL"), al.Facts(checks={"R": "a > 1"})),
    (R.full(S, A).select("#0 IS NULL"), al.Facts(checks={"R": "a > 1", "S": "a > 1"})),
    (
        R.join(S, "left.a <=> right.a"),
        al.Facts(checks={"R": "a < 2 OR a IS NULL", "S": "a > 2 OR a IS NULL"}),
    ),
    (R.anti(S, "left.a <=> right.b"), al.Facts(checks={"R": "a < 2 OR a IS NULL"})),
    (R.left(S, A), al.Facts(checks={"R": "a < 3", "S": "a > 1"})),
    (R.select("a <> 1 OR a = 1"), FACTS),
    (R.select("NOT a <=> 1"), FACTS),
    (R.select("a IN (1, 2) AND a <> 1"), FACTS),
    # what holds of joined rows does not hold of those without a partner
    (R.left(S, A).select("#0 < 2 OR #0 IS NULL"), al.Facts(checks={"S": "a > 2"})),
    (R.anti(S, A).select("a < 2"), al.Facts(checks={"S": "a > 2"})),
    # two rows of NULLs, one of each side, are padded to equal rows
    (R.full(S, "FALSE").distinct(), KEY),
    # two tables without duplicates may share a row; a projection may lose the key
    ((R + S).distinct(), KEY),
    (R.project(["b"]).distinct(), KEY),
    ((R + R).distinct(), KEY),
    # in a bag, what is added may have been there, and S ∸ T may have rows of T
    (R - dR, FACTS),
    ((R - S) & S, FACTS),
    (dR - R, FACTS),
    # the same condition, of other tables; no containment in a part
    (R.semi(S, A) & R.anti(T, A), FACTS),
    (R.anti(S, A) - R.anti(S + T, A), FACTS),
    ((R + S) - (R | S), FACTS),
    ((R - S) + S, FACTS),
    ((R + S) - S.select("a > 1"), APART),
    ((R + T) - S, APART),
    ((S + T) & S, APART),
    (R.project(["b"]) - R.distinct().project(["b"]), FACTS),
    # without keys there is one row, even of nothing
    (NONE.group_by([], {"n": "count(*)"}), FACTS),
    (R.select("a > 2").group_by([], {"n": "count(*)"}), al.Facts(checks={"R": "a < 2"})),
    # equality of some columns, or not of NULLs, is not equality of rows
    (R.distinct().semi(R, A), FACTS),
    (R.semi(S, A), APART),
    (R.select("a = 1").semi(S, SAME + " AND left.a = 1"), FACTS),
]
