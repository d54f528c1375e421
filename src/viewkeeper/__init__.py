"""viewkeeper: incremental materialized views for Apache Spark.

>>> import viewkeeper as vk
>>> keeper = vk.connect("./lake")                                         # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from viewkeeper.errors import ViewKeeperError

if TYPE_CHECKING:
    from viewkeeper.keeper import Keeper, connect
    from viewkeeper.records import RefreshReport

__all__ = ["Keeper", "RefreshReport", "ViewKeeperError", "connect"]
_HOMES = {"Keeper": "keeper", "connect": "keeper", "RefreshReport": "records"}


def __getattr__(name: str) -> Any:
    """The parts that need Spark are loaded when they are first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'viewkeeper' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"viewkeeper.{_HOMES[name]}"), name)
