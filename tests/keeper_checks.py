"""What tests of a keeper share: errors by their codes, rows as bags, tables of the schema bank."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import viewkeeper as vk
from viewkeeper.errors import ViewKeeperError

FEED = "USING delta TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')"


def bag(frame: Any) -> Counter[Any]:
    return Counter(map(tuple, frame.collect()))


def table(keeper: vk.Keeper, name: str) -> Counter[Any]:
    return bag(keeper.spark.table(f"bank.{name}"))


def make(keeper: vk.Keeper, name: str, columns: str, rows: str = "", more: str = FEED) -> None:
    keeper.spark.sql(f"CREATE TABLE bank.{name} ({columns}) {more}")
    if rows:
        keeper.spark.sql(f"INSERT INTO bank.{name} VALUES {rows}")


def fails(code: str, run: Any) -> ViewKeeperError:
    with pytest.raises(ViewKeeperError) as caught:
        run()
    assert caught.value.code == code, str(caught.value)
    assert caught.value.hint
    return caught.value
