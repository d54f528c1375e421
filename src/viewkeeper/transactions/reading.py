"""INSERT, DELETE, UPDATE and MERGE, split into the parts that Spark is to evaluate.

The text is cut between tokens; each part stays as the user wrote it. Where there is a
session Spark's own parser reads the whole too, so what is found is known to be well formed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from pyspark.errors import ParseException
from pyspark.sql import SparkSession
from sqlglot import TokenType, tokenize
from sqlglot.errors import SqlglotError

from viewkeeper.transactions.errors import StatementError

_HINT = "Use INSERT INTO, DELETE FROM, UPDATE … SET or MERGE INTO."
_QUERY = ("SELECT", "VALUES", "WITH", "TABLE", "FROM", "(")  # what a query begins with


@dataclass(frozen=True)
class Insert:
    """INSERT INTO table [(columns)] query."""

    table: str
    query: str
    columns: tuple[str, ...] | None = None
    by_name: bool = False


@dataclass(frozen=True)
class Delete:
    """DELETE FROM table [alias] [WHERE condition]."""

    table: str
    where: str | None = None
    alias: str | None = None


@dataclass(frozen=True)
class Update:
    """UPDATE table [alias] SET column = expression, … [WHERE condition]."""

    table: str
    values: tuple[tuple[str, str], ...]
    where: str | None = None
    alias: str | None = None


@dataclass(frozen=True)
class Clause:
    """WHEN … THEN …: ``kind`` is "matched", "missing" (no target row) or "alone" (no source row);
    ``values`` None stands for the star."""

    kind: str
    action: str  # "update", "delete" or "insert"
    condition: str | None = None
    values: tuple[tuple[str, str], ...] | None = None


@dataclass(frozen=True)
class Merge:
    """MERGE INTO table USING source ON condition WHEN …."""

    table: str
    source: str  # what stands after FROM
    on: str
    clauses: tuple[Clause, ...] = field(default=())
    alias: str | None = None
    source_alias: str | None = None


Statement = Insert | Delete | Update | Merge
S = TypeVar("S", bound=Statement)


def read_change(text: str, spark: SparkSession | None = None) -> Statement:
    """The statement of a text; with a session Spark's parser must be able to read it too.

    >>> read_change("DELETE FROM s.t WHERE a > 1 AND b = 'WHERE'")
    Delete(table='s.t', where="a > 1 AND b = 'WHERE'", alias=None)
    >>> read_change("UPDATE t SET a = a + 1, b = f(1, 2) WHERE c").values
    (('a', 'a + 1'), ('b', 'f(1, 2)'))
    >>> read_change("INSERT INTO t (a, b) VALUES (1, 2), (3, 4)")
    Insert(table='t', query='VALUES (1, 2), (3, 4)', columns=('a', 'b'), by_name=False)
    """
    try:
        tokens = tokenize(text, read="spark")
    except SqlglotError as error:
        raise StatementError("the statement cannot be read", text=text, hint=_HINT) from error
    found = _Reader(text, tokens).statement()
    if spark is not None:
        _check_syntax(spark, text)
    return found


def _check_syntax(spark: SparkSession, text: str) -> None:
    session: Any = spark
    try:
        session._jsparkSession.sessionState().sqlParser().parsePlan(text)
    except ParseException as error:
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        raise StatementError(first, text=text, hint=_HINT) from error


def shortened(text: str, table: Sequence[str], alias: str) -> str:
    """An expression with the alias of a table in the place of its name of several parts.

    >>> shortened("c.d.t.a = t.b AND `D`.T.c > d.t.t AND x.d.t.a = 'd.t.c'", ["c", "d", "t"], "t")
    "t.a = t.b AND t.c > t.t AND x.d.t.a = 'd.t.c'"
    """
    tokens = tokenize(text, read="spark")
    own = [part.lower() for part in table]
    pieces, done, at = [], 0, 0
    while at < len(tokens):
        last = at
        while last + 2 < len(tokens) and tokens[last + 1].token_type == TokenType.DOT:
            last += 2
        parts = [_plain(text[t.start : t.end + 1]).lower() for t in tokens[at : last + 1 : 2]]
        sizes = range(min(len(own), len(parts) - 1), 1, -1)
        size = next((n for n in sizes if parts[:n] == own[-n:]), 0)
        if size:
            pieces += [text[done : tokens[at].start], alias]
            done = tokens[at + 2 * (size - 1)].end + 1
        at = last + 1
    return "".join([*pieces, text[done:]])


def parts_of(name: str) -> list[str]:
    """The parts of a name; none of what is not a name.

    >>> parts_of("a.`b``.c`"), parts_of("(SELECT 1)")
    (['a', 'b`.c'], [])
    """
    tokens = tokenize(name, read="spark")
    if len(tokens) % 2 == 0 or any(t.token_type != TokenType.DOT for t in tokens[1::2]):
        return []
    return [_plain(name[t.start : t.end + 1]) for t in tokens[::2]]


def with_defaults(query: str, defaults: Sequence[str]) -> str:
    """VALUES with DEFAULT written out; any other query as it is.

    >>> with_defaults("VALUES (1, DEFAULT), (default, f(2, 3))", ["0", "'none'"])
    "VALUES (1, 'none'), (0, f(2, 3))"
    >>> with_defaults("SELECT default FROM t", ["0"])
    'SELECT default FROM t'
    """
    reader = _Reader(query, tokenize(query, read="spark"))
    if not reader.take("VALUES"):
        return query
    pieces, done, depth, place = [], 0, 0, 0
    while not reader.done:
        word = reader.word
        alone = reader.word_at(reader.at - 1) in ("(", ",") and reader.word_at(reader.at + 1) in (
            ")",
            ",",
        )
        if word == "DEFAULT" and depth == 1 and alone and place < len(defaults):
            token = reader.tokens[reader.at]
            pieces += [query[done : token.start], defaults[place]]
            done = token.end + 1
        depth += (word in ("(", "[")) - (word in (")", "]"))
        place = 0 if not depth else place + (word == "," and depth == 1)
        reader.at += 1
    return "".join([*pieces, query[done:]])


class _Reader:
    def __init__(self, text: str, tokens: list[Any]) -> None:
        self.text = text
        while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
            tokens = tokens[:-1]
        self.tokens = tokens
        self.at = 0

    def statement(self) -> Statement:
        if self.word == "WITH":
            before = self.until(("INSERT",))
            self.expect("INSERT")
            found = self.insert()
            return replace(found, query=f"{before} {found.query}")
        if self.take("INSERT"):
            return self.insert()
        if self.take("DELETE"):
            self.take("FROM")
            table, alias = self.name(), self.alias("WHERE")
            return self.ended(Delete(table, self.where(), alias))
        if self.take("UPDATE"):
            table, alias = self.name(), self.alias("SET")
            self.expect("SET")
            values = self.assignments(("WHERE",))
            return self.ended(Update(table, values, self.where(), alias))
        if self.take("MERGE"):
            return self.merge()
        raise self.error("this statement cannot be part of a transaction")

    def insert(self) -> Insert:
        if self.take("OVERWRITE") or self.take("REPLACE"):
            raise self.error("INSERT OVERWRITE cannot be part of a transaction")
        self.expect("INTO")
        self.take("TABLE")
        table = self.name()
        if self.word == "PARTITION" or (self.take("REPLACE")):
            raise self.error("this form of INSERT cannot be part of a transaction")
        if self.take("BY"):
            self.expect("NAME")
            return Insert(table, self.rest(), by_name=True)
        columns = None
        if self.word == "(" and not self._starts_query(self.at + 1):
            columns = self.names()
        return Insert(table, self.rest(), columns)

    def merge(self) -> Merge:
        if self.take("WITH"):
            raise self.error("MERGE WITH SCHEMA EVOLUTION cannot be part of a transaction")
        self.expect("INTO")
        table, alias = self.name(), self.alias("USING")
        self.expect("USING")
        source = self.until(("ON", "AS"), stop_at_word=True)
        source_alias = self.alias("ON")
        self.expect("ON")
        on = self.until(("WHEN",))
        clauses = []
        while self.take("WHEN"):
            clauses.append(self.clause())
        return self.ended(Merge(table, source, on, tuple(clauses), alias, source_alias))

    def kind(self) -> str:
        """MATCHED, NOT MATCHED [BY TARGET] or NOT MATCHED BY SOURCE."""
        kind = "missing" if self.take("NOT") else "matched"
        self.expect("MATCHED")
        if kind == "missing" and self.take("BY"):
            if self.take("SOURCE"):
                return "alone"
            if not self.take("TARGET"):
                raise self.error("expected SOURCE or TARGET")
        return kind

    def clause(self) -> Clause:
        kind = self.kind()
        condition = self.until(("THEN",)) if self.take("AND") else None
        self.expect("THEN")
        if self.take("DELETE"):
            return Clause(kind, "delete", condition)
        if self.take("UPDATE"):
            self.expect("SET")
            if self.take("*"):
                return Clause(kind, "update", condition)
            return Clause(kind, "update", condition, self.assignments(("WHEN",)))
        self.expect("INSERT")
        if self.take("*"):
            return Clause(kind, "insert", condition)
        columns = self.names()
        self.expect("VALUES")
        self.expect("(")
        values = [self.until((",", ")"))]
        while self.take(","):
            values.append(self.until((",", ")")))
        self.expect(")")
        if len(values) != len(columns):
            raise self.error(f"{len(columns)} columns, but {len(values)} values")
        return Clause(kind, "insert", condition, tuple(zip(columns, values, strict=True)))

    # ── pieces ──

    @property
    def done(self) -> bool:
        return self.at >= len(self.tokens)

    @property
    def word(self) -> str:
        return self.word_at(self.at)

    def word_at(self, at: int) -> str:
        """A token in capitals; text in quotes is no word."""
        if at >= len(self.tokens):
            return ""
        token = self.tokens[at]
        quoted = token.token_type == TokenType.STRING or self.text[token.start] in "`\"'"
        return "" if quoted else str(token.text).upper()

    def take(self, word: str) -> bool:
        found = self.word == word
        self.at += found
        return found

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise self.error(f"expected {word}")

    def span(self, first: int, last: int) -> str:
        """The text of tokens, the last one not included."""
        return self.text[self.tokens[first].start : self.tokens[last - 1].end + 1]

    def until(self, words: tuple[str, ...], *, stop_at_word: bool = False) -> str:
        """The text up to one of some words outside brackets and CASE; with ``stop_at_word`` also
        up to the second of two words side by side, which is an alias."""
        first = self.at
        held: list[str] = []  # what is open: brackets and CASE
        while not self.done:
            word = "" if self.at > first and self.word_at(self.at - 1) == "." else self.word
            if not held and self.at > first and word in words:
                break
            if stop_at_word and not held and self.at > first and self._starts_alias():
                break
            if word in (")", "]"):
                while held[-1:] == ["CASE"]:  # a column of this name
                    held.pop()
                if not held:
                    break
                held.pop()
            elif word in ("(", "[", "CASE"):
                held.append(word)
            elif word == "END" and held[-1:] == ["CASE"]:
                held.pop()
            self.at += 1
        if self.at == first:
            raise self.error("something is missing here")
        return self.span(first, self.at)

    def _starts_query(self, at: int) -> bool:
        return self.word_at(at) in _QUERY and self.word_at(at + 1) not in (",", ")")

    def _starts_alias(self) -> bool:
        return self.word_at(self.at - 1) != "." and self.word not in (".", "(")

    def name(self) -> str:
        first = self.at
        while True:
            if self.done:
                raise self.error("expected the name of a table")
            self.at += 1
            if not self.take("."):
                break
        return self.span(first, self.at)

    def alias(self, before: str) -> str | None:
        if self.take("AS") or (not self.done and self.word != before):
            self.at += 1
            return self.span(self.at - 1, self.at)
        return None

    def names(self) -> tuple[str, ...]:
        """Names of columns in brackets."""
        self.expect("(")
        found = [_plain(self.name())]
        while self.take(","):
            found.append(_plain(self.name()))
        self.expect(")")
        return tuple(found)

    def assignments(self, ends: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
        found = []
        while True:
            column = _plain(self.name())
            self.expect("=")
            found.append((column, self.until((",", *ends))))
            if not self.take(","):
                return tuple(found)

    def where(self) -> str | None:
        return self.rest() if self.take("WHERE") else None

    def rest(self) -> str:
        if self.done:
            raise self.error("something is missing here")
        first, self.at = self.at, len(self.tokens)
        return self.span(first, self.at)

    def ended(self, found: S) -> S:
        if not self.done:
            raise self.error("the statement ends before the text does")
        return found

    def error(self, what: str) -> StatementError:
        if self.done:
            span = (len(self.text), len(self.text) + 1)
        else:
            span = (self.tokens[self.at].start, self.tokens[self.at].end + 1)
        return StatementError(what, text=self.text, span=span, hint=_HINT)


def unquoted(name: str) -> str:
    """A column as a user names it, with or without backquotes.

    >>> unquoted("`a ``b`"), unquoted("a.b")
    ('a `b', 'a.b')
    """
    quoted = len(name) > 2 and name[0] == name[-1] == "`"
    return name[1:-1].replace("``", "`") if quoted else name


def _plain(name: str) -> str:
    """A column's own name, without its table's and without backquotes.

    >>> _plain("t.`a``b`")
    'a`b'
    """
    last = ""
    quoted = False
    for c in name:
        quoted = quoted != (c == "`")
        last = "" if c == "." and not quoted else last + c
    last = last.strip()
    return last[1:-1].replace("``", "`") if last.startswith("`") else last
