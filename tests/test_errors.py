"""Bad input: the right class, a stable code, carets under the right place, and what to do next."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest

from viewkeeper import algebra as al
from viewkeeper import errors
from viewkeeper.errors import (
    AmbiguousColumnError,
    ArityError,
    ChangeError,
    EvaluationError,
    NotationError,
    UnknownColumnError,
    UnknownTableError,
    UnsupportedScalarError,
    ViewKeeperError,
)

R = al.table("R", ["a", "b"])
S = al.table("S", ["a", "c"])
U = al.table("U", ["x"])
SCHEMAS = {"R": ["a", "b"], "S": ["a", "c"], "U": ["x"]}
END = ""  # the caret stands after the last character

CODES = {
    NotationError: "MALFORMED_NOTATION",
    UnknownColumnError: "UNKNOWN_COLUMN",
    AmbiguousColumnError: "AMBIGUOUS_COLUMN",
    UnknownTableError: "UNKNOWN_TABLE",
    ArityError: "ARITY_MISMATCH",
    UnsupportedScalarError: "UNSUPPORTED_SCALAR",
    EvaluationError: "EVALUATION_FAILED",
    ChangeError: "INVALID_CHANGE",
    errors.FactError: "INVALID_FACT",
}


def raised(call: Callable[[], object], kind: type[ViewKeeperError]) -> ViewKeeperError:
    """The error that a call raises, with the checks that hold for all."""
    with pytest.raises(kind) as caught:
        call()
    error = caught.value
    assert type(error) is kind
    assert error.code == CODES[kind]
    assert str(error).startswith(f"[{error.code}] {error.what}")
    assert error.hint and str(error).endswith(error.hint)
    assert "\n" not in error.what
    return error


def check_place(error: ViewKeeperError, place: str, at: int | None = None) -> None:
    """Carets stand under ``place``, in the text that the user gave, and in the message."""
    assert error.text is not None and error.span is not None
    start, stop = error.span
    if place is END:
        assert (start, stop) == (len(error.text), len(error.text) + 1)
    else:
        assert error.text[start:stop] == place
    if at is not None:
        assert start == at
    line, carets = str(error).split("\n")[1:3]
    assert line == f"  {error.text}"
    assert carets == " " * (2 + start) + "^" * (stop - start)


def test_codes_are_stable_and_each_class_has_one() -> None:
    classes = ViewKeeperError.__subclasses__()
    ours = {c: c.code for c in classes if c.__module__ == "viewkeeper.errors"}
    assert {c: ours[c] for c in CODES} == CODES
    assert len(set(ours.values())) == len(ours)


# ── the papers' notation ──


@pytest.mark.parametrize(
    ("text", "place", "word"),
    [
        ("", END, "expected a query"),
        ("   ", END, "expected a query"),
        ("R ⊎", END, "expected a query"),
        ("⊎ R", "⊎", "expected a query"),
        ("R min", END, "expected a query"),
        ("R R", "R", "ends before the text does"),
        ("R)", ")", "ends before the text does"),
        ("(R", END, "')'"),
        ("((R)", END, "')'"),
        ("ε R", "R", "'('"),
        ("ε(R", END, "')'"),
        ("net(R", END, "')'"),
        ("σ[a > 1(R)", END, "']'"),
        ("σ[a > 1](R", END, "')'"),
        ("σ(R)", "(", "'['"),
        ("σ[](R)", "]", "expected a column"),
        ("σ[a >](R)", "]", "expected a column"),
        ("σ[a > 1 b](R)", "b", "']'"),
        ("σ[(a > 1](R)", "]", "')'"),
        ("σ[a = 'x](R)", "'", "not a sign"),
        ("σ[`a = 1](R)", "`", "not a sign"),
        ("R ? S", "?", "not a sign"),
        ("σ[a NOT 1](R)", "1", "IN, BETWEEN or LIKE"),
        ("σ[a IS 1](R)", "1", "'null'"),
        ("σ[a IN 1](R)", "1", "'('"),
        ("σ[a IN ()](R)", ")", "expected a column"),
        ("σ[a BETWEEN 1](R)", "]", "'and'"),
        ("σ[CASE END](R)", "END", "WHEN"),
        ("σ[CASE WHEN a > 1 THEN 1](R)", "]", "'end'"),
        ("σ[a. > 1](R)", ">", "after '.'"),
        ("σ[a + NOT b > 1](R)", "NOT", ""),
        ("σ[abs(a, b) > 1](R)", "abs", "arguments"),
        ("σ[coalesce() > 1](R)", "coalesce", "arguments"),
        ("σ[abs(a > 1](R)", "]", "')'"),
        ("Π[a + 1](R)", "a", "needs a name"),
        ("Π[a AS](R)", "]", "after AS"),
        ("Γ[a; count(*)](R)", "]", "'as'"),
        ("Γ[a + 1; count(*) AS n](R)", "a", "key of Γ"),
        ("Γ[a; sum(*) AS n](R)", "*", "expected a column"),
        ("R ⋈ S", "S", "'['"),
        ("R ⋈[left.a = right.a S", END, "']'"),
        ("R ⋈[left.a = right.a] ", END, "expected a query"),
        ("R@", END, "old or new"),
        ("∇(R)", "(", "table's name"),
        ("Δ", END, "table's name"),
        ("∅", END, "'['"),
        ("∅[", END, "column name"),
        ("∅[a", END, "']'"),
        ("{(1, 2)}", END, "'['"),
        ("{(1, 2}[a, b]", "}", "')'"),
        ("{1}[a]", "1", "'('"),
        ("{(1 + 1)}[a]", "1", "constants"),
        ("let v := R", END, "'in'"),
        ("let v R in v", "R", "':='"),
        ("let := R in v", ":=", "after let"),
    ],
)
def test_malformed_notation(text: str, place: str, word: str) -> None:
    error = raised(lambda: al.parse(text, SCHEMAS), NotationError)
    assert word in error.what
    check_place(error, place)


@pytest.mark.parametrize(
    ("text", "kind", "place", "at", "hint"),
    [
        ("σ[zz > 1](R)", UnknownColumnError, "zz", 2, "Known: a, b."),
        ("σ[R.zz > 1](R)", UnknownColumnError, "R.zz", 2, "Known"),
        ("σ[S.a > 1](R)", UnknownColumnError, "S.a", 2, "Known"),
        ("σ[#7 > 1](R)", UnknownColumnError, "#7", 2, "#0 to #1"),
        ("R ⋉[a2 = c] S", UnknownColumnError, "a2", 4, "left.a, b, right.a, c"),
        ("{(a)}[a]", UnknownColumnError, "a", 2, "Known"),
        ("R ⋈[a = c] S", AmbiguousColumnError, "a", 4, "left.a, right.a"),
        ("σ[a > 1](R × S)", AmbiguousColumnError, "a", 2, "R.a, S.a"),
        ("σ[R.a > 1](R × R)", AmbiguousColumnError, "R.a", 2, "#0, #2"),
        ("R ⊎ U", ArityError, "⊎", 2, "Project one side"),
        ("R ⊎ R ∸ U", ArityError, "∸", 6, "Project one side"),
        ("R min (U max U)", ArityError, "min", 2, "Project one side"),
        ("{(1, 2, 3)}[a, b]", ArityError, "{(1, 2, 3)}[a, b]", 0, "one value each for a, b"),
        ("Q", UnknownTableError, "Q", 0, "Known: R, S, U."),
        ("R ⊎ ∇Q", UnknownTableError, "Q", 5, "Known"),
        ("let v := R in w", UnknownTableError, "w", 14, "Known"),
        ("σ[foo(a) > 1](R)", UnsupportedScalarError, "foo", 2, "Known: abs"),
        ("σ[sum(a) > 1](R)", UnsupportedScalarError, "sum", 2, "Known: abs"),
        ("Γ[a; median(b) AS m](R)", UnsupportedScalarError, "median", 5, "Known: count"),
        ("Γ[a; b AS m](R)", UnsupportedScalarError, "b", 5, "Known: count"),
        ("Γ[a; sum(count(b)) AS m](R)", UnsupportedScalarError, "count", 9, "Known: abs"),
    ],
)
def test_wrong_names(
    text: str, kind: type[ViewKeeperError], place: str, at: int, hint: str
) -> None:
    error = raised(lambda: al.parse(text, SCHEMAS), kind)
    check_place(error, place, at)
    assert hint in error.hint


@pytest.mark.parametrize(
    "text",
    [
        "(" * 5000 + "R" + ")" * 5000,
        "ε(" * 5000 + "R" + ")" * 5000,
        "σ[" + "(" * 5000 + "a" + ")" * 5000 + "](R)",
        "σ[" + "NOT " * 5000 + "a](R)",
        "σ[" + "-" * 5000 + "a > 1](R)",
        "σ[" + "abs(" * 5000 + "a" + ")" * 5000 + " > 1](R)",
    ],
    ids=lambda text: text[:6],
)
def test_deep_nesting(text: str) -> None:
    error = raised(lambda: al.parse(text, SCHEMAS), NotationError)
    assert "too deeply" in error.what


def test_a_long_chain_is_not_deep() -> None:
    q = al.parse(" ⊎ ".join(["R"] * 2000), SCHEMAS)
    assert al.evaluate(q, {"R": [(1, 1)]})[1, 1] == 2000
    assert al.parse(str(q), SCHEMAS) is q


def test_a_place_in_the_second_line() -> None:
    error = raised(lambda: R.select("a > 1\n  AND zz > 2"), UnknownColumnError)
    assert str(error).split("\n")[1:3] == ["    AND zz > 2", "        ^^"]


# ── building ──


@pytest.mark.parametrize(
    ("call", "kind", "place"),
    [
        (lambda: R.select("c > 1"), UnknownColumnError, "c"),
        (lambda: R.select(""), NotationError, END),
        (lambda: R.select("a > 1 b"), NotationError, "b"),
        (lambda: R.select("a > 1)"), NotationError, ")"),
        (lambda: R.select("a IN (SELECT a FROM S)"), UnknownColumnError, "SELECT"),
        (lambda: R.project(["c"]), UnknownColumnError, "c"),
        (lambda: R.project(["a + b"]), NotationError, "a + b"),
        (lambda: R.project({"x": "c + 1"}), UnknownColumnError, "c"),
        (lambda: R.project({"x": "rank() OVER (ORDER BY a)"}), UnsupportedScalarError, "rank"),
        (lambda: R.project({"x": "CAST(a AS int)"}), UnsupportedScalarError, "CAST"),
        (lambda: R.group_by(["z"], {"n": "count(*)"}), UnknownColumnError, "z"),
        (lambda: R.group_by(["a"], {"n": "median(b)"}), UnsupportedScalarError, "median"),
        (lambda: R.group_by(["a"], {"n": "sum(b) + 1"}), NotationError, "+"),
        (lambda: R.group_by(["a"], {"n": "sum(z)"}), UnknownColumnError, "z"),
        (lambda: R.group_by(["a"], {"n": ""}), UnsupportedScalarError, END),
        (lambda: R.join(S, "a = c"), AmbiguousColumnError, "a"),
        (lambda: R.join(R, "R.a = right.a"), AmbiguousColumnError, "R.a"),
        (lambda: R.left(S, "left.zz = c"), UnknownColumnError, "left.zz"),
        (lambda: R.semi(S, ["b"]), UnknownColumnError, "b"),
        (lambda: R.product(S).select("a > 1"), AmbiguousColumnError, "a"),
        (lambda: al.table("R", ["a", "a"]).select("a > 1"), AmbiguousColumnError, "a"),
        (lambda: al.update(R, {"a": "1"}, where="z = 1"), UnknownColumnError, "z"),
        (lambda: al.update(R, {"a": "z + 1"}), UnknownColumnError, "z"),
        (lambda: al.delete(R, "z = 1"), UnknownColumnError, "z"),
    ],
)
def test_text_in_a_call(
    call: Callable[[], object], kind: type[ViewKeeperError], place: str
) -> None:
    check_place(raised(call, kind), place)


@pytest.mark.parametrize(
    ("call", "kind", "word"),
    [
        (lambda: R + U, ArityError, "left has 2 (a, b), right has 1 (x)"),
        (lambda: R - U, ArityError, "∸"),
        (lambda: R & U, ArityError, "min"),
        (lambda: R | U, ArityError, "max"),
        (lambda: al.literal(["a"], [(1, 2)]), ArityError, "row (1, 2)"),
        (lambda: R.rename({"z": "y"}), UnknownColumnError, "'z'"),
        (lambda: al.insert(R, U), ArityError, "R has 2 columns"),
        (lambda: al.delete(R, U), ArityError, "R has 2 columns"),
        (lambda: al.update(R, {"z": "1"}), UnknownColumnError, "'z'"),
        (lambda: al.change(R, ["R"], semantics="sets"), ChangeError, "'sets'"),
        (lambda: al.change(R, ["R"], state="now"), ChangeError, "'now'"),
        (lambda: al.change(R, ["R"], aggregates="kept"), ChangeError, "'kept'"),
        (lambda: al.change(R, {"R": (U, U)}), ArityError, "R has 1 columns"),
        (lambda: al.change(R, {"R": (R,)}), ChangeError, "the change of R is"),
        (lambda: al.change(R, ["R", "Q"]), UnknownTableError, "table 'Q'"),
        (lambda: al.change(R, "Q"), UnknownTableError, "table 'Q'"),
        (lambda: al.change(R, ["S"], semantics="set"), UnknownTableError, "table 'S'"),
        (lambda: al.violations(R, ["Q"]), UnknownTableError, "table 'Q'"),
        (lambda: al.change(R, {"R": (R, R)}, state="after"), ChangeError, "before"),
        (lambda: al.change(R.anti(S, ["a"]), ["R"], semantics="set-1991"), ChangeError, "Anti"),
    ],
)
def test_values_in_a_call(
    call: Callable[[], object], kind: type[ViewKeeperError], word: str
) -> None:
    assert word in raised(call, kind).what


def test_a_table_said_to_change_must_be_read() -> None:
    """A list names tables of the query; a transaction may change others too."""
    error = raised(lambda: al.change(R.join(S, ["a"]), ["Q"]), UnknownTableError)
    assert error.hint == "Known: R, S."
    change = al.change(R, al.transaction([al.insert(U, U)]))
    assert al.evaluate(change.added, {"R": [(1, 2)], "U": [(1,)]}) == {}


def test_the_nearest_name_comes_first() -> None:
    total = al.table("R", ["total", "b"])
    error = raised(lambda: total.select("totl > 1"), UnknownColumnError)
    assert error.hint == "Did you mean 'total'? Known: total, b."
    error = raised(lambda: al.parse("Rx", {"R": "a", "Rxy": "a"}), UnknownTableError)
    assert "Rxy" in error.hint


# ── data ──

ONE = R.project({"x": "a + b"})
TOTAL = R.group_by([], {"x": "sum(a)"})


@pytest.mark.parametrize(
    ("q", "rows", "kind"),
    [
        pytest.param(R, [(1,)], ArityError, id="too few values"),
        pytest.param(R, [(1, 2, 3)], ArityError, id="too many values"),
        pytest.param(R, [1, 2], EvaluationError, id="no rows"),
        pytest.param(R, [[1, 2]], EvaluationError, id="lists for rows"),
        pytest.param(R, [([1], 2)], EvaluationError, id="a list for a value"),
        pytest.param(R, {(1, 2): "3"}, EvaluationError, id="text for a count"),
        pytest.param(ONE, [("x", 1)], EvaluationError, id="text + number"),
        pytest.param(ONE, [(Decimal("1.5"), 1.5)], EvaluationError, id="decimal + float"),
        pytest.param(R.select("a < b"), [("x", 1)], EvaluationError, id="text < number"),
        pytest.param(R.select("a LIKE 'x'"), [(1, 1)], EvaluationError, id="number LIKE"),
        pytest.param(R.project({"x": "upper(a)"}), [(1, 1)], EvaluationError, id="upper(number)"),
        pytest.param(R.project({"x": "sqrt(a)"}), [(-1, 1)], EvaluationError, id="sqrt(-1)"),
        pytest.param(TOTAL, [("x", 1)], EvaluationError, id="sum of text"),
        pytest.param(TOTAL, [(float("nan"), 1)], EvaluationError, id="sum of NaN"),
        pytest.param(
            R.group_by([], {"x": "avg(a)"}), [(float("inf"), 1)], EvaluationError, id="avg of ∞"
        ),
        pytest.param(
            R.group_by([], {"x": "min(a)"}), [("x", 1), (2, 1)], EvaluationError, id="min of both"
        ),
    ],
)
def test_wrong_data(q: al.Query, rows: object, kind: type[ViewKeeperError]) -> None:
    raised(lambda: al.evaluate(q, {"R": rows}), kind)  # type: ignore[dict-item]


def test_missing_and_wrong_tables_of_data() -> None:
    assert "'R'" in raised(lambda: al.evaluate(R, {"Q": []}), UnknownTableError).what
    removed = al.change(R, ["R"]).removed
    changes = {"R": ([(1,)], [])}
    assert "(1,)" in raised(lambda: al.evaluate(removed, {"R": []}, changes), ArityError).what


def test_null_is_no_error() -> None:
    nothing = {"R": [(None, None), (1, 0)]}
    assert al.evaluate(ONE, nothing) == {(None,): 1, (1,): 1}
    assert al.evaluate(R.project({"x": "a / b", "y": "a % b"}), nothing) == {(None, None): 2}
    assert al.evaluate(R.select("a > b OR a IS NULL"), nothing) == {(None, None): 1, (1, 0): 1}
