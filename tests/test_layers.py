"""Imports go one way, and the pure layers do not know Spark or Delta Lake."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parent.parent / "src"

# From the bottom up. A module may import from its own layer and from those above it in this list;
# a prefix stands for all modules below it that no longer prefix of the list names.
LAYERS = [
    "errors",
    "algebra.pool",
    "algebra.lexer",
    "algebra.scalars",
    "algebra.texts",
    "algebra.repeats",
    "algebra.orders",
    "algebra.scope",
    "algebra.scalar_text",
    "algebra.scalar_meaning",
    "algebra.fluent",
    "algebra.nodes",
    "algebra.walk",
    "algebra.meaning",
    "algebra.notation",
    "algebra.reading",
    "algebra.sql_scalars",
    "algebra.sql_names",
    "algebra.sql_selects",
    "algebra.sql",
    "algebra.changes.propagation",
    "algebra.changes.aggregates",
    "algebra.changes.gk98",
    "algebra.changes.gl95",
    "algebra.changes.glt97",
    "algebra.changes.qw91",
    "algebra.changes.change",
    "algebra.changes.signed",
    "algebra.changes.transactions",
    "algebra.changes.equations",
    "algebra.changes.equations_sets",
    "algebra.changes",
    "algebra.simplify",
    "algebra.cost",
    "algebra",
    "records",
    "graph",
    "statements",
    "recursive",
    "frontend",
    "plan",
    "compiled",
    "lake",
    "definitions",
    "closures",
    "engine",
    "explain",
    "advice",
    "intermediates",
    "advise",
    "explain_program",
    "home",
    "jars",
    "catalog",
    "entries",
    "session",
    "names",
    "views",
    "creating",
    "refreshing",
    "looking",
    "answers",
    "transactions",
    "keeper_core",
    "keeper_guarding",
    "keeper",
    ".",
    "cli_output",
    "cli_progress",
    "cli_quiet",
    "cli_verify",
    "doctor",
    "demo",
    "cli_status",
    "cli_active",
    "cli_commands",
    "cli_arguments",
    "cli",
]

# What a module may import inside a function, because text must know nodes and nodes their text.
LATE = {
    ("algebra.fluent", "algebra.nodes"),
    ("algebra.nodes", "algebra.notation"),
}
SPARK = ("pyspark", "py4j", "delta", "deltalake")
NO_SPARK = ("errors", "algebra", "plan", "records", "graph", "recursive", "statements")


def modules() -> dict[str, Path]:
    """Each module's name below ``viewkeeper`` and its file; ``.`` is the package itself."""
    found = {}
    for path in sorted((SOURCE / "viewkeeper").rglob("*.py")):
        parts = path.relative_to(SOURCE / "viewkeeper").with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name or "."] = path
    return found


MODULES = modules()


def layer(module: str) -> int | None:
    """The place of a module's longest prefix in LAYERS."""
    parts = module.split(".") if module != "." else ["."]
    for n in range(len(parts), 0, -1):
        prefix = ".".join(parts[:n]) or "."
        if prefix in LAYERS:
            return LAYERS.index(prefix)
    return None


def imports(path: Path) -> Iterator[tuple[str, bool]]:
    """What a file imports, and whether it does so when it is imported itself."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node, late in walk(tree, False):
        if isinstance(node, ast.Import):
            yield from ((alias.name, late) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            base = node.module or ""
            for alias in node.names:
                full = f"{base}.{alias.name}"
                is_module = full.removeprefix("viewkeeper.") in MODULES
                yield (full if is_module else base), late


def walk(node: ast.AST, late: bool) -> Iterator[tuple[ast.AST, bool]]:
    """All nodes; late are those inside functions. What only type checkers see is left out."""
    yield node, late
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        inside = isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
        yield from walk(child, late or inside)


def within(name: str) -> str | None:
    """A module of ours by its name below ``viewkeeper``; None for another's."""
    if name == "viewkeeper":
        return "."
    return name.removeprefix("viewkeeper.") if name.startswith("viewkeeper.") else None


@pytest.mark.parametrize("module", MODULES)
def test_imports_go_one_way(module: str) -> None:
    here = layer(module)
    assert here is not None, f"{module} has no layer: add it to LAYERS"
    for name, late in imports(MODULES[module]):
        other = within(name)
        if other is None or other == module:
            continue
        there = layer(other)
        assert there is not None, f"{module} imports {other}, which has no layer"
        if there > here:
            assert late and (module, other) in LATE, f"{module} imports {other}, which is above it"


@pytest.mark.parametrize("module", MODULES)
def test_the_pure_layers_do_not_know_spark(module: str) -> None:
    if module.split(".")[0] not in NO_SPARK:
        return
    known = [name for name, _ in imports(MODULES[module]) if name.split(".")[0] in SPARK]
    assert not known, f"{module} imports {known}"


def test_the_algebra_needs_the_standard_library_only() -> None:
    """sqlglot, for SQL text, is the one exception, and it is imported where it is used."""
    allowed = {"__future__", "viewkeeper", "sqlglot"}
    import sys

    for module, path in MODULES.items():
        if module.split(".")[0] not in ("algebra", "errors"):
            continue
        for name, _ in imports(path):
            top = name.split(".")[0]
            assert top in allowed or top in sys.stdlib_module_names, f"{module} imports {name}"


def test_late_imports_are_used() -> None:
    """An exception that nothing needs any more is removed."""
    used = set()
    for module, path in MODULES.items():
        for name, late in imports(path):
            other = within(name)
            if late and other:
                used.add((module, other))
    assert used >= LATE
