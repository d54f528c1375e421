"""What Spark can compare, in the place of the values that it cannot.

Spark groups rows by maps, but gives them back with their entries in another order, which functions
such as ``map_keys`` show. An array of the entries as they stand gives the same map again. Variants
it does not even group. NULL without a type (VOID) is nothing that a table can hold.
"""

from __future__ import annotations

from pyspark.sql.types import (
    ArrayType,
    DataType,
    MapType,
    NullType,
    StructField,
    StructType,
    VariantType,
)

from viewkeeper.frontend.definition import quoted


def comparable(field: StructField) -> str:
    """SQL for what tells a column's values apart; of a variant its text and its types.

    >>> from pyspark.sql.types import LongType
    >>> comparable(StructField("a", LongType()))
    '`a`'
    >>> comparable(StructField("m", MapType(LongType(), LongType())))
    'map_entries(`m`)'
    >>> comparable(StructField("v", VariantType()))
    'struct(to_json(`v`), schema_of_variant(`v`))'
    """
    return _text(quoted(field.name), field.dataType, "key")


def is_stored_otherwise(kind: DataType) -> bool:
    """Whether ``as_stored`` changes values of a type.

    >>> from pyspark.sql.types import LongType
    >>> [is_stored_otherwise(k) for k in (LongType(), ArrayType(MapType(LongType(), LongType())))]
    [False, True]
    """
    return as_stored("x", kind) != "x"


def as_stored(sql: str, kind: DataType) -> str:
    """A value of SQL with arrays in the place of its maps, and a type for each NULL.

    >>> from pyspark.sql.types import LongType
    >>> as_stored("m", MapType(LongType(), LongType())), as_stored("n", NullType())
    ('map_entries(m)', 'CAST(n AS BOOLEAN)')
    """
    return _text(sql, kind, "stored")


def as_shown(sql: str, kind: DataType) -> str:
    """The value of a type again, from what ``as_stored`` gives.

    >>> from pyspark.sql.types import LongType
    >>> as_shown("a", ArrayType(MapType(LongType(), LongType())))
    'transform(a, __e0 -> map_from_entries(__e0))'
    """
    return _text(sql, kind, "shown")


def _text(x: str, kind: DataType, to: str, depth: int = 0) -> str:
    """SQL for a value changed in all its parts; ``x`` itself where none changes."""
    e = f"__e{depth}"
    if isinstance(kind, StructType):
        made = [(f, _text(f"{x}.{quoted(f.name)}", f.dataType, to, depth)) for f in kind.fields]
        if all(y == f"{x}.{quoted(f.name)}" for f, y in made):
            return x
        fields = ", ".join(f"{y} AS {quoted(f.name)}" for f, y in made)
        return f"IF({x} IS NULL, NULL, struct({fields}))"
    if isinstance(kind, ArrayType):
        element = _text(e, kind.elementType, to, depth + 1)
        return x if element == e else f"transform({x}, {e} -> {element})"
    if isinstance(kind, MapType):
        key, value = (
            _text(f"{e}.{name}", part, to, depth + 1)
            for name, part in (("key", kind.keyType), ("value", kind.valueType))
        )
        pairs = x if to == "shown" else f"map_entries({x})"
        if (key, value) != (f"{e}.key", f"{e}.value"):
            pairs = f"transform({pairs}, {e} -> struct({key} AS key, {value} AS value))"
        return f"map_from_entries({pairs})" if to == "shown" else pairs
    if isinstance(kind, NullType) and to != "key":
        return "NULL" if to == "shown" else f"CAST({x} AS BOOLEAN)"
    if isinstance(kind, VariantType) and to == "key":
        return f"struct(to_json({x}), schema_of_variant({x}))"
    return x
