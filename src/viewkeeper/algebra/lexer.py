"""Tokens of the two small languages of the algebra: scalar expressions and the papers' notation."""

from __future__ import annotations

import re
from typing import NamedTuple

from viewkeeper.errors import NotationError

GLYPHS = "σΠεΓ∇Δ∆±φ∅⊎∸×⋈⋉▷⟕⟖⟗"
_TOKEN = re.compile(
    rf"""
    (?P<space>\s+)
  | (?P<number>\d+(\.\d+)?([eE][+-]?\d+)?)
  | (?P<string>'(?:[^']|'')*')
  | (?P<quoted>`(?:[^`]|``)*`|"(?:[^"]|"")*")
  | (?P<place>\#\d+)
  | (?P<glyph>[{GLYPHS}])
  | (?P<name>(?![{GLYPHS}])[^\W\d][\w]*)
  | (?P<op><=>|<=|>=|<>|!=|:=|\|\||[-+*/%=<>()\[\]{{}},.;&|@])
    """,
    re.VERBOSE,
)


class Token(NamedTuple):
    """A piece of text: its kind, the text without quotes, and where it stands."""

    kind: str
    text: str
    start: int
    stop: int

    @property
    def word(self) -> str:
        """The text in lower case if it is a plain word, else the text of the operator."""
        return self.text.lower() if self.kind == "name" else self.text


END = "end"


def tokens(text: str) -> list[Token]:
    """The tokens of a text, with one of kind ``end`` after them.

    >>> [t.text for t in tokens("σ[a >= 1](ΔR)")]
    ['σ', '[', 'a', '>=', '1', ']', '(', 'Δ', 'R', ')', '']
    """
    found: list[Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise NotationError(
                f"{text[at]!r} is not a sign of this language",
                text=text,
                span=(at, at + 1),
                hint="Quote a name with unusual signs in backticks, a string in single quotes.",
            )
        kind = match.lastgroup or ""
        raw = match.group()
        if kind == "string" or kind == "quoted":
            quote = raw[0]
            raw = raw[1:-1].replace(quote * 2, quote)
        if kind != "space":
            found.append(Token(kind, raw, at, match.end()))
        at = match.end()
    found.append(Token(END, "", len(text), len(text)))
    return found


class Reader:
    """A cursor over the tokens of one text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokens(text)
        self.at = 0

    @property
    def now(self) -> Token:
        return self.tokens[self.at]

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.at + ahead, len(self.tokens) - 1)]

    def next(self) -> Token:
        token = self.now
        self.at = min(self.at + 1, len(self.tokens) - 1)
        return token

    def is_(self, *words: str) -> bool:
        """Is the next token one of these signs or words?"""
        return self.now.kind in ("name", "op", "glyph") and self.now.word in words

    def take(self, *words: str) -> Token | None:
        """The next token, taken, if it is one of these signs or words."""
        return self.next() if self.is_(*words) else None

    def expect(self, word: str, where: str) -> Token:
        token = self.take(word)
        if token is None:
            raise self.error(f"expected {word!r} {where}")
        return token

    def error(self, what: str, token: Token | None = None, hint: str = "") -> NotationError:
        token = token or self.now
        found = f", found {token.text!r}" if token.kind != END else ", found the end of the text"
        span = (token.start, max(token.stop, token.start + 1))
        return NotationError(
            what + found, text=self.text, span=span, hint=hint or "See docs/operators.md."
        )
