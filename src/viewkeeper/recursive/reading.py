"""Reads the text of an incremental evaluation system.

The text is SQL, each statement a SELECT that ends with ``;``, and lines of the form ``-- WORD …``
that say what the statement is for (all else after ``--`` is comment):

    -- SYSTEM name: what it keeps
    -- NODES Start, End                                  columns that hold a node
    -- INPUT G (Start NODE, End NODE): what it holds
    -- TABLE TC (Start NODE, End NODE): stored between updates
    -- OUTPUT name: a SELECT over the stored tables
    -- SETTING share = 1: a number that queries name as :share
    -- ON INSERT (a NODE, b NODE): the program for one row; also ON DELETE, ON BATCH, ON BUILD
    -- STEP DELTA: a SELECT, computed here
    -- VIEW KEPT: a SELECT, computed where it is used
    -- DELETE FROM TC: a SELECT of rows that leave the table when the program is done
    -- INSERT INTO TC: a SELECT of rows that enter it
    -- IF NOT EMPTY(X): what follows up to END runs only if X has rows
    -- REPEAT UNTIL EMPTY(X) AT MOST 50: what follows up to END runs as long as X has rows
    -- END
    -- FAIL CHECK UNLESS EMPTY(X) SHOW Y: the change is refused
    -- RECOMPUTE UNLESS EMPTY(X): the stored tables are built anew
    -- INCLUDE file.sql
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from viewkeeper.recursive.errors import ProgramError
from viewkeeper.recursive.model import (
    EVENTS,
    NODE,
    Change,
    Column,
    Event,
    Fail,
    Item,
    Output,
    Program,
    Recompute,
    Relation,
    Repeat,
    Step,
    System,
    When,
)
from viewkeeper.recursive.validation import validate

DIALECT = "spark"  # in which the texts are written

_NAME = r"([A-Za-z_]\w*)"
_COLUMNS = r"\(([^()]*(?:\([^()]*\)[^()]*)*)\)"
_REST = r"(?:\s*:\s*(.*))?"
_FORMS = {
    word: re.compile(rf"-- {word}{rest}\s*$")
    for word, rest in {
        "SYSTEM": rf"\s+{_NAME}{_REST}",
        "NODES": r"\s+(\w+(?:\s*,\s*\w+)*)",
        "INPUT": rf"\s+{_NAME}\s*{_COLUMNS}{_REST}",
        "TABLE": rf"\s+{_NAME}\s*{_COLUMNS}{_REST}",
        "OUTPUT": rf"\s+{_NAME}{_REST}",
        "SETTING": rf"\s+{_NAME}\s*=\s*([0-9.]+){_REST}",
        "ON": rf"\s+({'|'.join(EVENTS)})(?:\s*{_COLUMNS})?{_REST}",
        "STEP": rf"\s+{_NAME}{_REST}",
        "VIEW": rf"\s+{_NAME}{_REST}",
        "DELETE": rf"\s+FROM\s+{_NAME}{_REST}",
        "INSERT": rf"\s+INTO\s+{_NAME}{_REST}",
        "IF": rf"\s+NOT\s+EMPTY\({_NAME}\){_REST}",
        "REPEAT": rf"\s+UNTIL\s+EMPTY\({_NAME}\)(?:\s+AT\s+MOST\s+(\d+))?{_REST}",
        "END": r"",
        "FAIL": rf"\s+{_NAME}\s+UNLESS\s+EMPTY\({_NAME}\)(?:\s+SHOW\s+{_NAME})?{_REST}",
        "RECOMPUTE": rf"\s+UNLESS\s+EMPTY\({_NAME}\){_REST}",
        "INCLUDE": r"\s+([\w.]+)",
    }.items()
}
_WORD = re.compile(r"-- ([A-Z]+)\b")
_WITH_QUERY = ("OUTPUT", "STEP", "VIEW", "DELETE", "INSERT")


@dataclass(frozen=True)
class _Line:
    """A line with a word, and the SQL below it."""

    word: str
    args: tuple[str | None, ...]
    sql: str
    line: int


@dataclass
class _Block:
    """A program, or a block inside one, while it is read."""

    opened: _Line
    items: list[Item] = field(default_factory=list)


def read_system(text: str, include: Callable[[str], str] | None = None) -> System:
    """An incremental evaluation system from its text, checked.

    Parameters
    ----------
    text : str
        The text; the module's description gives its form.
    include : callable, optional
        Gives the text of an included file by its name.

    Returns
    -------
    System

    Raises
    ------
    ProgramError
        If the text is malformed, or a query names what is not there.

    Examples
    --------
    >>> system = read_system('''
    ... -- SYSTEM count: how many rows R has
    ... -- INPUT R (x INT)
    ... -- TABLE N (n BIGINT)
    ... -- OUTPUT n
    ... SELECT COALESCE(MAX(n), 0) AS n FROM N;
    ... -- ON INSERT (x INT)
    ... -- STEP OLD: the number so far
    ... SELECT COALESCE(MAX(n), 0) AS n FROM N;
    ... -- DELETE FROM N
    ... SELECT n FROM OLD;
    ... -- INSERT INTO N
    ... SELECT n + 1 AS n FROM OLD;
    ... ''')
    >>> [item.name for item in system.programs["INSERT"].items()]
    ['OLD', 'N_GONE', 'N_COME']
    """
    reader = _Reader()
    for line in _lines(text, include):
        reader.take(line)
    system = reader.done()
    validate(system)
    return system


def _lines(text: str, include: Callable[[str], str] | None) -> list[_Line]:
    """The lines with a word, each with the SQL that follows it."""
    found: list[_Line] = []
    sql: list[str] = []

    def close(number: int) -> None:
        body = "\n".join(sql).strip()
        sql.clear()
        if body and not found:
            raise ProgramError(
                "a query that no line introduces", hint="Write -- STEP NAME above it.", line=number
            )
        if not found:
            return
        last = found[-1]
        if body and (last.sql or last.word not in _WITH_QUERY):
            raise ProgramError(
                f"a query that no line introduces, after {last.word}",
                hint="Write -- STEP NAME above each query.",
                line=number,
            )
        if body:
            found[-1] = _Line(last.word, last.args, _select(body, last), last.line)

    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip().startswith("--"):
            head, semicolon, tail = _cut("\n".join([*sql, ""]), line)
            sql.append(head)
            if semicolon:
                close(number)
                if tail.strip() and not tail.strip().startswith("--"):
                    raise ProgramError(
                        "text after ';'", hint="One statement to a line.", line=number
                    )
            continue
        word = _WORD.match(line.strip())
        form = _FORMS.get(word[1]) if word else None
        if word is None or form is None:
            continue
        match = form.match(line.strip())
        if match is None:
            raise ProgramError(
                f"{line.strip()!r} is not of the form that {word[1]} has",
                hint="The module viewkeeper.recursive.reading gives the forms.",
                line=number,
            )
        close(number)
        if word[1] == "INCLUDE":
            if include is None:
                raise ProgramError("nothing can be included here", hint="Put it here.", line=number)
            found += _lines(include(match[1]), include)
        else:
            found.append(_Line(word[1], match.groups(), "", number))
    close(len(text.splitlines()))
    return found


def _cut(before: str, line: str) -> tuple[str, str, str]:
    """A line up to its first semicolon that is in no text, name or comment; what follows it.

    >>> _cut("", "SELECT ';' AS x; -- a")
    ("SELECT ';' AS x", ';', ' -- a')
    """
    quote = ""
    at, text = 0, before + line
    while at < len(text):
        c = text[at]
        if quote:
            at += c == "\\" and quote != "`"
            quote = "" if c == quote else quote
        elif c in "'\"`":
            quote = c
        elif text.startswith("--", at):
            at = text.find("\n", at)
            if at < 0:
                break
        elif c == ";":
            return text[len(before) : at], ";", text[at + 1 :]
        at += 1
    return line, "", ""


def _select(sql: str, line: _Line) -> str:
    """The text, if it is one SELECT."""
    what = f"{line.word} {line.args[0]}"
    try:
        tree = parse_one(sql, read=DIALECT)
    except SqlglotError as e:
        raise ProgramError(
            f"the query of {what} cannot be read: {str(e).splitlines()[0]}",
            hint="Write one SELECT in Spark's SQL.",
            line=line.line,
        ) from e
    if not isinstance(tree, exp.Query):
        raise ProgramError(
            f"the statement of {what} is not a SELECT",
            hint="Programs only select; name what changes with -- INSERT INTO and -- DELETE FROM.",
            line=line.line,
        )
    return sql


def _columns(text: str | None, line: _Line) -> tuple[Column, ...]:
    parts = re.split(r",(?![^()]*\))", text or "")
    columns = []
    for part in parts:
        name, _, kind = part.strip().partition(" ")
        if not re.fullmatch(r"\w+", name) or not kind.strip():
            raise ProgramError(
                f"{part.strip()!r} is not a column: a name and a type",
                hint="For example: Start NODE, Nodes BIGINT.",
                line=line.line,
            )
        if kind.strip().upper() != NODE:
            _type(kind.strip(), line)
        columns.append(Column(name, kind.strip()))
    return tuple(columns)


def _type(kind: str, line: _Line) -> None:
    """Raises if a type is none."""
    try:
        exp.DataType.build(kind, dialect=DIALECT)
    except SqlglotError as e:
        raise ProgramError(
            f"{kind} is no type", hint="Write NODE, or a type of Spark's.", line=line.line
        ) from e


class _Reader:
    """Puts the lines together."""

    def __init__(self) -> None:
        self.name: str | None = None
        self.comment = ""
        self.nodes: set[str] = set()
        self.inputs: list[Relation] = []
        self.tables: list[Relation] = []
        self.outputs: list[Output] = []
        self.settings: dict[str, str] = {}
        self.programs: dict[Event, Program] = {}
        self.blocks: list[_Block] = []

    def take(self, line: _Line) -> None:
        """One line: a declaration, a part of the open program, or the start of the next one."""
        args = line.args
        if line.word in _WITH_QUERY and not line.sql:
            raise ProgramError(
                f"{line.word} {args[0]} has no query", hint="Write a SELECT below.", line=line.line
            )
        match line.word:
            case "SYSTEM":
                self.name, self.comment = args[0], args[1] or ""
            case "NODES":
                self.nodes |= {name.strip().lower() for name in (args[0] or "").split(",")}
            case "INPUT":
                self.inputs.append(Relation(str(args[0]), self.typed(line), args[2] or ""))
            case "TABLE":
                self.tables.append(Relation(str(args[0]), self.typed(line), args[2] or ""))
            case "OUTPUT":
                self.outputs.append(Output(str(args[0]), line.sql, args[1] or ""))
            case "SETTING":
                self.settings[str(args[0])] = str(args[1])
            case "ON":
                self.finish()
                self.blocks.append(_Block(line))
            case "END":
                self.end(line)
            case "IF" | "REPEAT":
                self.inside(line)
                self.blocks.append(_Block(line))
            case _:
                self.inside(line).items.append(_item(line))

    def typed(self, line: _Line) -> tuple[Column, ...]:
        """The columns that a line declares; those of type NODE are nodes everywhere."""
        columns = _columns(line.args[1], line)
        self.nodes |= {column.name.lower() for column in columns if column.type.upper() == NODE}
        return columns

    def inside(self, line: _Line) -> _Block:
        """The block that a line stands in."""
        if not self.blocks:
            raise ProgramError(
                f"{line.word} stands outside of a program",
                hint="Write -- ON INSERT, ON DELETE, ON BATCH or ON BUILD above it.",
                line=line.line,
            )
        return self.blocks[-1]

    def end(self, line: _Line) -> None:
        """Closes the innermost IF or REPEAT."""
        if len(self.blocks) < 2:
            raise ProgramError(
                "END closes nothing", hint="It belongs to IF or REPEAT.", line=line.line
            )
        block = self.blocks.pop()
        args, body = block.opened.args, tuple(block.items)
        done: Item
        if block.opened.word == "IF":
            done = When(str(args[0]), body, args[1] or "")
        else:
            done = Repeat(str(args[0]), body, int(args[1]) if args[1] else None, args[2] or "")
        self.blocks[-1].items.append(done)

    def finish(self) -> None:
        """Closes the open program."""
        if len(self.blocks) > 1:
            opened = self.blocks[-1].opened
            raise ProgramError(f"{opened.word} has no END", hint="Close it.", line=opened.line)
        if self.blocks:
            block = self.blocks.pop()
            event = next(e for e in EVENTS if e == block.opened.args[0])
            if event in self.programs:
                raise ProgramError(
                    f"two programs ON {event}", hint="Keep one.", line=block.opened.line
                )
            row = self.typed(block.opened) if block.opened.args[1] else ()
            comment = block.opened.args[2] or ""
            self.programs[event] = Program(event, tuple(block.items), row, comment)

    def done(self) -> System:
        """The whole."""
        self.finish()
        if self.name is None:
            raise ProgramError("the text has no name", hint="Begin with -- SYSTEM name.")
        return System(
            self.name,
            tuple(self.inputs),
            tuple(self.tables),
            tuple(self.outputs),
            self.programs,
            frozenset(self.nodes),
            self.comment,
            self.settings,
        )


def _item(line: _Line) -> Item:
    """A part of a program that is no block."""
    args = line.args
    name = str(args[0])
    match line.word:
        case "STEP" | "VIEW":
            return Step(name, line.sql, args[1] or "", lazy=line.word == "VIEW")
        case "DELETE" | "INSERT":
            kind = "DELETE" if line.word == "DELETE" else "INSERT"
            return Change("DELETE" if kind == "DELETE" else "INSERT", name, line.sql, args[1] or "")
        case "FAIL":
            return Fail(name, str(args[1]), str(args[2] or args[1]), args[3] or "")
        case _:
            return Recompute(name, args[1] or "")
