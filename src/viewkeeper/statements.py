"""The statements about materialized views that ``Keeper.sql`` reads; all others are Spark's."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from sqlglot import TokenType, tokenize
from sqlglot.errors import SqlglotError

from viewkeeper.errors import NotationError
from viewkeeper.records import InvalidOptionError


@dataclass(frozen=True)
class Statement:
    """A statement about a materialized view.

    ``verb`` is "create", "refresh", "drop", "explain" or "show". ``query`` is the SELECT after AS.
    """

    verb: str
    name: str | None = None
    query: str | None = None
    replace: bool = False
    if_exists: bool = False
    if_not_exists: bool = False
    strategy: str | None = None
    properties: dict[str, str] = field(default_factory=dict)

    @property
    def options(self) -> dict[str, str]:
        """The options of ``create_view`` that the statement gives.

        >>> Statement("create", "v", properties={"viewkeeper.refresh": "FULL"}).options
        {'refresh': 'full'}
        >>> Statement("create", "v", properties={"x": "1"}).options
        Traceback (most recent call last):
        viewkeeper.records.InvalidOptionError: [INVALID_OPTION] a view has no property 'x'
        Use 'refresh', 'maintain'.
        """
        found = {}
        for key, value in self.properties.items():
            name = key.removeprefix("viewkeeper.")
            if name not in (*_OPTIONS, "comment"):
                raise InvalidOptionError(
                    f"a view has no property {key!r}", hint=f"Use {', '.join(map(repr, _OPTIONS))}."
                )
            found[name] = value if name == "comment" else value.lower()
        return found


def in_parentheses(query: str) -> str:
    """A query as a table of another one: without semicolons and comments at its end.

    >>> in_parentheses("SELECT ';' AS a; -- done")
    "(SELECT ';' AS a)"
    >>> in_parentheses("SELECT 1 AS a -- one")
    '(SELECT 1 AS a)'
    """
    try:
        tokens = tokenize(_BEFORE + query, read="spark")[1:]
    except SqlglotError:
        tokens = []  # Spark will say what is wrong
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    if not tokens:
        return f"({query}\n)"
    return f"({query[: tokens[-1].end + 1 - len(_BEFORE)]})"


def changes_catalog(text: str) -> bool:
    """Whether one of Spark's statements may change what the catalog holds.

    >>> changes_catalog("-- a view\\nCREATE VIEW v AS SELECT 1"), changes_catalog("SELECT 1")
    (True, False)
    """
    return re.search(r"(?i)\b(create|replace|alter|drop|comment|undrop)\b", text) is not None


def read_statement(text: str) -> Statement | None:
    """The statement, or None if it is not about materialized views.

    >>> read_statement("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1 AS a").name
    'v'
    >>> read_statement("REFRESH MATERIALIZED VIEW s.v").name
    's.v'
    >>> read_statement("SELECT 1") is None
    True
    """
    if "MATERIALIZED" not in text.upper():
        return None
    try:
        # sqlglot swallows what follows SHOW or EXPLAIN at the start of a text
        tokens = tokenize(_BEFORE + text, read="spark")[1:]
    except SqlglotError:
        return None  # Spark will say what is wrong
    return _Reader(_BEFORE + text, tokens).statement()


_BEFORE = "SELECT "
_OPTIONS = ("refresh", "maintain")
_HINTS = {
    "create": "CREATE [OR REPLACE] MATERIALIZED VIEW [IF NOT EXISTS] name [(column, …)]"
    " [COMMENT '…'] [TBLPROPERTIES ('refresh' = '…', 'maintain' = '…')] AS query",
    "refresh": "REFRESH MATERIALIZED VIEW [name] [FULL | INCREMENTAL]",
    "drop": "DROP MATERIALIZED VIEW [IF EXISTS] name",
    "explain": "EXPLAIN MATERIALIZED VIEW name, EXPLAIN CREATE MATERIALIZED VIEW name AS query",
    "show": "SHOW MATERIALIZED VIEWS",
}


class _Reader:
    def __init__(self, text: str, tokens: list[Any]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = 0
        self.verb = self.word.lower()

    def statement(self) -> Statement | None:
        if self.take("EXPLAIN"):
            if self.take("CREATE"):
                self.take("OR"), self.take("REPLACE")
                return self.create("explain") if self.view() else None
            if not self.view():
                return None
            return self.ended(Statement("explain", self.name()))
        if self.take("SHOW"):
            found = self.take("MATERIALIZED") and self.take("VIEWS")
            return self.ended(Statement("show")) if found else None
        if self.take("CREATE"):
            replace = bool(self.take("OR") and self.take("REPLACE"))
            return self.create("create", replace) if self.view() else None
        if self.take("REFRESH") and self.view():
            name = None if self.done or self.word in ("FULL", "INCREMENTAL") else self.name()
            strategy = self.word.lower() if self.word in ("FULL", "INCREMENTAL") else None
            self.at += bool(strategy)
            return self.ended(Statement("refresh", name, strategy=strategy))
        if self.take("DROP") and self.view():
            if_exists = bool(self.take("IF") and self.take("EXISTS"))
            return self.ended(Statement("drop", self.name(), if_exists=if_exists))
        return None

    def create(self, verb: str, replace: bool = False) -> Statement:
        missing = bool(self.take("IF") and self.take("NOT") and self.take("EXISTS"))
        name = self.name()
        columns = self.columns() if self.word == "(" else ""
        properties: dict[str, str] = {}
        while not self.done and self.word != "AS":
            if self.take("COMMENT"):
                properties["comment"] = self.string()
            elif self.take("TBLPROPERTIES"):
                properties |= self.pairs()
            else:
                raise self.error("expected AS and a query, COMMENT or TBLPROPERTIES")
        if self.done:
            raise self.error("expected AS and a query")
        start = self.tokens[self.at].end + 1
        query = self.text[start:].strip().rstrip(";").strip()
        if not query:
            raise self.error("expected a query after AS")
        if columns:
            query = f"SELECT * FROM {in_parentheses(query)} AS named({columns})"
        return Statement(verb, name, query, replace, if_not_exists=missing, properties=properties)

    def columns(self) -> str:
        """The names for the query's columns."""
        self.expect("(")
        found = [self.column()]
        while self.take(","):
            found.append(self.column())
        self.expect(")")
        return ", ".join(found)

    def column(self) -> str:
        if self.done or self.tokens[self.at].token_type in (TokenType.STRING, TokenType.R_PAREN):
            raise self.error("expected a column's name")
        self.at += 1
        token = self.tokens[self.at - 1]
        return self.text[token.start : token.end + 1]

    @property
    def done(self) -> bool:
        return self.at >= len(self.tokens) or self.tokens[self.at].token_type == TokenType.SEMICOLON

    @property
    def word(self) -> str:
        return "" if self.done else self.tokens[self.at].text.upper()

    def take(self, word: str) -> bool:
        found = self.word == word and self.tokens[self.at].token_type != TokenType.STRING
        self.at += found
        return found

    def view(self) -> bool:
        return self.take("MATERIALIZED") and self.take("VIEW")

    def name(self) -> str:
        """A name of one to three parts, as it stands in the text."""
        first = self.at
        while True:
            if self.done or self.tokens[self.at].token_type == TokenType.STRING:
                raise self.error("expected a view's name")
            self.at += 1
            if self.done or self.tokens[self.at].token_type != TokenType.DOT:
                break
            self.at += 1
        return self.text[self.tokens[first].start : self.tokens[self.at - 1].end + 1]

    def string(self) -> str:
        if self.done or self.tokens[self.at].token_type != TokenType.STRING:
            raise self.error("expected a string")
        found = self.tokens[self.at]
        text = str(found.text)
        self.at += 1
        while not self.done and self.tokens[self.at].start == found.end + 1:
            found = self.tokens[self.at]
            if found.token_type != TokenType.STRING:
                break
            text += "'" + found.text  # 'it''s'
            self.at += 1
        return text

    def pairs(self) -> dict[str, str]:
        """Properties: keys and values may be strings or words, as Spark reads them."""
        found: dict[str, str] = {}
        self.expect("(")
        while True:
            key = self.key()
            self.take("=")
            if self.done or self.word in (",", ")"):
                raise self.error("expected a value")
            self.at += 1
            found[key] = str(self.tokens[self.at - 1].text)
            if not self.take(","):
                break
        self.expect(")")
        return found

    def key(self) -> str:
        """The name of a property, in quotes or not."""
        if self.done or self.word in (",", ")", "="):
            raise self.error("expected a property")
        parts = [self.tokens[self.at].text]
        self.at += 1
        while self.take("."):
            parts.append("" if self.done else self.tokens[self.at].text)
            self.at += not self.done
        return ".".join(parts).lower()

    def expect(self, word: str) -> None:
        if not self.take(word):
            raise self.error(f"expected {word!r}")

    def ended(self, statement: Statement) -> Statement:
        if not self.done:
            raise self.error("the statement ends before the text does")
        return statement

    def error(self, what: str) -> NotationError:
        if self.done:
            span = (len(self.text), len(self.text) + 1)
        else:
            span = (self.tokens[self.at].start, self.tokens[self.at].end + 1)
        shift = len(_BEFORE)
        return NotationError(
            what,
            text=self.text[shift:],
            span=(span[0] - shift, span[1] - shift),
            hint=_HINTS[self.verb],
        )
