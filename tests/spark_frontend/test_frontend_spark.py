"""Agrees: a query written back from the algebra gives the same rows and types as the query."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tables import bag, make, queries, types

from spark_oracle import local_table, session
from viewkeeper.algebra import nodes
from viewkeeper.algebra.scalars import Agg
from viewkeeper.algebra.walk import postorder, tables
from viewkeeper.errors import ViewKeeperError
from viewkeeper.frontend import Definition, DuplicateOutputColumnError, NotAQueryError, read


@pytest.fixture(scope="module", autouse=True)
def _tables(spark: Any) -> Iterator[None]:
    spark.sql("CREATE DATABASE IF NOT EXISTS front")
    spark.sql("USE front")
    make(spark)
    yield
    spark.sql("USE default")


def agrees(spark: Any, query: Any) -> Definition:
    """The definition of a query, after both ways gave the same rows and types."""
    definition = read(spark, query)
    assert definition.unsupported is None
    assert definition.volatile is None
    once = spark.sql(query) if isinstance(query, str) else query
    again = spark.sql(definition.to_sql())
    assert types(again) == types(once)
    if isinstance(query, str):  # the same over local relations, which need no look at a log
        here = LOCAL.get("session") or LOCAL.setdefault("session", local_session(spark))
        text = definition.to_sql().replace("`spark_catalog`.`front`.", "")
        once, again = here.sql(query), here.sql(text)
    assert bag(again) == bag(once)
    return definition


LOCAL: dict[str, Any] = {}


def local_session(spark: Any) -> Any:
    """A session in which the tables are local relations."""
    found = session(spark)
    for row in spark.sql("SHOW TABLES IN front").collect():
        if not row.isTemporary:
            name = f"front.{row.tableName}"
            local_table(spark, found, name).createOrReplaceTempView(row.tableName)
    return found


@pytest.mark.parametrize("query", queries())
def test_round_trip_agrees(spark: Any, query: str) -> None:
    agrees(spark, query)


def _frames(spark: Any) -> dict[str, Any]:
    from pyspark.sql import Window
    from pyspark.sql import functions as F

    r, s = spark.table("r"), spark.table("s")
    partition = Window.partitionBy("a").orderBy("n", "b")
    return {
        "filter": r.filter("a > 1").filter(F.col("b").isNotNull()).select("a", "b"),
        "where": r.where((F.col("a") == 1) | F.col("n").between(0, 2)).select("a", "n"),
        "withColumn": r.select("a", "n").withColumn("m", F.col("n") * 2).drop("n"),
        "rename": r.select("a", "b").withColumnRenamed("b", "bee").toDF("p", "q"),
        "groupBy": r.groupBy("a").agg(F.sum("n").alias("s"), F.countDistinct("b").alias("c")),
        "count": r.groupBy("a", F.year("d").alias("y")).count(),
        "mean": r.groupBy("b").mean("x"),
        "pivotless agg": r.agg(F.max("big").alias("m"), F.count(F.lit(1)).alias("c")),
        "rollup": r.rollup("a", "b").agg(F.sum("n").alias("s"), F.grouping_id().alias("g")),
        "cube": r.cube("a", "b").count(),
        "join using": r.join(s, "a").select("a", "b", "c"),
        "join on": r.alias("r").join(s.alias("s"), F.expr("r.a = s.a"), "left").select("r.a", "c"),
        "join outer": r.join(s, ["a"], "outer").select("a", "b", "c"),
        "semi": r.join(s, "a", "left_semi").select("a", "b"),
        "anti": r.join(s, r.a == s.a, "left_anti").select("a", "b"),
        "cross": r.select("a").crossJoin(s.select("c")),
        "self": r.alias("p").join(r.alias("q"), F.expr("p.a = q.a")).select("p.a", "q.b"),
        "union": r.select("a").union(s.select("c")),
        "unionByName": r.select("a", "b").unionByName(s.select("a", "c"), allowMissingColumns=True),
        "exceptAll": r.select("a").exceptAll(s.select("a")),
        "subtract": r.select("a").subtract(s.select("a")),
        "intersectAll": r.select("a").intersectAll(s.select("a")),
        "distinct": r.select("a", "b").distinct(),
        "dropDuplicates": r.select("a", "b").dropDuplicates(),
        "dropDuplicates all": r.select("a", "b").dropDuplicates(["b", "a"]),
        "dropDuplicates some": r.select("b", "a").dropDuplicates(["a"]).select("a"),
        "window": r.select("a", "n", F.row_number().over(partition).alias("rn")),
        "running": r.select("a", F.sum("n").over(partition.rowsBetween(-1, 0)).alias("s")),
        "lag": r.select("a", F.lag("n", 2).over(partition).alias("l")),
        "first per group": r.withColumn("rn", F.row_number().over(partition))
        .filter("rn = 1")
        .select("a", "b"),
        "na.fill": r.select("a", "b", "n").na.fill({"a": 0, "b": "none"}),
        "na.drop": r.select("a", "b").na.drop(),
        "replace": r.select("a", "b").replace("x", "z"),
        "explode": r.select("a", F.explode_outer("arr").alias("e")),
        "posexplode": r.select("a", F.posexplode("arr")),
        "when": r.select(F.when(F.col("a") > 1, "big").otherwise("small").alias("w")),
        "higher order": r.select(F.transform("arr", lambda e: e + 1).alias("t")),
        "struct": r.select(F.struct("a", "b").alias("s")).select("s.a", "s"),
        "withField": r.select(F.col("st").withField("z", F.lit(1)).alias("s")),
        "orderBy limit": r.select("a", "n").orderBy(F.desc("n"), "a").limit(3),
        "hint": r.join(s.hint("broadcast"), "a").select("a", "c"),
        "repartition": r.repartition(3, "a").sortWithinPartitions("b").select("a", "b"),
        "range": spark.range(3).withColumn("t", F.col("id") + 1),
        "literals": r.select(
            "a", F.lit(5).alias("i"), F.lit(1.5).alias("f"), F.lit("q").alias("t")
        ),
        "cast": r.select(F.col("a").cast("decimal(10,2)").alias("c"), F.col("d").cast("string")),
        "time window": r.groupBy(F.window("t", "1 day")).count().select("window.start", "count"),
        "selectExpr": r.selectExpr("a + 1 AS a1", "upper(b) AS u"),
        "path": spark.read.format("delta").load(_path(spark, "s")).select("a", "c"),
        "unpivot": s.unpivot(["e"], ["a", "c"], "k", "v"),
    }


def _path(spark: Any, table: str) -> str:
    return str(spark.sql(f"DESCRIBE DETAIL {table}").first()["location"])


def test_dataframes_agree(spark: Any) -> None:
    for name, frame in _frames(spark).items():
        try:
            agrees(spark, frame)
        except AssertionError as e:
            raise AssertionError(f"DataFrame case {name!r}: {e}") from e


# ── what a definition tells ──


def test_sources(spark: Any) -> None:
    d = agrees(
        spark, "SELECT r.a, pq.b FROM r JOIN pq ON r.a = pq.a JOIN r AS again ON again.a = 1"
    )
    assert d.query is not None
    assert [t.name for t in tables(d.query)] == ["spark_catalog.front.r", "spark_catalog.front.pq"]
    source = d.sources["spark_catalog.front.r"]
    assert source.parts == ("spark_catalog", "front", "r")
    assert (source.provider, source.path) == ("delta", None)
    assert source.sql == "`spark_catalog`.`front`.`r`"
    assert d.sources["spark_catalog.front.pq"].provider == "parquet"


def test_path_source(spark: Any) -> None:
    path = _path(spark, "s")
    d = agrees(spark, f"SELECT a FROM delta.`{path}`")
    (source,) = d.sources.values()
    assert (source.parts, source.provider) == ((), "delta")
    assert source.path is not None
    assert source.path.endswith("/s")


def test_leaf_holds_all_columns(spark: Any) -> None:
    d = agrees(spark, "SELECT c FROM s")
    assert d.query is not None
    assert tables(d.query)[0].names == ("a", "c", "e")


@pytest.mark.parametrize(
    ("call", "agg"),
    [
        ("count(*)", Agg("count", (), False, "")),
        ("sum(n)", ("sum", False, "decimal(12,2)")),
        ("sum(DISTINCT a)", ("sum", True, "int")),
        ("avg(x)", ("avg", False, "double")),
        ("min(b)", ("min", False, "string")),
        ("max(DISTINCT b)", ("max", False, "string")),
        ("bool_and(a > 1)", ("min", False, "boolean")),
        ("some(a > 1)", ("max", False, "boolean")),
        ("count_if(a > 1)", ("count", False, "int")),
        ("count(*) FILTER (WHERE a > 1)", ("count", False, "int")),
        ("stddev(n)", ("stddev_samp", False, "double")),
        ("count(DISTINCT a, b)", ("count", True, "int")),
    ],
)
def test_aggregates_are_structure(spark: Any, call: str, agg: Any) -> None:
    d = agrees(spark, f"SELECT {call} AS v FROM r")
    assert d.query is not None
    (group,) = [q for q in postorder(d.query) if isinstance(q, nodes.GroupBy)]
    (found,) = group.aggs
    assert isinstance(found, Agg)
    assert found is agg or (found.function, found.distinct, found.type) == agg


def test_notation(spark: Any) -> None:
    d = agrees(spark, "SELECT a, b FROM r WHERE a > 1 AND b IN ('x', 'y')")
    assert str(d.query) == "Π[a, b](σ[a > 1 AND b IN ('x', 'y')](`spark_catalog.front.r`))"
    d = agrees(spark, "SELECT a, e FROM s WHERE a NOT IN (SELECT k FROM one)")
    assert any(isinstance(q, nodes.Anti) for q in postorder(d.query))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("SELECT a, current_date() AS d FROM r", "current_date"),
        ("SELECT a FROM r WHERE t < now()", "now"),
        ("SELECT a FROM r WHERE t < current_timestamp()", "current_timestamp"),
        ("SELECT a FROM r WHERE a IN (SELECT a FROM s WHERE rand() > 0.5)", "rand"),
        ("SELECT uuid() AS u FROM r", "uuid"),
        ("WITH q AS (SELECT monotonically_increasing_id() AS i FROM r) SELECT * FROM q", "monoton"),
        ("SELECT input_file_name() AS f FROM r", "input_file_name"),
        ("SELECT current_user() AS u FROM r", "user"),
        ("SELECT * FROM r TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT unix_timestamp() AS u FROM r", "current_timestamp"),
    ],
)
def test_volatile(spark: Any, query: str, word: str) -> None:
    volatile = read(spark, query).volatile
    assert volatile is not None
    assert word in volatile


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("SELECT * FROM r VERSION AS OF 0", "fixed version"),
        ("SELECT *, _metadata.file_path AS p FROM r", "_metadata"),
        ("SELECT * FROM r TABLESAMPLE (10 PERCENT)", "sample"),
        (
            "WITH RECURSIVE q(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM q WHERE n < 5)"
            " SELECT * FROM q",
            "recursive",
        ),
        ("SELECT a, (SELECT v FROM one WHERE one.k > r.a) AS v FROM r", "scalar subquery"),
        ("SELECT b FROM r LEFT JOIN one ON r.a = k AND r.a NOT IN (SELECT a FROM s)", "NOT IN"),
        ("SELECT a FROM r WHERE int(a IN (SELECT a FROM s)) = 0", "compared with a constant"),
    ],
)
def test_unsupported(spark: Any, query: str, word: str) -> None:
    d = read(spark, query)
    assert d.query is None
    assert d.unsupported is not None
    assert word in d.unsupported


def test_unsupported_dataframes(spark: Any) -> None:
    from pyspark.sql import functions as F

    r = spark.table("r")
    plus = F.udf(lambda v: (v or 0) + 1, "int")
    chance = F.udf(lambda v: v, "int").asNondeterministic()
    cases = {
        "lives in this session": r.select(plus("a").alias("p")),
        "mapInPandas": r.select("a").mapInPandas(lambda batches: batches, "a int"),
        "only this session holds": r.select("a").localCheckpoint(),
        "stream": spark.readStream.table("s"),
    }
    for word, frame in cases.items():
        d = read(spark, frame)
        assert d.unsupported is not None
        assert word in d.unsupported
    assert "another value" in (read(spark, r.select(chance("a").alias("p"))).volatile or "")


def test_all_sources_of_an_untranslated_query(spark: Any) -> None:
    spark.udf.register("plus_one", lambda v: (v or 0) + 1, "int")
    query = "SELECT x FROM (SELECT plus_one(a) AS x FROM s) JOIN one ON x = one.k"
    query += " WHERE x IN (SELECT a FROM r)"
    found = read(spark, query)
    assert found.query is None and "plus_one" in (found.unsupported or "")
    assert {name.rsplit(".", 1)[-1] for name in found.sources} == {"r", "s", "one"}
    assert not found.complete, "the function may be another one next time"
    known = read(spark, "SELECT a, (SELECT v FROM one WHERE one.k > r.a) AS v FROM r")
    assert known.query is None and known.complete


def test_several_rows_of_a_scalar_subquery_raise(spark: Any) -> None:
    for query in (
        "SELECT a, (SELECT c FROM s) AS c FROM r",
        "SELECT a, (SELECT c FROM s WHERE s.a = r.a) AS c FROM r",
    ):
        with pytest.raises(Exception, match="more than one row"):
            spark.sql(read(spark, query).to_sql()).collect()


def test_notes(spark: Any) -> None:
    assert read(spark, "SELECT a, sum(n) AS s FROM r GROUP BY a").notes == ()
    (note,) = read(spark, "SELECT a, first(b) AS f FROM r GROUP BY a").notes
    assert note.startswith("first ")
    (note,) = read(spark, "SELECT a, row_number() OVER (ORDER BY a) AS n FROM r").notes
    assert note.startswith("row_number ")
    (note,) = read(spark, spark.table("r").dropDuplicates(["a"]).select("a")).notes
    assert note.startswith("dropDuplicates ")
    (note,) = read(spark, "SELECT a FROM r LIMIT 2").notes
    assert "Without ORDER BY" in note


def test_errors(spark: Any) -> None:
    with pytest.raises(DuplicateOutputColumnError, match=r"DUPLICATE_OUTPUT_COLUMN.*'A'"):
        read(spark, "SELECT a, b, a AS A FROM r")
    before = spark.table("one").count()
    for statement in ("INSERT INTO one VALUES (9, 9)", "DROP TABLE one", "SHOW TABLES"):
        with pytest.raises(NotAQueryError, match="NOT_A_QUERY"):
            read(spark, statement)
    assert spark.table("one").count() == before
    assert issubclass(NotAQueryError, ViewKeeperError)
