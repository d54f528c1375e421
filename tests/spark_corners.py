"""More of the random queries: LATERAL, PIVOT, EXISTS as a value, subqueries under OR, and so on."""

from __future__ import annotations

from collections.abc import Callable

from spark_queries import Generator
from spark_values import ARRAY, NUMBERS, STRUCT, Column, Relation


class Corners(Generator):
    """Everything random about one world, corners included."""

    def kinds(self) -> list[tuple[Callable[[int], Relation], int]]:
        """What a query may be, and how often it is."""
        return [
            *super().kinds(), (self.lateral, 2), (self.truth, 2), (self.pairs, 1), (self.either, 2),
            (self.pivot, 1), (self.unpivot, 1), (self.using, 2), (self.ranges, 1), (self.shares, 1),
            (self.having, 1), (self.positions, 1), (self.fields, 1),
        ]  # fmt: skip

    def two(self, depth: int) -> tuple[Relation, str, Relation, str]:
        """A query and a smaller one, each with a name for it."""
        return self.query(depth), self.alias(), self.query(0), self.alias()

    def bound(self, s: Relation, a: str, t: Relation, b: str) -> str:
        """WHERE that binds t to a row of s by equality, if there are columns for it."""
        pairs = [(x, y) for x in s.exact for y in t.exact if x.type == y.type]
        if not pairs:
            return ""
        x, y = self.random.choice(pairs)
        return f" WHERE {a}.{x.name} = {b}.{y.name}"

    def lateral(self, depth: int) -> Relation:
        """A subquery after FROM that reads the row beside it."""
        s, a, t, b = self.two(depth)
        where, c, r = self.bound(s, a, t, b), self.alias(), self.random
        made = (Column(self.new(), "BIGINT"),)
        inner = f"SELECT count(*) AS {made[0].name} FROM ({t.sql}) {b}{where}"
        if t.exact and r.random() < 0.7:
            y = r.choice(t.exact)
            made = (Column(self.new(), y.type),)
            value = r.choice((f"{b}.{y.name}", f"max({b}.{y.name})", f"min({b}.{y.name})"))
            inner = f"SELECT {value} AS {made[0].name} FROM ({t.sql}) {b}{where}"
        kind = r.choice(("JOIN", "LEFT JOIN"))
        sql = f"SELECT {a}.*, {c}.{made[0].name} FROM ({s.sql}) {a} {kind} LATERAL ({inner}) {c}"
        return Relation(f"{sql} ON true", s.columns + made)

    def found(self, s: Relation, a: str, t: Relation, b: str) -> str:
        """[NOT] EXISTS or [NOT] IN, as a value."""
        no, r = self.random.choice(("", "NOT ")), self.random
        pairs = [(x, y) for x in s.exact for y in t.exact if x.type == y.type]
        if pairs and r.random() < 0.4:
            x, y = r.choice(pairs)
            return f"{a}.{x.name} {no}IN (SELECT {b}.{y.name} FROM ({t.sql}) {b})"
        return f"{no}EXISTS (SELECT 1 FROM ({t.sql}) {b}{self.bound(s, a, t, b)})"

    def truth(self, depth: int) -> Relation:
        """EXISTS or IN as a column."""
        s, a, t, b = self.two(depth)
        made, test = Column(self.new(), "BOOLEAN"), self.found(s, a, t, b)
        return Relation(
            f"SELECT {a}.*, {test} AS {made.name} FROM ({s.sql}) {a}", (*s.columns, made)
        )

    def pairs(self, depth: int) -> Relation:
        """(x, y) [NOT] IN."""
        r = self.random
        s, a, t, b = self.two(depth)
        same = [(x, y) for x in s.exact for y in t.exact if x.type == y.type]
        if len(same) < 2:
            return s
        (x, y), (z, w) = r.sample(same, 2)
        test = f"({a}.{x.name}, {a}.{z.name}) {r.choice(('', 'NOT '))}IN"
        sql = f"SELECT {a}.* FROM ({s.sql}) {a} WHERE {test}"
        return Relation(f"{sql} (SELECT {b}.{y.name}, {b}.{w.name} FROM ({t.sql}) {b})", s.columns)

    def either(self, depth: int) -> Relation:
        """Subqueries under OR and CASE."""
        r = self.random
        s, a, t, b = self.two(depth)
        p, other, c = self.predicate(s.columns, a + "."), self.query(0), self.alias()
        one, two = self.found(s, a, t, b), self.found(s, a, other, c)
        numbers = s.of(*NUMBERS)
        if numbers and other.of(*NUMBERS):
            least = r.choice(other.of(*NUMBERS)).name
            x = r.choice(numbers).name
            scalar = f"SELECT max({c}.{least}) FROM ({other.sql}) {c}{self.bound(s, a, other, c)}"
            two = r.choice((two, f"{a}.{x} >= ({scalar})"))
        test = r.choice((
            f"{p} OR {one}", f"{one} OR {two}", f"NOT ({one} AND {two})",
            f"CASE WHEN {p} THEN {one} ELSE {p} END",
        ))  # fmt: skip
        return Relation(f"SELECT {a}.* FROM ({s.sql}) {a} WHERE {test}", s.columns)

    def pivot(self, depth: int) -> Relation:
        s, a, r = self.query(depth), self.alias(), self.random
        numbers = s.of("INT")
        if not numbers or len(s.exact) < 2:
            return s
        by, held = r.choice(numbers), r.choice(numbers)
        key = r.choice([c for c in s.exact if c != by])
        k, p, v = self.new(), self.new(), self.new()
        made = [Column(self.new(), "BIGINT") for _ in range(2)]
        values = ", ".join(f"{i} AS {c.name}" for i, c in enumerate(made, 1))
        inner = f"SELECT {key.name} AS {k}, {by.name} AS {p}, {held.name} AS {v} FROM ({s.sql}) {a}"
        function = r.choice(("sum", "count"))
        sql = f"SELECT * FROM ({inner}) PIVOT ({function}({v}) FOR {p} IN ({values}))"
        return Relation(sql, (Column(k, key.type), *made))

    def unpivot(self, depth: int) -> Relation:
        s, a = self.query(depth), self.alias()
        numbers = s.of("INT")
        if len(numbers) < 2:
            return s
        rest = [c for c in s.exact if c not in numbers]
        kept = ", ".join(c.name for c in (*rest, *numbers))
        name, value = Column(self.new(), "STRING"), Column(self.new(), "INT")
        nulls = self.random.choice(("", "INCLUDE NULLS "))
        listed = ", ".join(c.name for c in numbers)
        sql = f"SELECT * FROM (SELECT {kept} FROM ({s.sql}) {a})"
        sql += f" UNPIVOT {nulls}({value.name} FOR {name.name} IN ({listed}))"
        return Relation(sql, (*rest, name, value))

    def using(self, depth: int) -> Relation:
        """A join by a column of one name."""
        r = self.random
        s, a, t, b = self.two(depth)
        same = [(x, y) for x in s.exact for y in t.exact if x.type == y.type]
        if not same:
            return s
        x, y = r.choice(same)
        key = Column(self.new(), x.type)
        one = f"SELECT {x.name} AS {key.name}, {a}.* FROM ({s.sql}) {a}"
        two = f"SELECT {y.name} AS {key.name}, {b}.* FROM ({t.sql}) {b}"
        kind = r.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
        sql = f"SELECT * FROM ({one}) {kind} ({two}) USING ({key.name})"
        return Relation(sql, (key, *s.columns, *t.columns))

    def ranges(self, depth: int) -> Relation:
        """Windows over ranges of values."""
        s, a = self.query(depth), self.alias()
        numbers = s.of("INT", "BIGINT")
        if not numbers:
            return s
        x, k = self.random.choice(numbers).name, self.random.choice(s.exact).name
        made = Column(self.new(), "BIGINT")
        frame = self.random.choice((
            "1 PRECEDING AND CURRENT ROW", "1 FOLLOWING AND 2 FOLLOWING",
            "UNBOUNDED PRECEDING AND 1 PRECEDING",
        ))  # fmt: skip
        over = f"PARTITION BY {a}.{k} ORDER BY {a}.{x} RANGE BETWEEN {frame}"
        sql = f"SELECT {a}.*, sum({a}.{x}) OVER ({over}) AS {made.name} FROM ({s.sql}) {a}"
        return Relation(sql, (*s.columns, made))

    def shares(self, depth: int) -> Relation:
        """Windows over groups, with two partitions."""
        s, a = self.query(depth), self.alias()
        if len(s.exact) < 2:
            return s
        x, y = self.random.sample(s.exact, 2)
        made = [Column(self.new(), "BIGINT") for _ in range(3)]
        one = f"sum(count(*)) OVER (PARTITION BY {a}.{x.name})"
        two = f"rank() OVER (PARTITION BY {a}.{y.name} ORDER BY count(*) DESC)"
        items = ", ".join((f"{a}.{x.name}", f"{a}.{y.name}"))
        sql = f"SELECT {items}, count(*) AS {made[0].name}, {one} AS {made[1].name},"
        sql += f" CAST({two} AS BIGINT) AS {made[2].name} FROM ({s.sql}) {a} GROUP BY {items}"
        return Relation(sql, (x, y, *made))

    def having(self, depth: int) -> Relation:
        """HAVING with a subquery."""
        s, a, t, b = self.two(depth)
        if not s.exact:
            return s
        x, made = self.random.choice(s.exact), Column(self.new(), "BIGINT")
        sql = (
            f"SELECT {a}.{x.name}, count(*) AS {made.name} FROM ({s.sql}) {a} GROUP BY {a}.{x.name}"
        )
        where = self.bound(Relation("", (x,)), a, t, b)
        op = self.random.choice((">=", "<", "="))
        sql += f" HAVING count(*) {op} (SELECT count(*) FROM ({t.sql}) {b}{where})"
        return Relation(sql, (x, made))

    def positions(self, depth: int) -> Relation:
        """Elements of arrays with their positions."""
        s, a = self.query(depth), self.alias()
        place, e = Column(self.new(), "INT"), Column(self.new(), "INT")
        of = self.value(s.columns, ARRAY, f"{a}.")
        outer = self.random.choice(("", "OUTER "))
        sql = f"SELECT {a}.*, {place.name}, {e.name} FROM ({s.sql}) {a}"
        sql += f" LATERAL VIEW {outer}posexplode({of}) x AS {place.name}, {e.name}"
        return Relation(sql, (*s.columns, place, e))

    def fields(self, depth: int) -> Relation:
        """Structs made, compared and taken apart."""
        s, a = self.query(depth), self.alias()
        made = [Column(self.new(), t) for t in (STRUCT, "INT", "STRING")]
        of = self.value(s.columns, STRUCT, f"{a}.")
        sql = f"SELECT {of} AS {made[0].name}, ({of}).x AS {made[1].name},"
        sql += f" ({of}).y AS {made[2].name} FROM ({s.sql}) {a}"
        return Relation(f"{sql} WHERE {self.predicate(s.columns, a + '.')}", tuple(made))
