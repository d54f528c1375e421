"""Random Spark SQL queries: joins, subqueries, sets, groups, windows, one over another.

All columns of a query have names of their own (c1, c2, …) and known types, so queries nest at will.
Orders are total, so that every query has one answer.
"""

from __future__ import annotations

from collections.abc import Callable

from spark_values import ARRAY, MAP, NUMBERS, ROUGH, TYPES, Column, Relation, Table, Values

__all__ = ["Generator", "Table"]

_JOINS = {
    "JOIN": 5,
    "LEFT JOIN": 3,
    "RIGHT JOIN": 2,
    "FULL JOIN": 3,
    "LEFT SEMI JOIN": 1,
    "LEFT ANTI JOIN": 1,
    "CROSS JOIN": 1,
}


class Generator(Values):
    """Everything random about one world, from one seed."""

    def new(self) -> str:
        self.numbers += 1
        return f"c{self.numbers}"

    def alias(self) -> str:
        self.numbers += 1
        return f"q{self.numbers}"

    def query(self, depth: int) -> Relation:
        """A random query; at depth 0 a table."""
        if depth <= 0:
            return self.scan()
        kinds = self.kinds()
        make = self.random.choices([k for k, _ in kinds], [w for _, w in kinds])[0]
        return make(depth - 1 if self.random.random() < 0.8 else 0)

    def kinds(self) -> list[tuple[Callable[[int], Relation], int]]:
        """What a query may be, and how often it is."""
        return [
            (self.select, 4), (self.join, 6), (self.subquery, 4), (self.sets, 3), (self.group, 6),
            (self.window, 3), (self.top, 1), (self.explode, 1), (self.distinct, 1), (self.cte, 1),
            (self.grouping_sets, 1), (self.scalar, 2),
        ]  # fmt: skip

    def scan(self) -> Relation:
        t, a = self.random.choice(self.sources), self.alias()
        columns = tuple(Column(self.new(), c.type) for c in t.columns)
        items = ", ".join(
            f"{a}.{o.name} AS {n.name}" for o, n in zip(t.columns, columns, strict=True)
        )
        sql = f"SELECT {items} FROM {t.name} {a}"
        if self.random.random() < 0.3:
            sql += f" WHERE {self.predicate(t.columns, a + '.')}"
        return Relation(sql, columns)

    def select(self, depth: int) -> Relation:
        s, a = self.query(depth), self.alias()
        keep = self.random.sample(s.columns, self.random.randint(1, len(s.columns)))
        columns, items = [], []
        for c in keep:
            columns.append(Column(self.new(), c.type))
            change = c.type in (MAP, *TYPES) and self.random.random() < 0.4
            items.append(self.value(s.columns, c.type, f"{a}.") if change else f"{a}.{c.name}")
        listed = ", ".join(f"{e} AS {c.name}" for e, c in zip(items, columns, strict=True))
        where = f" WHERE {self.predicate(s.columns, a + '.')}" if self.random.random() < 0.6 else ""
        return Relation(f"SELECT {listed} FROM ({s.sql}) {a}{where}", tuple(columns))

    def condition(self, s: Relation, a: str, t: Relation, b: str) -> str:
        """A join condition: mostly an equality, sometimes more or less."""
        r = self.random
        pairs = [(x, y) for x in s.exact for y in t.exact if x.type == y.type]
        if not pairs:
            return f"({self.predicate(s.columns, a + '.')})"
        parts = []
        for x, y in r.sample(pairs, min(len(pairs), r.choice((1, 1, 2)))):
            op = r.choices(("=", "<=>", "<", ">="), (10, 3, 1, 1))[0]
            parts.append(f"{a}.{x.name} {op} {b}.{y.name}")
        if r.random() < 0.2:
            parts.append(self.predicate(t.columns, b + "."))
        if r.random() < 0.1:
            parts.append(self.predicate(s.columns, a + "."))
        return r.choices((" AND ", " OR "), (9, 1))[0].join(parts)

    def join(self, depth: int) -> Relation:
        r = self.random
        s, t = self.query(depth), self.query(depth if r.random() < 0.4 else 0)
        a, b = self.alias(), self.alias()
        kind = r.choices(list(_JOINS), list(_JOINS.values()))[0]
        on = "" if kind == "CROSS JOIN" else f" ON {self.condition(s, a, t, b)}"
        columns = s.columns if "SEMI" in kind or "ANTI" in kind else s.columns + t.columns
        if len(columns) > 7:
            columns = tuple(r.sample(columns, 7))
        items = ", ".join(c.name for c in columns)
        return Relation(f"SELECT {items} FROM ({s.sql}) {a} {kind} ({t.sql}) {b}{on}", columns)

    def subquery(self, depth: int) -> Relation:
        """[NOT] EXISTS or [NOT] IN."""
        r = self.random
        s, t = self.query(depth), self.query(0 if r.random() < 0.6 else depth)
        a, b = self.alias(), self.alias()
        pairs = [(x, y) for x in s.exact for y in t.exact if x.type == y.type]
        no = r.choice(("", "NOT "))
        extra = (
            f" {r.choice(('AND', 'AND', 'OR'))} {self.predicate(s.columns, a + '.')}"
            if r.random() < 0.3
            else ""
        )
        if pairs and r.random() < 0.5:
            x, y = r.choice(pairs)
            where = ""
            if r.random() < 0.4:
                where = f" WHERE {self.condition(s, a, t, b)}"
            test = f"{a}.{x.name} {no}IN (SELECT {b}.{y.name} FROM ({t.sql}) {b}{where})"
        else:
            on = self.condition(s, a, t, b)
            test = f"{no}EXISTS (SELECT 1 FROM ({t.sql}) {b} WHERE {on})"
        items = ", ".join(c.name for c in s.columns)
        return Relation(f"SELECT {items} FROM ({s.sql}) {a} WHERE {test}{extra}", s.columns)

    def scalar(self, depth: int) -> Relation:
        """A scalar subquery, correlated or not, as a column or in a condition."""
        r = self.random
        s, t = self.query(depth), self.query(0)
        if not t.of(*NUMBERS):
            return s
        a, b, y = self.alias(), self.alias(), r.choice(t.of(*NUMBERS))
        function = r.choice(("max", "min", "sum", "count", "avg"))
        type_ = {"max": y.type, "min": y.type, "count": "BIGINT", "avg": ROUGH}.get(function, ROUGH)
        pairs = [(x, z) for x in s.exact for z in t.exact if x.type == z.type]
        where = ""
        if pairs and r.random() < 0.6:
            x, z = r.choice(pairs)
            where = f" WHERE {a}.{x.name} = {b}.{z.name}"
        inner = f"(SELECT {function}({b}.{y.name}) FROM ({t.sql}) {b}{where})"
        items = ", ".join(f"{a}.{c.name}" for c in s.columns)
        numbers = s.of("INT", "BIGINT", "DOUBLE")
        if numbers and r.random() < 0.5:
            test = f"{a}.{r.choice(numbers).name} {r.choice(('<', '>=', '='))} {inner}"
            return Relation(f"SELECT {items} FROM ({s.sql}) {a} WHERE {test}", s.columns)
        made = Column(self.new(), type_)
        return Relation(
            f"SELECT {items}, {inner} AS {made.name} FROM ({s.sql}) {a}", (*s.columns, made)
        )

    def shaped(self, s: Relation, types: tuple[str, ...]) -> str:
        """The relation's rows as columns of the given types."""
        a = self.alias()
        items = ", ".join(self.value(s.columns, t, f"{a}.", 0) for t in types)
        return f"SELECT {items} FROM ({s.sql}) {a}"

    def sets(self, depth: int) -> Relation:
        r = self.random
        s, t = self.query(depth), self.query(depth if r.random() < 0.4 else 0)
        some = s.exact or [Column("1", "INT")]
        types = tuple(c.type for c in r.sample(some, r.randint(1, min(3, len(some)))))
        types = tuple(t for t in types if t in TYPES) or ("INT",)
        op = r.choice(("UNION ALL", "UNION", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL"))
        columns = tuple(Column(self.new(), t) for t in types)
        a = self.alias()
        names = ", ".join(c.name for c in columns)
        body = f"{self.shaped(s, types)} {op} {self.shaped(t, types)}"
        return Relation(f"SELECT {names} FROM ({body}) {a} ({names})", columns)

    def aggregate(self, s: Relation, a: str) -> tuple[str, str]:
        """An aggregate and its type."""
        r = self.random
        filtered = (
            f" FILTER (WHERE {self.predicate(s.columns, a + '.')})" if r.random() < 0.2 else ""
        )
        if r.random() < 0.2 or not s.exact:
            return f"count(*){filtered}", "BIGINT"
        c = r.choice(s.exact)
        x = f"{a}.{c.name}"
        if c.type in NUMBERS and r.random() < 0.6:
            made = [(f"sum({x})", ROUGH), (f"avg({x})", ROUGH), (f"sum(DISTINCT {x})", ROUGH)]
            made += [
                (f"stddev({x})", ROUGH),
                (f"var_pop({x})", ROUGH),
                (f"percentile({x}, 0.5)", "DOUBLE"),
            ]
            if c.type in ("INT", "BIGINT"):
                made += [(f"sum({x})", "BIGINT")] * 4 + [(f"avg({x})", "DOUBLE")] * 2
        else:
            made = [(f"min({x})", c.type), (f"max({x})", c.type)] * 2
            made += [(f"count({x})", "BIGINT"), (f"count(DISTINCT {x})", "BIGINT")]
            made += [(f"max_by({x}, struct({x}))", c.type)]
            made += [(f"count(DISTINCT {x}, {a}.{r.choice(s.exact).name})", "BIGINT")]
            if c.type == "BOOLEAN":
                made += [(f"bool_and({x})", "BOOLEAN"), (f"count_if({x})", "BIGINT")]
            if c.type == "INT":
                made += [(f"sort_array(collect_list({x}))", ARRAY)]
        text, type_ = r.choice(made)
        return (text, type_) if text.startswith("sort_array") else (text + filtered, type_)

    def group(self, depth: int) -> Relation:
        r, s, a = self.random, self.query(depth), self.alias()
        keys = r.sample(s.exact, min(len(s.exact), r.choice((0, 1, 1, 1, 2))))
        texts = [f"{a}.{c.name}" for c in keys]
        if keys and keys[0].type == "INT" and r.random() < 0.2:
            texts[0] = f"{texts[0]} % 2"
        columns = [Column(self.new(), c.type) for c in keys]
        items = list(texts)
        for _ in range(r.randint(1, 3)):
            text, type_ = self.aggregate(s, a)
            columns.append(Column(self.new(), type_))
            items.append(text)
        listed = ", ".join(f"{e} AS {c.name}" for e, c in zip(items, columns, strict=True))
        sql = f"SELECT {listed} FROM ({s.sql}) {a}"
        if keys:
            sql += f" GROUP BY {', '.join(texts)}"
        if r.random() < 0.2:
            sql += f" HAVING count(*) {r.choice(('>', '=', '<>'))} {r.randint(0, 2)}"
        return Relation(sql, tuple(columns))

    def grouping_sets(self, depth: int) -> Relation:
        r, s, a = self.random, self.query(depth), self.alias()
        if len(s.exact) < 2:
            return self.group(0)
        keys = r.sample(s.exact, 2)
        x, y = (f"{a}.{c.name}" for c in keys)
        by = r.choice(
            (f"ROLLUP ({x}, {y})", f"CUBE ({x}, {y})", f"GROUPING SETS (({x}), ({x}, {y}), ())")
        )
        text, type_ = self.aggregate(s, a)
        columns = (*(Column(self.new(), c.type) for c in keys), Column(self.new(), type_))
        items = ", ".join(f"{e} AS {c.name}" for e, c in zip((x, y, text), columns, strict=True))
        return Relation(f"SELECT {items} FROM ({s.sql}) {a} GROUP BY {by}", columns)

    def window(self, depth: int) -> Relation:
        r, s, a = self.random, self.query(depth), self.alias()
        if not s.exact:
            return s
        key = r.choice(s.exact).name
        every = ", ".join(f"{a}.{c.name}" for c in s.exact)
        one = f"{a}.{r.choice(s.exact).name} {r.choice(('', 'DESC', 'NULLS LAST'))}"
        over = f"PARTITION BY {a}.{key}" if r.random() < 0.8 else ""
        numbers = s.of("INT", "BIGINT")
        made = [(f"row_number() OVER ({over} ORDER BY {every})", "INT")]
        made += [
            (f"rank() OVER ({over} ORDER BY {one})", "INT"),
            (f"count(*) OVER ({over})", "BIGINT"),
        ]
        if numbers:
            x = f"{a}.{r.choice(numbers).name}"
            made += [(f"sum({x}) OVER ({over} ORDER BY {one})", "BIGINT")]
            near = "ROWS BETWEEN 1 PRECEDING AND CURRENT ROW"
            made += [(f"sum({x}) OVER ({over} ORDER BY {every} {near})", "BIGINT")]
            made += [(f"CAST(lag({x}) OVER ({over} ORDER BY {every}) AS BIGINT)", "BIGINT")]
            made += [(f"CAST(max({x}) OVER ({over}) AS BIGINT)", "BIGINT")]
        text, type_ = r.choice(made)
        # columns whose values an order cannot see would make it no total order
        c = Column(self.new(), type_)
        items = ", ".join(f"{a}.{x.name}" for x in s.exact)
        sql = f"SELECT {items}, {text} AS {c.name} FROM ({s.sql}) {a}"
        if type_ == "INT" and r.random() < 0.3:
            outer = self.alias()
            sql = f"SELECT * FROM ({sql}) {outer} WHERE {outer}.{c.name} = 1"
        return Relation(sql, (*s.exact, c))

    def top(self, depth: int) -> Relation:
        r, s, a = self.random, self.query(depth), self.alias()
        if not s.exact:
            return s
        order = r.sample(s.exact, len(s.exact))
        by = ", ".join(f"{a}.{c.name} {r.choice(('', 'DESC', 'DESC NULLS FIRST'))}" for c in order)
        items = ", ".join(f"{a}.{c.name}" for c in s.exact)
        offset = f" OFFSET {r.randint(1, 2)}" if r.random() < 0.3 else ""
        sql = f"SELECT {items} FROM ({s.sql}) {a} ORDER BY {by} LIMIT {r.randint(1, 4)}{offset}"
        return Relation(f"SELECT * FROM ({sql}) {self.alias()}", tuple(s.exact))

    def explode(self, depth: int) -> Relation:
        r, s, a = self.random, self.query(depth), self.alias()
        c, outer = Column(self.new(), "INT"), r.choice(("", "OUTER "))
        lists = [f"{a}.{x.name}" for x in s.of(ARRAY)]
        x, y = (self.value(s.columns, "INT", f"{a}.", 0) for _ in range(2))
        of = r.choice(lists) if lists else f"array({x}, {y})"
        sql = f"SELECT {a}.*, {c.name} FROM ({s.sql}) {a}"
        sql += f" LATERAL VIEW {outer}explode({of}) x AS {c.name}"
        return Relation(sql, (*s.columns, c))

    def distinct(self, depth: int) -> Relation:
        s, a = self.query(depth), self.alias()
        if not s.exact:
            return s
        keep = self.random.sample(s.exact, self.random.randint(1, len(s.exact)))
        items = ", ".join(f"{a}.{c.name}" for c in keep)
        return Relation(f"SELECT DISTINCT {items} FROM ({s.sql}) {a}", tuple(keep))

    def cte(self, depth: int) -> Relation:
        """A CTE joined with itself."""
        s, a, b, w = self.query(depth), self.alias(), self.alias(), self.alias()
        on = self.condition(s, a, s, b)
        again = tuple(Column(self.new(), c.type) for c in s.columns)[:3]
        items = [f"{a}.{c.name}" for c in s.columns]
        items += [f"{b}.{c.name} AS {n.name}" for c, n in zip(s.columns, again, strict=False)]
        kind = self.random.choice(("JOIN", "LEFT JOIN"))
        sql = f"WITH {w} AS ({s.sql}) SELECT {', '.join(items)} FROM {w} {a} {kind} {w} {b} ON {on}"
        return Relation(sql, s.columns + again)

    def view(self, name: str, most: int = 3) -> str:
        """A view's query; later queries may read the view."""
        made = self.query(self.random.randint(1, most))
        columns = tuple(Column(c.name, c.type) for c in made.exact)
        if columns:
            self.sources.append(Table(name, columns))
        return made.sql
