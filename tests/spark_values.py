"""Random tables, values, conditions, and statements that change tables, in Spark SQL.

Sums of doubles are exact (the values are quarters), and there are many NULLs and duplicates.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

NUMBERS = ("INT", "BIGINT", "DOUBLE", "DECIMAL(6,2)")
ARRAY = "ARRAY<INT>"
STRUCT = "STRUCT<x: INT, y: STRING>"
TYPES = (*NUMBERS, "STRING", "DATE", "BOOLEAN", "TIMESTAMP", "BINARY", ARRAY, STRUCT)
_OFTEN = (6, 6, 6, 6, 6, 6, 6, 2, 2, 3, 3)  # of the types
MAP = "MAP<INT, INT>"  # carried along, and never compared
ROUGH = "ROUGH"  # a double whose last digits depend on the order of addition


@dataclass(frozen=True)
class Column:
    name: str
    type: str


@dataclass(frozen=True)
class Relation:
    """A query's text and its columns."""

    sql: str
    columns: tuple[Column, ...]

    def of(self, *types: str) -> list[Column]:
        return [c for c in self.columns if c.type in types]

    @property
    def exact(self) -> list[Column]:
        """The columns that can be compared."""
        return [c for c in self.columns if c.type not in (MAP, ROUGH)]


@dataclass(frozen=True)
class Table:
    """A table or a view, by name."""

    name: str
    columns: tuple[Column, ...]
    options: str = ""

    @property
    def create(self) -> str:
        """The words of a scenario's table line."""
        columns = ", ".join(f"{c.name} {c.type}" for c in self.columns)
        return f"{self.name} ({columns}){self.options}"


class Values:
    """Random tables, values, conditions and changes, from one seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = 0
        self.sources: list[Table] = []

    # ── tables and values ──

    def tables(self) -> list[Table]:
        r = self.random
        made = []
        for i in range(r.randint(2, 3)):
            types = ["INT", r.choice(("INT", "STRING"))]
            types += r.choices(TYPES, _OFTEN, k=r.randint(0, 2))
            types += [MAP] if r.random() < 0.12 else []
            columns = tuple(Column(f"k{j}", t) for j, t in enumerate(types))
            options = r.choice(
                ("", "", "", " feed off", " deletion vectors", " feed off deletion vectors")
            )
            if r.random() < 0.15:
                options += " partitioned by (k1)"
            made.append(Table(f"t{i}", columns, options))
        self.sources = list(made)
        return made

    def literal(self, type_: str) -> str:
        r = self.random
        if r.random() < 0.15:
            return f"CAST(NULL AS {type_})"
        match type_:
            case "INT":
                return str(r.randint(-1, 4))
            case "BIGINT":
                return f"{r.randint(-1, 4)}L"
            case "STRING":
                return r.choice(("'a'", "'b'", "'ab'", "''", "'c d'"))
            case "DOUBLE":
                return r.choice((f"{r.randint(-4, 8) / 4}D",) * 9 + ("double('NaN')",))
            case "TIMESTAMP":
                return f"TIMESTAMP '2024-01-01 0{r.randint(0, 3)}:30:00'"
            case "BINARY":
                return r.choice(("X''", "X'00'", "X'61FF'"))
            case _ if type_ == ARRAY:
                return r.choice(
                    ("array()", "array(1)", "array(2, 1)", "array(1, CAST(NULL AS INT))")
                )
            case _ if type_ == MAP:
                return r.choice(("map()", "map(1, 2)", "map(2, 1)", "map(1, NULL, 2, 1)"))
            case _ if type_ == STRUCT:
                return f"named_struct('x', {self.literal('INT')}, 'y', {self.literal('STRING')})"
            case "DATE":
                return f"DATE '2024-01-0{r.randint(1, 4)}'"
            case "BOOLEAN":
                return r.choice(("true", "false"))
            case _:
                return f"CAST({r.randint(-3, 6) / 2} AS {type_})"

    def rows(self, table: Table, most: int) -> str:
        values = []
        for _ in range(self.random.randint(1, most)):
            values.append("(" + ", ".join(self.literal(c.type) for c in table.columns) + ")")
            if self.random.random() < 0.25:
                values.append(values[-1])
        return ", ".join(values)

    # ── changes ──

    def change(self, table: Table) -> str:
        r, t = self.random, table.name
        where = f"WHERE {self.predicate(table.columns, '')}"
        kind = r.random()
        if kind < 0.4:
            return f"INSERT INTO {t} VALUES {self.rows(table, 4)}"
        if kind < 0.47:
            return f"INSERT INTO {t} SELECT * FROM {t} {where}"
        if kind < 0.65:
            return f"DELETE FROM {t} {where}"
        if kind < 0.82:
            sets = r.sample(table.columns, r.randint(1, min(2, len(table.columns))))
            to = ", ".join(f"{c.name} = {self.value(table.columns, c.type, '')}" for c in sets)
            return f"UPDATE {t} SET {to} {where}"
        if kind < 0.95:
            return self.merge(table)
        if kind < 0.97:
            return f"TRUNCATE TABLE {t}"
        return f"INSERT OVERWRITE {t} VALUES {self.rows(table, 4)}"

    def merge(self, table: Table) -> str:
        names = [c.name for c in table.columns]
        key, other = names[0], names[1]
        source = f"SELECT * FROM VALUES {self.rows(table, 3)} AS v ({', '.join(names)})"
        number = f"row_number() OVER (PARTITION BY {key} ORDER BY {key}) AS rn"
        once = f"SELECT * FROM (SELECT *, {number} FROM ({source})) WHERE rn = 1"
        text = f"MERGE INTO {table.name} t USING ({once}) s ON t.{key} = s.{key}"
        if self.random.random() < 0.4:
            text += f" WHEN MATCHED AND t.{other} <=> s.{other} THEN DELETE"
        text += f" WHEN MATCHED THEN UPDATE SET t.{other} = s.{other}"
        values = ", ".join(f"s.{n}" for n in names)
        return f"{text} WHEN NOT MATCHED THEN INSERT ({', '.join(names)}) VALUES ({values})"

    # ── scalars ──

    def value(self, columns: tuple[Column, ...], type_: str, q: str, depth: int = 1) -> str:
        """An expression of a type over columns, each written with the prefix."""
        r = self.random
        same = [f"{q}{c.name}" for c in columns if c.type == type_]
        if same and r.random() < 0.65:
            return r.choice(same)
        if depth and r.random() < 0.6:
            x = self.value(columns, type_, q, 0)
            y = self.value(columns, type_, q, 0)
            p = self.predicate(columns, q, 0)
            made = [
                f"coalesce({x}, {y})",
                f"CASE WHEN {p} THEN {x} ELSE {y} END",
            ]
            if type_ != MAP:
                made.append(f"nullif({x}, {y})")
            if type_ in NUMBERS:
                made += [
                    f"CAST({x} + {y} AS {type_})",
                    f"CAST(-{x} AS {type_})",
                    f"greatest({x}, {y})",
                ]
            if type_ == "INT":
                made += [f"{x} % 3", f"abs({x})", f"CAST(length(CAST({y} AS STRING)) AS INT)"]
            if type_ == "STRING":
                made += [f"concat({x}, {y})", f"upper({x})", f"substring({x}, 1, 1)"]
            if type_ == "DOUBLE":
                made.append(f"CAST({x} AS DOUBLE) / 2")
            made += self.nested(columns, type_, q, x, y)
            return r.choice(made)
        return self.literal(type_)

    def nested(self, columns: tuple[Column, ...], type_: str, q: str, x: str, y: str) -> list[str]:
        """Values of a type that have to do with arrays, structs and times; x and y are of it."""
        of = {c.type: f"{q}{c.name}" for c in columns}
        made = []
        if type_ == "INT" and ARRAY in of:
            made += [f"size({of[ARRAY]})", f"get({of[ARRAY]}, 0)"]
        if type_ == "INT" and "TIMESTAMP" in of:
            made.append(f"hour({of['TIMESTAMP']})")
        if type_ in ("INT", "STRING") and STRUCT in of:
            made.append(f"{of[STRUCT]}.{'x' if type_ == 'INT' else 'y'}")
        if type_ == "DATE" and "TIMESTAMP" in of:
            made.append(f"CAST({of['TIMESTAMP']} AS DATE)")
        if type_ == "TIMESTAMP":
            made += [f"date_trunc('DAY', {x})", f"({x} + INTERVAL '1' HOUR)"]
        if type_ == "BINARY":
            made.append(f"CAST({self.value(columns, 'STRING', q, 0)} AS BINARY)")
        if type_ == ARRAY:
            some = self.value(columns, "INT", q, 0)
            made += [f"array({some})", f"transform({x}, e -> e + 1)", f"sort_array({x})"]
            made += [f"filter({x}, e -> e > 1)", f"array_union({x}, {y})", f"concat({x}, {y})"]
        if type_ == "INT" and MAP in of:
            made += [f"size({of[MAP]})", f"try_element_at({of[MAP]}, 1)"]
        if type_ == ARRAY and MAP in of:
            made += [f"map_keys({of[MAP]})", f"map_values({of[MAP]})"]
        if type_ == MAP:
            made.append(f"map_filter({x}, (k, v) -> v > 1)")
        if type_ == STRUCT:
            some = self.value(columns, "INT", q, 0)
            made.append(f"named_struct('x', {some}, 'y', {self.value(columns, 'STRING', q, 0)})")
        return made

    def predicate(self, columns: tuple[Column, ...], q: str, depth: int = 1) -> str:
        r = self.random
        if depth and r.random() < 0.25:
            a, b = (self.predicate(columns, q, 0) for _ in range(2))
            return r.choice((f"({a} AND {b})", f"({a} OR {b})", f"(NOT {a})"))
        exact = Relation("", columns).exact
        if not exact:
            return "true"
        c = r.choice(exact)
        x, y = f"{q}{c.name}", self.value(columns, c.type, q, 0)
        if c.type == "BOOLEAN" and r.random() < 0.5:
            return r.choice((x, f"({x} <=> {y})", f"({x} IS NOT TRUE)"))
        if c.type == "STRING" and r.random() < 0.3:
            return f"({x} LIKE '{r.choice(('a%', '%b', '_', '%'))}')"
        some = ", ".join(self.literal(c.type) for _ in range(2))
        made = [f"({x} {op} {y})" for op in ("=", "<>", "<", ">=", "<=>")]
        made += [f"({x} IS NULL)", f"({x} IS NOT NULL)", f"({x} IN ({some}))"]
        if c.type in NUMBERS:
            made.append(f"({x} BETWEEN 1 AND 3)")
        return r.choice(made)
