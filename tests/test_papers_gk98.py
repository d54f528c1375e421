"""The worked examples of Griffin & Kumar 1998, each under its number."""

from __future__ import annotations

from collections import Counter

import pytest

from checks import pair_values
from viewkeeper import algebra as al
from viewkeeper.algebra.changes import equations_sets
from viewkeeper.algebra.changes.propagation import table_change

REG = al.table("Reg", ["student", "cname"])
COURSE = al.table("Course", ["course", "iname"])
COURSE_REG = COURSE.left(REG, "course = cname")
FACULTY = COURSE_REG.anti(REG, "left.iname = right.student")
SCHOOL = {
    "Reg": Counter([("Joe", "DB"), ("Mary", "DB"), ("Sam", "Psych")]),
    "Course": Counter([("DB", "Bob"), ("AI", "Tom"), ("History", "Jack"), ("Psych", "Jill")]),
}
JILL = {"Reg": (Counter(), Counter([("Jill", "AI")]))}
TAKEN = [("DB", "Bob", "Joe", "DB"), ("DB", "Bob", "Mary", "DB")]
SAM = ("Psych", "Jill", "Sam", "Psych")
AI, HISTORY = ("AI", "Tom", None, None), ("History", "Jack", None, None)
AI_JILL = ("AI", "Tom", "Jill", "AI")


def test_gk98_2_course_reg() -> None:
    assert al.evaluate(COURSE_REG, SCHOOL) == Counter([AI, *TAKEN, HISTORY, SAM])


def test_gk98_2_course_reg_by_p28() -> None:
    (p28,) = (e for e in equations_sets.GK98_FIGURE_3 if e.number == "P28")
    come = table_change(REG).added
    padded, joined = p28.steps(p28.terms(COURSE_REG, come))
    assert al.evaluate(padded.bag, SCHOOL, JILL) == Counter([AI])
    assert al.evaluate(joined.bag, SCHOOL, JILL) == Counter([AI_JILL])
    updated = al.evaluate(p28.right(COURSE_REG, come), SCHOOL, JILL)
    assert updated == Counter([AI_JILL, *TAKEN, HISTORY, SAM])


@pytest.mark.parametrize("semantics", ["bag", "set"])
def test_gk98_2_course_reg_by_the_rules(semantics: str) -> None:
    change = al.change(COURSE_REG, ["Reg"], semantics=semantics)
    assert pair_values(change, SCHOOL, JILL) == (Counter([AI]), Counter([AI_JILL]))


@pytest.mark.parametrize("semantics", ["bag", "set"])
def test_gk98_example_3_1_faculty_course_reg(semantics: str) -> None:
    old = Counter([AI, *TAKEN, HISTORY, SAM])
    assert al.evaluate(FACULTY, SCHOOL) == old
    change = al.change(FACULTY, ["Reg"], semantics=semantics)
    removed, added = pair_values(change, SCHOOL, JILL)
    assert removed == Counter([AI, SAM])
    assert added == Counter([AI_JILL])
    assert old - removed + added == Counter([AI_JILL, *TAKEN, HISTORY])


def test_gk98_3_past_queries() -> None:
    """The same change from a log, evaluated when Jill is registered already."""
    now = SCHOOL | {"Reg": SCHOOL["Reg"] + JILL["Reg"][1]}
    change = al.change(FACULTY, ["Reg"], state="after")
    removed = al.evaluate(change.removed, now, JILL, state="after")
    added = al.evaluate(change.added, now, JILL, state="after")
    assert (removed, added) == (Counter([AI, SAM]), Counter([AI_JILL]))
