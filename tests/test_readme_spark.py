"""The README and the guide agree with the code: examples run, lists are complete."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from viewkeeper.errors import ViewKeeperError

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs" / "views.md").read_text(encoding="utf-8")
SOURCE = ROOT / "src" / "viewkeeper"
SPARK, ALGEBRA = re.findall(r"^```python\n(.*?)^```$", README, re.M | re.S)


@pytest.mark.spark
def test_the_example_runs(tmp_path: Path) -> None:
    command = [sys.executable, "-c", SPARK]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    assert "spending incremental 2 2 " in done.stdout and "big incremental 1 1 " in done.stdout
    assert len(SPARK.strip().splitlines()) <= 25


def test_the_algebra_runs_alone() -> None:
    exec(ALGEBRA, {})


def test_each_source_file_is_listed_once() -> None:
    listed = re.findall(r"^- `(\S+\.py)`: .+\.$", README, re.M)
    there = {p.relative_to(SOURCE).as_posix() for p in SOURCE.rglob("*.py")}
    assert sorted(listed) == sorted(there)


def test_each_link_leads_somewhere() -> None:
    for page in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]:
        for link in re.findall(r"\]\(([\w./-]+\.md|docs/\w+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


def test_each_error_of_the_keeper_is_in_the_guide() -> None:
    for name in (
        "keeper",
        "session",
        "cli_verify",
        "cli_active",
        "lake.errors",
        "frontend",
        "recursive",
    ):
        importlib.import_module(f"viewkeeper.{name}")
    classes = [ViewKeeperError]
    for c in classes:
        classes += c.__subclasses__()
    ours = {
        (c.code, c.__name__)
        for c in classes
        if c.__module__.startswith("viewkeeper.") and c.__module__ != "viewkeeper.errors"
    }
    assert set(re.findall(r"^\| `([A-Z_]+)` \| `(\w+)` \|", GUIDE, re.M)) == ours


def test_each_command_is_in_the_guide() -> None:
    from viewkeeper.cli_arguments import parser

    (commands,) = (a for a in parser()._actions if a.dest == "command")
    assert commands.choices is not None
    for name in commands.choices:
        assert re.search(rf"^\| `{name}\b", GUIDE, re.M), name


def test_each_decision_has_a_number_of_its_own() -> None:
    pages = sorted(p.name for p in (ROOT / "docs" / "decisions").glob("*.md"))
    for i, page in enumerate(pages, 1):
        assert page.startswith(f"{i:04d}-"), page
        first = (ROOT / "docs" / "decisions" / page).read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith(f"# {i:04d} "), page
