"""Constraints: queries that must stay empty, and the short forms of the usual ones."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from viewkeeper.algebra.changes.transactions import violations
from viewkeeper.algebra.nodes import Empty, Query
from viewkeeper.algebra.simplify.facts import Facts
from viewkeeper.algebra.simplify.rewrite import simplify
from viewkeeper.algebra.walk import postorder
from viewkeeper.compiled import Compiled
from viewkeeper.errors import ViewKeeperError
from viewkeeper.lake.sources import quoted
from viewkeeper.records import InvalidOptionError, NotIncrementalError, Record

_ALWAYS = re.compile(r"ALWAYS\s*\((.*)\)", re.IGNORECASE | re.DOTALL)
_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.DOTALL)
_PIECE = re.compile(  # a comment, a text or a name in quotes, or any other character
    rf"(?P<comment>{_COMMENT.pattern})"
    r"|'(?:\\.|[^'\\])*'"
    r'|"(?:\\.|[^"\\])*"'
    r"|`[^`]*`|.",
    re.DOTALL,
)
_MOST_NODES = 60  # of a query that is looked at for proofs
KINDS = ("insert", "delete", "both")


@dataclass(frozen=True)
class Constraint:
    """A constraint as it is kept.

    Attributes
    ----------
    name : str
    sql : str
        The query that must stay empty.
    given : str
        What the user gave: the query, or its short form.
    """

    name: str
    id: str
    sql: str
    given: str
    catalog: str
    schema: str
    created: str
    columns: tuple[tuple[str, str], ...] = ()
    reads: tuple[str, ...] = ()
    insertions_only: bool = False  # deletions cannot violate it
    # the versions at which it was last known to hold, by leaf
    holds_at: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    settings: tuple[tuple[str, str], ...] = ()  # of the session in which it was added
    # what tells whether a view or function of Spark's in it was redefined: "" without any, None in
    # constraints of earlier versions
    names: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The constraint as plain values."""
        return dataclasses.asdict(self)

    @staticmethod
    def of(found: Mapping[str, Any]) -> Constraint:
        """The constraint of plain values."""
        pairs = {
            key: tuple((n, t) for n, t in found.get(key, ())) for key in ("columns", "settings")
        }
        return Constraint(**{**found, "reads": tuple(found["reads"]), **pairs})

    @property
    def record(self) -> Record:
        """The same as a view that has no store, for compiling."""
        return Record(
            self.id, self.name, self.name, self.sql, self.catalog, self.schema, "",
            columns=self.columns, reads=self.reads, settings=self.settings,
        )  # fmt: skip


def plain(constraint: Constraint) -> dict[str, object]:
    """What JSON gives back as it was."""
    found = constraint.as_dict()
    for key in ("columns", "settings"):
        found[key] = [list(pair) for pair in found[key]]
    found["reads"] = list(constraint.reads)
    return found


def check_incremental(name: str, compiled: Compiled) -> None:
    """Raises if the query of a constraint is not one whose change can be found."""
    if compiled.blocked:
        raise NotIncrementalError(
            f"the constraint {name} cannot be checked by the change: {compiled.blocked}",
            hint="Take this part out of the query, or of the view that has it.",
        )


@dataclass(frozen=True)
class Form:
    """A short form of a constraint."""

    sql: str
    given: str
    insertions_only: bool = False


def key(table: str, *columns: str | Sequence[str]) -> Form:
    """No two rows of a table share these columns; NULL is like nothing else.

    Examples
    --------
    >>> key("orders", "id").given
    'KEY orders (id)'
    >>> key("items", ["order_id", "line"]).given
    'KEY items (order_id, line)'
    """
    names = [name for given in columns for name in _columns(given)]
    return Form(key_sql(table, names), f"KEY {table} ({', '.join(names)})", True)


def foreign_key(
    table: str,
    columns: str | Sequence[str],
    parent: str,
    parent_columns: str | Sequence[str] | None = None,
) -> Form:
    """Each row of a table has a row of the parent; with NULL in the columns it needs none.

    Examples
    --------
    >>> foreign_key("items", "order_id", "orders", "id").given
    'FOREIGN KEY items (order_id) REFERENCES orders (id)'
    """
    ours = _columns(columns)
    theirs = _columns(parent_columns or ours)
    given = f"FOREIGN KEY {table} ({', '.join(ours)}) REFERENCES {parent} ({', '.join(theirs)})"
    return Form(foreign_key_sql(table, ours, parent, theirs), given)


def violations_sql(text: str) -> str:
    """The query of violations: the query itself, or that of an assertion.

    >>> violations_sql("SELECT * FROM t WHERE a < 0")
    'SELECT * FROM t WHERE a < 0'
    >>> violations_sql("ALWAYS (SELECT count(*) = 1 FROM t)")
    'SELECT `holds` FROM (SELECT count(*) = 1 FROM t) AS `__q` (`holds`) WHERE NOT `holds`'
    """
    text = _bare(text)
    found = _ALWAYS.fullmatch(text)
    if found is None:
        return text
    inner = found[1].strip()
    end = "\n" if "--" in inner else ""  # the bracket is no part of a comment
    return f"SELECT `holds` FROM ({inner}{end}) AS `__q` (`holds`) WHERE NOT `holds`"


def _bare(text: str) -> str:
    """A text without the blanks, comments and semicolons before and after it.

    >>> _bare("-- few\\n ALWAYS (SELECT '--' /* a */ FROM t) ; -- b")
    "ALWAYS (SELECT '--' /* a */ FROM t)"
    """
    pieces = [m for m in _PIECE.finditer(text) if not m["comment"] and not m[0].isspace()]
    while pieces and pieces[-1][0] == ";":
        pieces.pop()
    return text[pieces[0].start() : pieces[-1].end()] if pieces else ""


def key_sql(table: str, columns: Sequence[str]) -> str:
    """No two rows of a table share the columns; rows with a NULL in them are not compared.

    >>> key_sql("t", ["a"])
    'SELECT `a`, count(*) AS `rows` FROM t WHERE `a` IS NOT NULL GROUP BY `a` HAVING count(*) > 1'
    """
    names = ", ".join(quoted(c) for c in _columns(columns))
    known = " AND ".join(f"{quoted(c)} IS NOT NULL" for c in _columns(columns))
    return (
        f"SELECT {names}, count(*) AS `rows` FROM {table} WHERE {known}"
        f" GROUP BY {names} HAVING count(*) > 1"
    )


def foreign_key_sql(
    table: str, columns: Sequence[str], parent: str, parent_columns: Sequence[str]
) -> str:
    """Each row of a table, unless NULL is in the columns, has a row of the parent.

    >>> print(foreign_key_sql("c", ["k"], "p", ["id"]))
    SELECT c.* FROM c AS c LEFT ANTI JOIN p AS p ON c.`k` = p.`id` WHERE c.`k` IS NOT NULL
    """
    ours, theirs = _columns(columns), _columns(parent_columns)
    if len(ours) != len(theirs):
        raise InvalidOptionError(
            f"{len(ours)} columns of {table} refer to {len(theirs)} of {parent}",
            hint="Give as many of the one as of the other.",
        )
    same = " AND ".join(f"c.{quoted(a)} = p.{quoted(b)}" for a, b in zip(ours, theirs, strict=True))
    known = " AND ".join(f"c.{quoted(a)} IS NOT NULL" for a in ours)
    return f"SELECT c.* FROM {table} AS c LEFT ANTI JOIN {parent} AS p ON {same} WHERE {known}"


def _columns(given: str | Sequence[str]) -> list[str]:
    found = [given] if isinstance(given, str) else list(given)
    if not found:
        raise InvalidOptionError("no columns are given", hint="Name at least one.")
    return found


# ── what cannot violate it ──


class Proofs:
    """What must be evaluated of a constraint after which kinds of change, found once each."""

    def __init__(self) -> None:
        self._found: dict[Any, Query | None] = {}

    def added(
        self, constraint: Constraint, compiled: Compiled, kinds: Mapping[str, str]
    ) -> Query | None:
        """ΔQ after changes of these kinds, by leaf, made as small as can be proved: over the tables
        before (R) and their changes (∇R, ΔR). None where no rule of the papers covers it."""
        key = constraint.id, compiled.query, tuple(sorted(kinds.items()))
        if key not in self._found:
            self._found[key] = added_by(compiled.query, kinds)
        return self._found[key]

    def untouched(
        self, constraint: Constraint, compiled: Compiled, kinds: Mapping[str, str]
    ) -> bool:
        """Whether changes of these kinds, by leaf, cannot violate it."""
        plain_tables = not compiled.names  # a view of Spark's may gain rows by deletions
        only_deleted = set(kinds.values()) == {"delete"}
        if not kinds or (constraint.insertions_only and only_deleted and plain_tables):
            return True
        return isinstance(self.added(constraint, compiled, kinds), Empty)


def added_by(query: Query, kinds: Mapping[str, str]) -> Query | None:
    """ΔQ of a query after changes of these kinds, by table; ∅ if it stays empty.

    >>> from viewkeeper import algebra as al
    >>> child, parent = al.table("C", ["k"]), al.table("P", ["id"])
    >>> orphans = child.anti(parent, "k = id")
    >>> for kinds in ({"C": "insert"}, {"C": "delete"}, {"P": "insert"}):
    ...     print(added_by(orphans, kinds))
    ΔC ▷[k = id] P
    ∅[k]
    ∅[k]
    >>> print(added_by(orphans, {"C": "insert", "P": "insert"}))
    ΔC ▷[k = id] (P ⊎ ΔP)
    """
    if len(postorder(query)) > _MOST_NODES:
        return None
    facts = Facts(
        append_only=[n for n, k in kinds.items() if k == "insert"],
        insert_free=[n for n, k in kinds.items() if k == "delete"],
    )
    try:
        return simplify(violations(query, list(kinds)), facts)
    except (ViewKeeperError, RecursionError):  # no rule of the papers for it
        return None
