"""Reads the papers' notation, with plain words for those who have no glyphs on their keyboard.

    query   = "let" name ":=" query (";" name ":=" query)* "in" query | sum
    sum     = term (("⊎" | "+" | "∸" | "-") term)*
    term    = factor (("min" | "&" | "max" | "|") factor)*
    factor  = unit (("×" | "⋈[on]" | "⋉[on]" | "▷[on]" | "⟕[on]" | "⟖[on]" | "⟗[on]") unit)*
    unit    = σ[p](query) | Π[items](query) | Γ[keys; aggregates](query) | ε(query) | net(query)
            | ∅[names] | {(1, 'x'), …}[names] | ∇R | ΔR | ±R | R@old | R@new | R | (query)

Words: select, project, group, distinct, empty, times, join, semi, anti, left, right, full.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from viewkeeper.algebra.lexer import END, Reader, Token
from viewkeeper.algebra.nodes import (
    ADDED,
    REMOVED,
    SIGNED,
    Anti,
    Distinct,
    Empty,
    Full,
    GroupBy,
    Join,
    Left,
    Literal,
    Max,
    Min,
    Monus,
    Net,
    Plus,
    Product,
    Project,
    Query,
    Right,
    Select,
    Semi,
    Table,
)
from viewkeeper.algebra.scalar_text import aggregate, expression
from viewkeeper.algebra.scalars import Agg, Col, Const, Scalar
from viewkeeper.algebra.scope import Column, Scope, column_names, expect
from viewkeeper.errors import ArityError, NotationError, UnknownTableError, suggestion

_SUM = {"⊎": Plus, "+": Plus, "∸": Monus, "-": Monus}
_TERM = {"min": Min, "&": Min, "max": Max, "|": Max}
_JOIN = {"⋈": Join, "join": Join, "⋉": Semi, "semi": Semi, "▷": Anti, "anti": Anti}
_JOIN |= {"⟕": Left, "left": Left, "⟖": Right, "right": Right, "⟗": Full, "full": Full}
_STATES = {"∇": REMOVED, "Δ": ADDED, "∆": ADDED, "±": SIGNED}
_WORD = {"select": "σ", "project": "Π", "group": "Γ", "distinct": "ε", "empty": "∅", "φ": "∅"}


def parse(text: str, schemas: Mapping[str, Sequence[str]]) -> Query:
    """The query that a text in the papers' notation means.

    Parameters
    ----------
    text : str
        For example ``"ε(Π[a](σ[a > 1](R) ∸ S))"``.
    schemas : mapping of str to list of str
        The columns of each table.

    Examples
    --------
    >>> print(parse("distinct(project[a](select[a > 1](R) - S))", {"R": "ab", "S": "ab"}))
    ε(Π[a](σ[a > 1](R) ∸ S))
    """
    expect(text, str, "a query in the papers' notation")
    expect(schemas, Mapping, "the columns of the tables")
    reader = Reader(text)
    try:
        q = _Parser(reader, schemas).query()
    except RecursionError:
        raise NotationError("the query is nested too deeply", hint="Name parts with let.") from None
    if reader.now.kind != END:
        raise reader.error("the query ends before the text does")
    return q


class _Parser:
    def __init__(self, reader: Reader, schemas: Mapping[str, Sequence[str]]) -> None:
        self.reader = reader
        self.schemas = schemas
        self.names: dict[str, Query] = {}

    def query(self) -> Query:
        if self.reader.take("let"):
            while True:
                name = self.name("a name after let")
                self.reader.expect(":=", "after the name")
                self.names[name] = self.sum()
                if not self.reader.take(";"):
                    break
            self.reader.expect("in", "after the definitions of let")
        return self.sum()

    def sum(self) -> Query:
        return self.chain(_SUM, self.term)

    def term(self) -> Query:
        return self.chain(_TERM, self.factor)

    def chain(self, ops: Mapping[str, type], operand: Callable[[], Query]) -> Query:
        left = operand()
        while self.reader.is_(*ops):
            op = self.reader.next()
            left = self.build(ops[op.word], op, left, operand())
        return left

    def factor(self) -> Query:
        left = self.unit()
        while self.reader.is_("×", "times", *_JOIN):
            op = self.reader.next()
            if op.word in ("×", "times"):
                left = Product(left, self.unit())
                continue
            # the condition is read when the right side's columns are known
            self.reader.expect("[", "with the join's condition")
            start = self.reader.at
            self.skip_condition()
            right = self.unit()
            after = self.reader.at
            self.reader.at = start
            on = expression(self.reader, Scope(left.scope + right.scope, split=left.arity))
            self.reader.expect("]", "after the join's condition")
            self.reader.at = after
            left = self.build(_JOIN[op.word], op, left, right, on)
        return left

    def build(self, node: type, op: Token, left: Query, right: Query, *more: Scalar) -> Query:
        try:
            q: Query = node(left, right, *more)
        except ArityError as e:
            span = (op.start, op.stop)
            raise ArityError(e.what, text=self.reader.text, span=span, hint=e.hint) from None
        return q

    def skip_condition(self) -> None:
        depth = 1
        while depth:
            token = self.reader.next()
            if token.kind == END:
                raise self.reader.error("expected ']'", token)
            if token.kind == "op":
                depth += (token.text == "[") - (token.text == "]")

    def unit(self) -> Query:
        reader = self.reader
        token = reader.next()
        sign = _WORD.get(token.word, token.word) if reader.is_("[", "(") else token.word
        if sign == "φ":
            sign = "∅"
        if token.kind == "op" and token.text == "(":
            q = self.query()
            reader.expect(")", "to close the parenthesis")
            return q
        if token.kind == "op" and token.text == "{":
            return self.literal(token)
        if sign in _STATES and token.kind == "glyph":
            return self.table(reader.next(), _STATES[sign])
        if token.kind == "glyph" or (token.kind == "name" and reader.is_("[", "(")):
            if sign in ("ε", "net"):
                inner = self.inside()
                return Distinct(inner) if sign == "ε" else Net(inner)
            if sign == "∅":
                return Empty(tuple(Column(n) for n in self.header()))
            if sign in ("σ", "Π", "Γ"):
                return self.bracketed(sign)
        if token.kind in ("name", "quoted"):
            return self.table(token, "")
        raise reader.error("expected a query", token)

    def bracketed(self, sign: str) -> Query:
        """σ[…](S), Π[…](S), Γ[…](S): what is in brackets is read when S's columns are known."""
        reader = self.reader
        reader.expect("[", f"after {sign}")
        start = reader.at
        self.skip_condition()
        source = self.inside()
        after = reader.at
        reader.at = start
        scope = Scope(source.scope)
        q: Query
        if sign == "σ":
            q = Select(source, expression(reader, scope))
        elif sign == "Π":
            items: list[tuple[Scalar, str]] = []
            while not reader.is_("]"):
                items.append(self.item(scope))
                if not reader.take(","):
                    break
            q = Project(source, tuple(i for i, _ in items), tuple(n for _, n in items))
        else:
            keys: list[int] = []
            while not reader.is_(";", "]"):
                token = reader.now
                key = expression(reader, scope)
                if not isinstance(key, Col):
                    raise reader.error("a key of Γ is a column", token)
                keys.append(key.index)
                if not reader.take(","):
                    break
            aggs: list[tuple[Agg, str]] = []
            if reader.take(";"):
                while not reader.is_("]"):
                    agg = aggregate(reader, scope)
                    reader.expect("as", "and a name after the aggregate")
                    aggs.append((agg, self.name("a name after AS")))
                    if not reader.take(","):
                        break
            q = GroupBy(source, tuple(keys), tuple(a for a, _ in aggs), tuple(n for _, n in aggs))
        reader.expect("]", f"after what stands in {sign}[…]")
        reader.at = after
        return q

    def item(self, scope: Scope) -> tuple[Scalar, str]:
        token = self.reader.now
        e = expression(self.reader, scope)
        if self.reader.take("as"):
            return e, self.name("a name after AS")
        if not isinstance(e, Col):
            raise self.reader.error("an expression in Π needs a name: e AS name", token)
        return e, scope.columns[e.index].name

    def inside(self) -> Query:
        self.reader.expect("(", "before the input")
        q = self.query()
        self.reader.expect(")", "after the input")
        return q

    def header(self) -> list[str]:
        self.reader.expect("[", "with the column names")
        names: list[str] = []
        while not self.reader.is_("]"):
            names.append(self.name("a column name"))
            if not self.reader.take(","):
                break
        self.reader.expect("]", "after the column names")
        return names

    def literal(self, opening: Token) -> Query:
        reader = self.reader
        rows: list[tuple[Any, ...]] = []
        while not reader.is_("}"):
            reader.expect("(", "before a row")
            row: list[Any] = []
            while not reader.is_(")"):
                token = reader.now
                value = expression(reader, Scope(()))
                if not isinstance(value, Const):
                    raise reader.error("a row holds constants", token)
                row.append(value.value)
                if not reader.take(","):
                    break
            reader.expect(")", "after a row")
            rows.append(tuple(row))
            if not reader.take(","):
                break
        reader.expect("}", "after the rows")
        names = tuple(self.header())
        try:
            return Literal(names, tuple(rows))
        except ArityError as e:
            span = (opening.start, reader.now.start)
            raise ArityError(e.what, text=reader.text, span=span, hint=e.hint) from None

    def table(self, token: Token, state: str) -> Query:
        if token.kind not in ("name", "quoted"):
            raise self.reader.error("expected a table's name", token)
        if not state and token.text in self.names and token.kind == "name":
            return self.names[token.text]
        if token.text not in self.schemas:
            raise UnknownTableError(
                f"no table {token.text!r} in the given schemas",
                text=self.reader.text,
                span=(token.start, token.stop),
                hint=suggestion(token.text, self.schemas),
            )
        if not state and self.reader.take("@"):
            word = self.reader.now
            state = "@" + self.name("old or new after @")
            if state not in ("@old", "@new"):
                raise self.reader.error("expected @old or @new", word)
        return Table(
            token.text,
            column_names(self.schemas[token.text], f"the columns of {token.text}"),
            state,
        )

    def name(self, what: str) -> str:
        token = self.reader.next()
        if token.kind not in ("name", "quoted"):
            raise self.reader.error(f"expected {what}", token)
        return token.text
