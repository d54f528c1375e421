"""How the rows of a view are stored."""

from __future__ import annotations

from typing import Union

from viewkeeper.algebra.nodes import Query
from viewkeeper.algebra.sql_names import unique_names
from viewkeeper.plan.bags import BagStore
from viewkeeper.plan.groups import GroupStore, group_store
from viewkeeper.plan.tops import TopStore, top_store

Store = Union[BagStore, GroupStore, TopStore]


def store_of(query: Query) -> Store:
    """By groups, as the first rows, or as a bag.

    >>> from viewkeeper import algebra as al
    >>> R = al.table("R", ["a", "b"])
    >>> type(store_of(R.group_by(["a"], {"n": "count(*)"}))).__name__
    'GroupStore'
    >>> type(store_of(R)).__name__
    'BagStore'
    """
    return group_store(query) or top_store(query) or bag_store(query)


def bag_store(query: Query) -> BagStore:
    """As a bag, which has no columns but the view's."""
    return BagStore(query, unique_names(query.columns))
