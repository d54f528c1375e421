"""The documents agree with the code: nothing is missing, what is named exists, examples run."""

from __future__ import annotations

import ast
import importlib
import re
from pathlib import Path

import pytest

from random_queries import Generator
from viewkeeper import algebra as al
from viewkeeper import errors
from viewkeeper.algebra import nodes, notation, reading, scalars
from viewkeeper.algebra.changes.equations import GL95_FIGURE_2, GL95_LAWS, GL95_MORE
from viewkeeper.algebra.changes.equations_sets import GK98_FIGURE_3, GLT97_FIGURE_1

ROOT = Path(__file__).parent.parent
OPERATORS = (ROOT / "docs" / "operators.md").read_text(encoding="utf-8")
PAPERS = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
SCHEMAS = {"R": ["a", "b"], "S": ["a", "b"], "T": ["c", "d"]}


def rows(text: str) -> dict[tuple[object, ...], int]:
    return al.evaluate(al.parse(text, {}), {})


# ── operators.md ──

BAGS = {n: rows(text) for n, text in re.findall(r"^- `([RST])` = `(\{.*)`$", OPERATORS, re.M)}
EXAMPLES = re.findall(r"^- example `(.*)` = `(.*)`$", OPERATORS, re.M)
RULES = re.findall(r"^- Q = `(.*)`\n- ∇Q = `(.*)`\n- ΔQ = `(.*)`$", OPERATORS, re.M)


@pytest.mark.parametrize(("query", "expected"), EXAMPLES)
def test_example_means_what_the_page_says(query: str, expected: str) -> None:
    assert al.evaluate(al.parse(query, SCHEMAS), BAGS) == rows(expected)


@pytest.mark.parametrize(("query", "removed", "added"), RULES)
def test_rule_is_the_change(query: str, removed: str, added: str) -> None:
    schemas = {"S": ["a", "b"], "T": ["a", "b"]}
    q, gone, come = (al.parse(text, schemas) for text in (query, removed, added))
    for seed in range(60):
        g = Generator(seed)
        old = {n: g.bag(2) for n in "ST"}
        changes = g.changes(old, ["S", "T"])
        new = {n: (old[n] - changes[n][0]) + changes[n][1] for n in old}
        before, after = al.evaluate(q, old), al.evaluate(q, new)
        found = al.evaluate(gone, old, changes), al.evaluate(come, old, changes)
        assert found == (before - after, after - before), f"seed {seed}"


def test_each_operator_has_its_place() -> None:
    for node in (nodes.Table, nodes.Empty, nodes.Literal, *nodes.UNARY, *nodes.BINARY):
        assert f"`{node.__name__}`" in OPERATORS, node.__name__
    for node, glyph in notation.GLYPH.items():
        assert re.search(rf"^## {glyph}( |$)", OPERATORS, re.M), node.__name__
    for sign in "σΠεΓ":
        assert f"\n## {sign} " in OPERATORS
    for state in nodes.STATES:
        assert f"`R{state}`" in OPERATORS or f"`{state}R`" in OPERATORS, state
    sections = re.split(r"^## ", OPERATORS, flags=re.M)
    for section in sections:
        name = section.split("\n")[0]
        if re.match(r"[σΠεΓ⊎∸×⋈⋉▷⟕⟖⟗]|min|max|net", name):
            assert "- example `" in section, name
            assert "∇Q" in section or name == "net", name
            assert (
                "ultiplicity" in section
                or "= A ⊎ B" in section
                or name
                in (
                    "⋈ join",
                    "Γ grouping",
                    "net",
                )
            ), name


def test_words_and_signs_are_all_there() -> None:
    for word in [*reading._WORD, *reading._JOIN, *reading._SUM, *reading._TERM, "times", "let"]:
        assert word in OPERATORS, word
    for word, sign in [*reading._WORD.items()]:
        if word.isalpha() and word.isascii():
            assert f"`{word}" in OPERATORS, f"{word} for {sign}"


def test_grammar_is_the_readers() -> None:
    doc = reading.__doc__ or ""
    grammar = [line.strip() for line in doc.split("\n") if re.match(r" +(\w+ +=|\|)", line)]
    assert len(grammar) >= 6
    for line in grammar:
        assert line in OPERATORS, line


def test_functions_and_aggregates_are_all_there() -> None:
    for name in [*scalars.FUNCTIONS, *scalars.AGGREGATES]:
        assert re.search(rf"`{name}\(", OPERATORS), name
    for synonym in scalars.AGGREGATE_SYNONYMS:
        assert f"`{synonym}`" in OPERATORS, synonym
    for op in scalars.BINARY:
        shown = op.upper() if op.isalpha() else op.replace("|", "\\|")
        assert f"`{shown}`" in OPERATORS, op


def test_error_codes_are_all_there() -> None:
    classes = [errors.ViewKeeperError]
    for c in classes:
        classes += [s for s in c.__subclasses__() if s.__module__ == "viewkeeper.errors"]
    for c in classes:
        assert f"| `{c.code}` | `{c.__name__}` |" in OPERATORS, c.__name__
    assert len(classes) == len(re.findall(r"^\| `[A-Z_]+` \| `\w+Error` \|", OPERATORS, re.M))


# ── papers.md ──

EQUATIONS = (*GL95_FIGURE_2, *GL95_MORE, *GL95_LAWS, *GLT97_FIGURE_1, *GK98_FIGURE_3)


def defined_tests() -> set[str]:
    found = set()
    for path in (ROOT / "tests").glob("test_*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        found |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    return found


def test_each_equation_is_mapped() -> None:
    for e in EQUATIONS:
        assert re.search(
            rf"(\| |; |, |\n){re.escape(e.number)} (\| )?{re.escape(e.text)}", PAPERS
        ), f"{e.paper} {e.number}: {e.text}"
        if e.given:
            assert f"{e.text} — given: {e.given}" in PAPERS
    for i in range(1, 10):
        assert f"∇{i}" in PAPERS and f"Δ{i}" in PAPERS
    for i in range(1, 6):
        assert f"| D{i} |" in PAPERS


def test_each_named_test_exists() -> None:
    named = set(re.findall(r"`(test_\w+)`", PAPERS))
    assert len(named) > 40
    assert named <= defined_tests(), named - defined_tests()


def test_each_example_is_mapped() -> None:
    examples = {t for t in defined_tests() if re.match(r"test_(gl95|glt97|gk98|qw91)_", t)}
    assert all(f"`{t}`" in PAPERS for t in examples), [t for t in examples if t not in PAPERS]


def test_each_named_function_exists() -> None:
    named = set(re.findall(r"`((?:al|[a-z]+\d\d|[a-z_]+)\.\w+(?:\.\w+)*)`", PAPERS))
    named -= {n for n in named if n.startswith(("viewkeeper.", "test_"))}
    assert len(named) > 25
    for name in named:
        head, *rest = name.split(".")
        module = "viewkeeper.algebra" if head == "al" else f"viewkeeper.algebra.changes.{head}"
        found: object = importlib.import_module(module)
        if rest[:1] == ["cost"] and len(rest) > 1:  # the module, which its function hides
            found, rest = importlib.import_module("viewkeeper.algebra.cost"), rest[1:]
        for part in rest:
            assert hasattr(found, part), name
            found = getattr(found, part)
