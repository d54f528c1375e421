"""Scenarios: plain text files of tables, views, changes and refreshes.

A scenario is lines of these forms; indented lines go on with the one above, ``#`` begins a comment:

    table r (a INT, b STRING) [feed off] [partitioned by (a)] [deletion vectors] [column mapping]
      1, 'x'                            one row per line, as in VALUES
    view v [incremental | full]: SELECT a FROM r      a name that is there already is replaced
    change: DELETE FROM r WHERE a = 1                 any statements, one per line ending in ;
    refresh [auto | full | incremental]               incremental if nothing is said
    expect v +1 -2 [incremental | full | none]        what the last refresh did to v
    error CODE: REFRESH MATERIALIZED VIEW v           it must fail so and change no view
    drop v
    split                               also keep copies of all views, refreshed once, at the end
    slow                                not in the daily tests

After each refresh every view equals its query as a bag, the columns have the query's types, and the
report's ``inserted`` and ``deleted`` are the sizes of the least change.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "scenarios"
Bag = Counter[tuple[Any, ...]]


class ScenarioError(Exception):
    """A line that cannot be read, or an expectation that was not met."""


@dataclass(frozen=True)
class Line:
    """One step: its first word, the words before the colon or the end, the text after the colon."""

    number: int
    verb: str
    words: str
    text: str
    rows: tuple[str, ...] = ()


@dataclass
class Scenario:
    """A named list of steps."""

    name: str
    lines: list[Line]

    @property
    def split(self) -> bool:
        return any(line.verb == "split" for line in self.lines)

    @property
    def slow(self) -> bool:
        return any(line.verb == "slow" for line in self.lines)


_VERBS = ("table", "view", "change", "refresh", "expect", "error", "drop", "split", "slow")
_COLON = ("view", "change", "error")


def read_scenario(path: Path) -> Scenario:
    """The steps of a file."""
    return parse(path.stem, path.read_text(encoding="utf-8"))


def parse(name: str, text: str) -> Scenario:
    """The steps of a text.

    >>> [(s.verb, s.words, s.rows) for s in parse("x", "table r (a INT)\\n  1\\nrefresh").lines]
    [('table', 'r (a INT)', ('1',)), ('refresh', '', ())]
    """
    lines: list[Line] = []
    for number, raw in enumerate(text.splitlines(), 1):
        plain = re.sub(r"(^|\s)#.*$", "", raw).rstrip()
        if not plain:
            continue
        if plain[0].isspace():
            if not lines:
                raise ScenarioError(f"{name}, line {number}: nothing to go on with")
            last = lines.pop()
            text_ = f"{last.text}\n{plain.strip()}".strip()
            rows = (*last.rows, plain.strip())
            lines.append(Line(last.number, last.verb, last.words, text_, rows))
            continue
        verb = re.match(r"\w+", plain)
        if verb is None or verb[0] not in _VERBS:
            raise ScenarioError(f"{name}, line {number}: expected one of {', '.join(_VERBS)}")
        rest = plain[len(verb[0]) :]
        words, _, after = rest.partition(":") if verb[0] in _COLON else (rest, "", "")
        lines.append(Line(number, verb[0], words.strip(), after.strip()))
    return Scenario(name, lines)


def statements(text: str) -> list[str]:
    """The statements of a change: each ends with ; at the end of a line."""
    return [s.strip() for s in re.split(r";\s*(?:\n|$)", text) if s.strip()]


def scenarios() -> list[Path]:
    """All files, in order."""
    return sorted(HERE.glob("*.txt"))


# ── values and bags ──────────────────────────────────────────────────────────────────────────────


def plain(value: Any) -> Any:
    """A value to compare and hash: NaN is NaN, 0.0 is -0.0, nested values are tuples."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, dict):
        return frozenset((plain(k), plain(v)) for k, v in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(plain(v) for v in value)
    return value


def rounded(value: Any) -> Any:
    """Floating point numbers to ten digits: Spark adds them up in no certain order."""
    if isinstance(value, float):
        return float(f"{value:.10g}")
    return tuple(rounded(v) for v in value) if isinstance(value, tuple) else value


def bag(rows: Iterable[Any]) -> Bag:
    """Collected rows as a bag."""
    return Counter(plain(tuple(row)) for row in rows)


def alike(a: Bag, b: Bag) -> bool:
    """Are two bags equal, up to the last digits of floating point numbers?"""
    return a == b or _all_rounded(a) == _all_rounded(b)


def _all_rounded(rows: Bag) -> Bag:
    return Counter(rounded(row) for row in rows.elements())


def table_statement(words: str) -> tuple[str, str]:
    """CREATE TABLE and its properties, from the words of a scenario.

    >>> table_statement("r (a INT) feed off partitioned by (a)")[0]
    'CREATE TABLE r (a INT) USING delta PARTITIONED BY (a)'
    >>> table_statement("r (a INT)")[1]
    "'delta.enableChangeDataFeed'='true'"
    """
    properties = {"delta.enableChangeDataFeed": "true"}
    for mark, key, value in (
        ("feed off", "delta.enableChangeDataFeed", "false"),
        ("deletion vectors", "delta.enableDeletionVectors", "true"),
        ("column mapping", "delta.columnMapping.mode", "name"),
        ("type widening", "delta.enableTypeWidening", "true"),
    ):
        if mark in words:
            words = words.replace(mark, "")
            properties[key] = value
    words, _, by = words.partition("partitioned by")
    create = f"CREATE TABLE {words.strip()} USING delta"
    if by:
        create += f" PARTITIONED BY {by.strip()}"
    return create, ", ".join(f"'{k}'='{v}'" for k, v in properties.items())
