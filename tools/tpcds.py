"""How the queries of TPC-DS would be kept as views: `python tools/tpcds.py`.

The 24 tables are made, empty, and each query is compiled and explained as if all the tables it
reads had changed; no view is made. Nearly every query ends in LIMIT 100, which is computed again at
each refresh, so each is looked at a second time without its last ORDER BY … LIMIT.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import viewkeeper as vk
from viewkeeper.algebra.nodes import GroupBy, Query
from viewkeeper.algebra.walk import postorder
from viewkeeper.compiled import Compiled, compile_view
from viewkeeper.explain import _how
from viewkeeper.plan.groups import GroupStore

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "tpcds"
FEED = "USING delta TBLPROPERTIES (delta.enableChangeDataFeed = true)"
LAST_LIMIT = re.compile(r"\s+LIMIT\s+\d+\s*$", re.I)
# what `explain` says of operators, from the least work to the most
CLASSES = ("incremental", "touched", "recomputed", "full", "refused")
MEANING = {
    "incremental": "every operator works on the change alone",
    "touched": "some operators compute touched groups, partitions or keys again",
    "recomputed": "a part is computed again and compared",
    "full": "the whole view is computed again",
    "refused": "Spark does not analyse the query, or it is no view",
}
NAMES = {"GroupBy": "GROUP BY", "Distinct": "DISTINCT", "Window": "window", "Top": "LIMIT"}
NAMES |= {"Monus": "EXCEPT", "Min": "INTERSECT", "Max": "UNION"}
SETTINGS = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m",
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
}


def queries() -> dict[str, str]:
    return {p.stem: p.read_text(encoding="utf-8") for p in sorted(FOLDER.glob("q*.sql"))}


def make_tables(spark: Any) -> None:
    for line in (FOLDER / "tables.txt").read_text(encoding="utf-8").splitlines():
        name, columns = line.split(": ", 1)
        spark.sql(f"CREATE TABLE {name} ({columns}) {FEED}")


def named(spark: Any, sql: str) -> str:
    """The query with columns c1, c2, …, for one that gives two columns the same name."""
    names = ", ".join(f"c{i}" for i, _ in enumerate(spark.sql(sql).columns, 1))
    return f"SELECT * FROM ({sql}) AS v({names})"


def judge(keeper: vk.Keeper, sql: str, *, derive: bool = True) -> dict[str, Any]:
    """The class of one query, and which operators and reasons it is due to."""
    start = time.perf_counter()
    renamed = False
    try:
        try:
            compiled = compile_view(keeper.spark, sql)
        except vk.ViewKeeperError as e:
            if e.code != "DUPLICATE_OUTPUT_COLUMN":
                raise
            renamed, compiled = True, compile_view(keeper.spark, named(keeper.spark, sql))
        blocked, steps = compiled.blocked, 0
        if derive and not blocked:
            steps = len(compiled.store.refresh(list(compiled.leaves)).computes) + 1
    except Exception as e:
        why = e.what if isinstance(e, vk.ViewKeeperError) else f"{type(e).__name__}: {e}"
        return {"class": "refused", "why": {why.splitlines()[0]: 1}}
    answer = {"steps": steps, "renamed": renamed, "seconds": round(time.perf_counter() - start, 2)}
    if blocked:
        return {"class": "full", "why": {blocked: 1}, **answer}
    nodes = postorder(compiled.query)
    hows = [(_how(q, compiled, _root(compiled))[0], q) for q in nodes]
    worst = next(c for c in ("recomputed", "touched", "incremental") if c in {h for h, _ in hows})
    why = Counter(f"{how}: {_kind(q)}" for how, q in hows if how != "incremental")
    return {"class": worst, "why": dict(why), "operators": len(nodes), **answer}


def _root(compiled: Compiled) -> GroupBy | None:
    return compiled.store.group if isinstance(compiled.store, GroupStore) else None


def _kind(q: Query) -> str:
    """The name of an operator in SQL."""
    keys = "" if getattr(q, "keys", True) else " without keys"
    return NAMES.get(type(q).__name__, type(q).__name__) + keys


def report(found: dict[str, dict[str, Any]]) -> str:
    """The table of all queries and the totals, in Markdown."""
    lines = ["| | as written | without the last LIMIT | |", "|---|---|---|---|"]
    for c in CLASSES:
        written, plain = (sum(1 for f in found.values() if f[k]["class"] == c) for k in KINDS)
        lines.append(f"| {c} | {written} | {plain} | {MEANING[c]} |")
    lines += ["", "| operator or reason | as written | without the last LIMIT |", "|---|---|---|"]
    counts = [Counter(w for f in found.values() for w in f[k]["why"]) for k in KINDS]
    for why, _ in sorted((counts[0] + counts[1]).items(), key=lambda item: -item[1]):
        lines.append(f"| {why} | {counts[0][why]} | {counts[1][why]} |")
    lines += ["", "| query | as written | without the last LIMIT | the latter due to |"]
    lines.append("|---|---|---|---|")
    for name, f in found.items():
        why = ", ".join(f"{w}" + (f" ×{n}" if n > 1 else "") for w, n in f["plain"]["why"].items())
        note = "; columns renamed" if f["written"].get("renamed") else ""
        lines.append(f"| {name} | {f['written']['class']} | {f['plain']['class']} | {why}{note} |")
    return "\n".join(lines)


KINDS = ("written", "plain")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write all that was found to this file")
    parser.add_argument("--only", nargs="*", help="some of the queries: q01 q14a …")
    options = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as lake, vk.connect(lake, SETTINGS) as keeper:
        make_tables(keeper.spark)
        for name, sql in queries().items():
            if options.only and name not in options.only:
                continue
            plain = LAST_LIMIT.sub("", sql)
            written = judge(keeper, sql)  # with the steps of a refresh, which must compile
            other = judge(keeper, plain, derive=False) if plain != sql else written
            found[name] = {"written": written, "plain": other}
            print(f"{name}: {written['class']}, {other['class']}", file=sys.stderr, flush=True)
    print(report(found))
    if options.json:
        options.json.write_text(json.dumps(found, indent=2, ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())
