"""INSERT, DELETE, UPDATE and MERGE, cut into the parts that Spark evaluates."""

from __future__ import annotations

import pytest

from viewkeeper.errors import ViewKeeperError
from viewkeeper.transactions.constraints import foreign_key, key, violations_sql
from viewkeeper.transactions.reading import Clause, Delete, Insert, Merge, Update, read_change

READ = [
    ("DELETE FROM s.t", Delete("s.t")),
    ("delete from `my db`.`t` where a", Delete("`my db`.`t`", "a")),
    ("DELETE FROM t x WHERE x.a = 1;", Delete("t", "x.a = 1", "x")),
    ("DELETE FROM t WHERE b = 'WHERE ;'", Delete("t", "b = 'WHERE ;'")),
    ("UPDATE t SET a = 1", Update("t", (("a", "1"),))),
    (
        "UPDATE t AS u SET `a b` = f(1, 2), u.c = CASE WHEN d THEN 1 END WHERE e IN (SELECT 1)",
        Update("t", (("a b", "f(1, 2)"), ("c", "CASE WHEN d THEN 1 END")), "e IN (SELECT 1)", "u"),
    ),
    ("INSERT INTO t VALUES (1, 'x')", Insert("t", "VALUES (1, 'x')")),
    ("INSERT INTO TABLE t SELECT a, b FROM s", Insert("t", "SELECT a, b FROM s")),
    ("INSERT INTO t (b, a) SELECT 1, 2", Insert("t", "SELECT 1, 2", ("b", "a"))),
    ("INSERT INTO t (SELECT 1)", Insert("t", "(SELECT 1)")),
    ("INSERT INTO t BY NAME SELECT 1 AS a", Insert("t", "SELECT 1 AS a", by_name=True)),
    ("INSERT INTO t WITH q AS (SELECT 1) SELECT * FROM q",
     Insert("t", "WITH q AS (SELECT 1) SELECT * FROM q")),
    (
        "MERGE INTO t USING s ON t.k = s.k WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN"
        " INSERT *",
        Merge("t", "s", "t.k = s.k", (Clause("matched", "update"), Clause("missing", "insert"))),
    ),
    (
        "MERGE INTO a.t AS x USING (SELECT * FROM u WHERE v IN (1, 2)) y ON x.k = y.k"
        " WHEN MATCHED AND y.d IS NULL THEN DELETE"
        " WHEN NOT MATCHED BY TARGET AND y.k > 0 THEN INSERT (k, v) VALUES (y.k, f(y.v, 1))"
        " WHEN NOT MATCHED BY SOURCE THEN UPDATE SET v = 0",
        Merge(
            "a.t",
            "(SELECT * FROM u WHERE v IN (1, 2))",
            "x.k = y.k",
            (
                Clause("matched", "delete", "y.d IS NULL"),
                Clause("missing", "insert", "y.k > 0", (("k", "y.k"), ("v", "f(y.v, 1)"))),
                Clause("alone", "update", None, (("v", "0"),)),
            ),
            "x",
            "y",
        ),
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), READ, ids=[text[:40] for text, _ in READ])
def test_read(text: str, wanted: object) -> None:
    assert read_change(text) == wanted


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT 1", "SELECT"),
        ("INSERT OVERWRITE t SELECT 1", "t"),
        ("INSERT INTO t", ""),
        ("INSERT INTO t PARTITION (a = 1) SELECT 2", "PARTITION"),
        ("UPDATE t SET", ""),
        ("UPDATE t a = 1", "="),
        ("DELETE FROM t WHERE", ""),
        ("MERGE INTO t USING s", ""),
        ("MERGE INTO t USING s ON a WHEN MATCHED", ""),
        ("MERGE INTO t USING s ON a WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1)", ""),
        ("MERGE WITH SCHEMA EVOLUTION INTO t USING s ON a WHEN MATCHED THEN DELETE", "SCHEMA"),
        ("DELETE FROM t WHERE a = 'open", None),
        ("", ""),
    ],
)
def test_what_cannot_be_read_is_shown(text: str, place: str | None) -> None:
    with pytest.raises(ViewKeeperError) as caught:
        read_change(text)
    assert caught.value.code == "INVALID_STATEMENT" and caught.value.hint
    if place is not None:
        start, stop = caught.value.span or (0, 0)
        assert text[start:stop] == place


def test_short_forms() -> None:
    assert "GROUP BY `a`, `b` HAVING count(*) > 1" in key("t", "a", "b").sql
    fk = foreign_key("c", ["x", "y"], "p", ["u", "v"])
    assert "ON c.`x` = p.`u` AND c.`y` = p.`v`" in fk.sql
    assert fk.given == "FOREIGN KEY c (x, y) REFERENCES p (u, v)"
    assert violations_sql(" always ( select true ) ; ").endswith("WHERE NOT `holds`")
    for wrong in (lambda: key("t"), lambda: foreign_key("c", ["x", "y"], "p", "u")):
        with pytest.raises(ViewKeeperError, match="INVALID_OPTION"):
            wrong()
