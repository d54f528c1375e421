"""viewkeeper: incremental materialized views for Apache Spark.

>>> import viewkeeper as vk
>>> keeper = vk.connect("./lake")                                         # doctest: +SKIP
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from viewkeeper.errors import ViewKeeperError

if TYPE_CHECKING:
    from viewkeeper.keeper import Keeper, connect
    from viewkeeper.lake.errors import ConflictError
    from viewkeeper.records import RefreshReport
    from viewkeeper.transactions.constraints import foreign_key, key
    from viewkeeper.transactions.errors import ConstraintViolation

__all__ = [
    "ConflictError", "ConstraintViolation", "Keeper", "RefreshReport", "ViewKeeperError", "connect",
    "foreign_key", "key",
]  # fmt: skip
_HOMES = {
    "Keeper": "keeper",
    "connect": "keeper",
    "RefreshReport": "records",
    "ConflictError": "lake.errors",
    "ConstraintViolation": "transactions.errors",
    "foreign_key": "transactions.constraints",
    "key": "transactions.constraints",
}


def __getattr__(name: str) -> Any:
    """The parts that need Spark are loaded when they are first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module 'viewkeeper' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"viewkeeper.{_HOMES[name]}"), name)
