"""The methods by which queries are built from text: names are resolved here, once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from viewkeeper.algebra.scalar_text import read_agg, read_scalar
from viewkeeper.algebra.scalars import Col, Scalar, call, conjunction
from viewkeeper.algebra.scope import A_QUERY, Columns, Scope, column_names, expect, quote
from viewkeeper.errors import NotationError, UnknownColumnError, suggestion

if TYPE_CHECKING:
    from viewkeeper.algebra.nodes import Query

On = str | Sequence[str]


class Fluent:
    """A mixin of all nodes. Conditions and expressions are SQL text over the columns' names."""

    __slots__ = ()

    def select(self, predicate: str) -> Query:
        """σ[predicate](self): the rows for which the predicate is TRUE (WHERE).

        >>> from viewkeeper import algebra as al
        >>> print(al.table("R", ["a", "b"]).select("a > 1 and b is not null"))
        σ[a > 1 AND NOT b IS NULL](R)
        """
        from viewkeeper.algebra.nodes import Select

        return Select(_self(self), read_scalar(predicate, Scope(_self(self).scope)))

    def project(self, items: Sequence[str] | Mapping[str, str]) -> Query:
        """Π[items](self): columns by name, or new columns by expression (SELECT).

        >>> from viewkeeper import algebra as al
        >>> R = al.table("R", ["a", "b"])
        >>> print(R.project(["b"]), "  ", R.project({"total": "a * b", "a": "a"}))
        Π[b](R)    Π[a * b AS total, a](R)
        """
        from viewkeeper.algebra.nodes import Project

        q = _self(self)
        scope = Scope(q.scope)
        if isinstance(items, str):
            items = [items]
        if isinstance(items, Mapping):
            names = column_names(list(items), "the columns of a projection")
            scalars = tuple(read_scalar(text, scope) for text in items.values())
            return Project(q, scalars, names)
        columns = tuple(_column(n, scope) for n in column_names(items, "a projection"))
        return Project(q, columns, tuple(q.scope[c.index].name for c in columns))

    def rename(self, names: Mapping[str, str]) -> Query:
        """The same rows under other column names; columns not mentioned keep theirs.

        >>> from viewkeeper import algebra as al
        >>> al.table("R", ["a", "b"]).rename({"a": "x"}).columns
        ('x', 'b')
        """
        from viewkeeper.algebra.nodes import Project

        q = _self(self)
        expect(names, Mapping, "the new names")
        for old, name in names.items():
            expect(name, str, f"the new name of {old}")
            if old not in q.columns:
                raise UnknownColumnError(
                    f"no column {old!r} to rename", hint=suggestion(old, q.columns)
                )
        new = tuple(names.get(n, n) for n in q.columns)
        return Project(q, tuple(Col(i) for i in range(q.arity)), new)

    def distinct(self) -> Query:
        """ε(self): each row once (SELECT DISTINCT).

        >>> from viewkeeper import algebra as al
        >>> print(al.table("R", ["a"]).distinct())
        ε(R)
        """
        from viewkeeper.algebra.nodes import Distinct

        return Distinct(_self(self))

    def product(self, other: Query) -> Query:
        """self × other: all pairs of rows (CROSS JOIN).

        >>> from viewkeeper import algebra as al
        >>> al.table("R", ["a"]).product(al.table("S", ["a"])).columns
        ('a', 'a')
        """
        from viewkeeper.algebra.nodes import Node, Product

        expect(other, Node, "the other side of a product", A_QUERY)
        return Product(_self(self), other)

    def join(self, other: Query, on: On) -> Query:
        """self ⋈[on] other: the pairs of rows that meet a condition (JOIN).

        ``on`` is a condition, or a list of names that both sides have. A name that both sides have
        is written ``left.a`` or ``right.a``.

        >>> from viewkeeper import algebra as al
        >>> R, S = al.table("R", ["a", "b"]), al.table("S", ["a", "c"])
        >>> print(R.join(S, "left.a = right.a and c > b"))
        R ⋈[left.a = right.a AND c > b] S
        >>> print(R.join(S, ["a"]))
        R ⋈[left.a = right.a] S
        """
        from viewkeeper.algebra.nodes import Join

        return Join(_self(self), other, _on(_self(self), other, on))

    def semi(self, other: Query, on: On) -> Query:
        """self ⋉[on] other: the rows that have a partner (LEFT SEMI JOIN, EXISTS).

        >>> from viewkeeper import algebra as al
        >>> print(al.table("R", ["a"]).semi(al.table("S", ["c"]), "a = c"))
        R ⋉[a = c] S
        """
        from viewkeeper.algebra.nodes import Semi

        return Semi(_self(self), other, _on(_self(self), other, on))

    def anti(self, other: Query, on: On) -> Query:
        """self ▷[on] other: the rows that have no partner (LEFT ANTI JOIN, NOT EXISTS).

        >>> from viewkeeper import algebra as al
        >>> print(al.table("R", ["a"]).anti(al.table("S", ["c"]), "a = c"))
        R ▷[a = c] S
        """
        from viewkeeper.algebra.nodes import Anti

        return Anti(_self(self), other, _on(_self(self), other, on))

    def left(self, other: Query, on: On) -> Query:
        """self ⟕[on] other: all rows of self, with NULLs where there is no partner (LEFT JOIN).

        >>> from viewkeeper import algebra as al
        >>> print(al.table("R", ["a"]).left(al.table("S", ["c"]), "a = c"))
        R ⟕[a = c] S
        """
        from viewkeeper.algebra.nodes import Left

        return Left(_self(self), other, _on(_self(self), other, on))

    def right(self, other: Query, on: On) -> Query:
        """self ⟖[on] other: all rows of other, with NULLs where there is no partner (RIGHT JOIN).

        >>> from viewkeeper import algebra as al
        >>> print(al.table("R", ["a"]).right(al.table("S", ["c"]), "a = c"))
        R ⟖[a = c] S
        """
        from viewkeeper.algebra.nodes import Right

        return Right(_self(self), other, _on(_self(self), other, on))

    def full(self, other: Query, on: On) -> Query:
        """self ⟗[on] other: all rows of both, with NULLs where there is no partner (FULL JOIN).

        >>> from viewkeeper import algebra as al
        >>> print(al.table("R", ["a"]).full(al.table("S", ["c"]), "a = c"))
        R ⟗[a = c] S
        """
        from viewkeeper.algebra.nodes import Full

        return Full(_self(self), other, _on(_self(self), other, on))

    def group_by(self, keys: Sequence[str], aggregates: Mapping[str, str]) -> Query:
        """Γ[keys; aggregates](self): one row per group (GROUP BY).

        >>> from viewkeeper import algebra as al
        >>> R = al.table("R", ["a", "b"])
        >>> print(R.group_by(["a"], {"n": "count(*)", "s": "sum(b)"}))
        Γ[a; count(*) AS n, sum(b) AS s](R)
        """
        from viewkeeper.algebra.nodes import GroupBy

        q = _self(self)
        scope = Scope(q.scope)
        if isinstance(keys, str):
            keys = [keys]
        expect(aggregates, Mapping, "the aggregates", 'Give a dict, such as {"n": "count(*)"}.')
        column_names(list(aggregates), "the aggregates")
        positions = tuple(_column(k, scope).index for k in column_names(keys, "the keys"))
        aggs = tuple(read_agg(text, scope) for text in aggregates.values())
        return GroupBy(q, positions, aggs, tuple(aggregates))


def _self(fluent: Fluent) -> Query:
    return cast("Query", fluent)


def _column(text: str, scope: Scope) -> Col:
    """A column by its name; the name may hold any sign, and need not be quoted."""
    exact = [i for i, c in enumerate(scope.columns) if c.name == text]
    if len(exact) == 1:
        return Col(exact[0])
    e = read_scalar(text, scope)
    if not isinstance(e, Col):
        raise NotationError(
            f"{text!r} is an expression, not a column",
            text=text,
            span=(0, len(text)),
            hint='Name it: project({"name": "expression"}).',
        )
    return e


def _on(left: Query, right: Query, on: On) -> Scalar:
    from viewkeeper.algebra.nodes import Node

    expect(right, Node, "the other side of a join", A_QUERY)
    columns: Columns = left.scope + right.scope
    scope = Scope(columns, split=left.arity)
    if isinstance(on, str):
        return read_scalar(on, scope)
    names = column_names(on, "the condition of a join")
    sides = (Scope(left.scope), Scope(right.scope))
    pairs = [(_column(quote(name), sides[0]), _column(quote(name), sides[1])) for name in names]
    return conjunction([call("=", a, Col(left.arity + b.index)) for a, b in pairs])
