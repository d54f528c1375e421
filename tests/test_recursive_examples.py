"""The worked examples of Libkin, Su, Wong and Dong, as printed; where print errs, we say so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from recursive_duckdb import Single
from viewkeeper.recursive import bind, count_joins, load, run
from viewkeeper.recursive.model import Step


def pairs(text: str) -> set[tuple[str, ...]]:
    """Rows of one-letter values."""
    return {tuple(row) for row in text.split()}


def both(rows: set[tuple[Any, ...]]) -> set[tuple[Any, ...]]:
    """The rows and their symmetric ones."""
    return rows | {row[::-1] for row in rows}


def through(text: str) -> set[tuple[str, ...]]:
    """The paper's shorthand a/b/c with the ends first and last: 'a abc c' is three tuples."""
    rows = set()
    for line in text.split(","):
        a, on, b = line.split()
        rows |= {(a, v, b) for v in on} | {(b, v, a) for v in on}
    return rows


# ── section 2 ──


def test_section_2_insertion() -> None:
    kept = Single("acyclic_single")
    for edge in ("0c", "ca", "cb", "b1"):
        kept.insert(*edge)
    kept.insert("a", "b")
    assert kept.table("TC_NEW") == pairs("0b cb a1 ab 01 c1")
    assert kept.table("DELTA") == pairs("a1 ab")


def test_section_2_figure_2_deletion() -> None:
    """Deleting (a, b): the tables SUSPECT and TRUSTY as printed."""
    kept = Single("acyclic_single")
    for edge in ("0c", "ca", "ab", "cb", "b1"):
        kept.insert(*edge)
    kept.delete("a", "b")
    assert kept.table("SUSPECT") == pairs("0b 01 ab a1 cb c1")
    assert kept.table("TRUSTY") == pairs("0a 0c ca cb b1")
    assert kept.output() == pairs("0a 0c ca cb b1 0b 01 c1")


def test_section_5_joins() -> None:
    """2 and 6 joins, and 8, as counted there. Our 23 are its 14, and: the replacement edge joined
    in four times, where there the edge is given; LESSTHAN; one test in REP-ALL; and three so that
    no row is both deleted and inserted."""
    assert count_joins(load("acyclic_single"), "INSERT").joins == 2
    assert count_joins(load("acyclic_single"), "DELETE").joins == 6
    assert count_joins(load("undirected_single"), "INSERT").joins == 8
    assert count_joins(load("undirected_single"), "DELETE").joins == 14 + 4 + 1 + 1 + 3


# ── section 3 ──

CHAIN = pairs("ab bc cd de")


def undirected() -> Single:
    """The first graph. The edges come in an order that gives the printed forest and order."""
    kept = Single("undirected_single")
    for edge in ("ab", "ce", "de", "cd"):
        kept.insert(*edge)
    return kept


def test_section_3_first_tables() -> None:
    kept = undirected()
    assert kept.table("FOREST") == both(pairs("ab ce de"))
    assert kept.table("THROUGH") == through("a ab b,c ce e,d de e,c ced d")
    order = kept.table("LESSTHAN")
    assert len(order) == 10 and pairs("ab bc ac") <= order


def test_section_3_insertions() -> None:
    kept = undirected()
    before = kept.table("THROUGH")
    kept.insert("b", "c")
    assert kept.table("FOREST_COME") == both(pairs("bc"))
    added = through("a abc c,a abce e,a abced d,b bc c,b bce e,b bced d")
    assert kept.table("THROUGH_COME") == added
    assert not kept.table("LESSTHAN_COME")
    for edge in ("ac", "ae"):
        kept.insert(*edge)
        assert not kept.table("FOREST_COME") and not kept.table("THROUGH_COME")
    assert kept.table("THROUGH") == before | added


def test_section_3_deletion() -> None:
    kept = undirected()
    for edge in ("bc", "ac", "ae"):
        kept.insert(*edge)
    kept.delete("a", "b")
    assert kept.table("REP_ALL") == pairs("ac ae")
    assert kept.table("REP") == pairs("ac")
    assert kept.table("DELTA") == through("a ab b,a abc c,a abce e,a abced d")
    assert not kept.table("LESSTHAN_GONE")
    assert kept.table("FOREST") == both(pairs("ac bc ce de"))
    assert kept.table("THROUGH") == through(
        "a ac c,a acb b,a ace e,a aced d,b bc c,b bce e,b bced d,c ce e,c ced d,d de e"
    )
    assert kept.output() == {(x, y) for x in "abcde" for y in "abcde" if x != y}


def test_section_3_replacement_from_larger_to_smaller() -> None:
    """As printed, REP keeps only edges whose end on a's side is the smaller one; here the only
    replacement is (z, c), and z is the largest node."""
    kept = Single("undirected_single")
    for edge in ("ab", "bc", "az", "cz"):
        kept.insert(*edge)
    assert ("c", "z") in kept.table("LESSTHAN")
    kept.delete("a", "b")
    assert kept.table("REP") == {("z", "c")}
    assert ("a", "b") in kept.output()


def test_section_3_two_new_nodes_are_ordered() -> None:
    """As printed, Initial orders two new nodes only if LESSTHAN is empty."""
    kept = Single("undirected_single")
    kept.insert("a", "b")
    kept.insert("y", "x")
    assert ("y", "x") in kept.table("LESSTHAN")
    assert len(kept.table("LESSTHAN")) == 6


# ── section 4 ──

PRINTED_R_ALL = {
    (1, "x", "a", "x", "a"), (2, "b", "y", "b", "y"),
    (6, "x", "y", "x", "a"), (6, "x", "y", "b", "y"), (6, "x", "y", "a", "b"),
    (97, "a", "b", "a", "b"),
    (5047, "a", "y", "b", "y"), (5047, "a", "y", "a", "b"),
    (4948, "x", "b", "x", "a"), (4948, "x", "b", "a", "b"),
}  # fmt: skip
PRINTED_R = {
    (1, "x", "a", "x", "a"), (2, "b", "y", "b", "y"),
    (3, "x", "y", "x", "a"), (3, "x", "y", "b", "y"), (3, "x", "y", "a", "b"),
    (4, "a", "b", "a", "b"),
    (6, "a", "y", "b", "y"), (6, "a", "y", "a", "b"),
    (5, "x", "b", "x", "a"), (5, "x", "b", "a", "b"),
}  # fmt: skip


def paths() -> Single:
    kept = Single("directed_single")
    kept.insert("x", "a")
    kept.insert("b", "y")
    assert kept.table("R") == {(1, "x", "a", "x", "a"), (2, "b", "y", "b", "y")}
    return kept


def test_section_4_as_printed() -> None:
    """The printed V1 has 6 for pairing(1, 2), which by the formula is 8. From that row on, all
    numbers are as printed: 97 = pairing(7, 6), 5047 = pairing(2, 97), 4948 = pairing(1, 97)."""
    kept = paths()
    program = kept.system.programs["INSERT"]
    printed = "SELECT 6 AS Pair, 1 AS Comp1, 2 AS Comp2, 'x' AS St, 'y' AS \"End\""
    body = tuple(
        replace(item, sql=printed) if isinstance(item, Step) and item.name == "V1" else item
        for item in program.body
    )
    bound = bind(kept.system, replace(program, body=body), {"a": "a", "b": "b"}, dialect="duckdb")
    outcome = run(bound, kept.runner)
    assert kept.table("VINS1") == {row for row in PRINTED_R_ALL if row[0] == 6}
    assert kept.table("NEWID") == {(97,)}
    assert kept.table("VINS2") == {(97, "a", "b", "a", "b")}
    assert kept.table("VINS3") == {row for row in PRINTED_R_ALL if row[0] == 5047}
    assert kept.table("VINS4") == {row for row in PRINTED_R_ALL if row[0] == 4948}
    assert kept.table("R_ALL") == PRINTED_R_ALL
    assert kept.table("NM3") == {(1, 1), (2, 2), (6, 3), (97, 4), (4948, 5), (5047, 6)}
    kept.runner.commit(outcome, kept.system)
    assert kept.table("R") == PRINTED_R
    assert kept.output() == pairs("xa by xy ab ay xb")


def test_section_4_by_the_formula() -> None:
    """pairing(1, 2) = 8; renumbered, the paths are as printed."""
    kept = paths()
    kept.insert("a", "b")
    assert kept.table("V1") == {(8, 1, 2, "x", "y")}
    assert kept.table("R") == PRINTED_R
    kept.delete("a", "b")
    assert kept.table("DEADPATH") == {(3,), (4,), (5,), (6,)}
    assert kept.output() == pairs("xa by")


def test_section_4_numbers_are_not_given_twice() -> None:
    """As printed, the pairing of two numbers may be in use; a deletion then takes too many paths.

    Without renumbering: (b,c), (a,b), (c,a) give 43 both to a→b→c and to b→c→a→b. With it: the
    edges below, where a path over (b,c) gets a number that another path has.
    """
    kept = Single("directed_single")
    for edge in ("bc", "ab", "ca"):
        kept.insert(*edge)
    kept.delete("c", "a")
    assert kept.output() == pairs("bc ab ac")

    kept = Single("directed_single")
    for edge in ("cb", "bd", "ad", "bc"):
        kept.insert(*edge)
    assert kept.table("SHIFT") != {(0,)}
    kept.delete("c", "b")
    assert kept.output() == pairs("bd ad bc")


# ── section 6 ──


def test_section_6_even() -> None:
    kept = Single("even")
    rows: set[tuple[str, ...]] = set()
    assert kept.output() == {(1,)}
    for row in ("x", "y", "z"):
        kept.insert(row)
        rows.add((row,))
        assert kept.output() == ({(1,)} if len(rows) % 2 == 0 else set())
    kept.apply("INSERT", {"t": "x"})  # it is there already
    assert kept.output() == set()
    kept.apply("DELETE", {"t": "w"})  # it is not there
    assert kept.output() == set()
    kept.delete("x")
    assert kept.output() == {(1,)}
