"""Keys of variables as messages have them: one text, in GE's form or in that of GE's documents."""

from collections.abc import Container

from gevar.types import TensorDesc
from gevar.var.var_key import VarKey


def wire_key(key: VarKey) -> str:
    """Return a key in GE's form, without anything between name and format; two keys may have one text.

    Source: GE source, base/graph/manager/graph_var_manager.cc, VarResource::VarKey.

    Examples
    --------
    >>> from gevar.types import DataType
    >>> wire_key(VarKey("w1", 2, DataType.DT_FLOAT)), wire_key(VarKey("w", 12, DataType.DT_FLOAT))
    ('w12_0', 'w12_0')
    """
    return key.name + wire_key_ending(key.format, key.dtype)


def wire_key_ending(desc_format: int, dtype: int) -> str:
    """Return what GE's form of a key has after the name."""
    return f"{int(desc_format)}_{int(dtype)}"


def name_of_wire_key(text: str, desc: TensorDesc, names: Container[str]) -> str | None:
    """Return the name in a key, in GE's form or in the form ``name_format_dtype``.

    Parameters
    ----------
    text
        The key.
    desc
        Description that is registered under it.
    names
        Names that have a current description. They decide between the two forms where the name may end in an
        underscore; a name that is in no form among them is read in GE's form.

    Returns
    -------
    str or None
        None where the key does not end in format and data type of the description.

    Examples
    --------
    >>> from gevar.types import DataType
    >>> desc = TensorDesc(DataType.DT_FLOAT, 2, ())
    >>> name_of_wire_key("w2_0", desc, ["w"]), name_of_wire_key("w_2_0", desc, ["w"])
    ('w', 'w')
    >>> name_of_wire_key("w_2_0", desc, ["w_"])
    'w_'
    """
    ending = wire_key_ending(desc.format, desc.dtype)
    if not text.endswith(ending):
        return None
    name = text.removesuffix(ending)
    with_separator = name.removesuffix("_")
    return with_separator if name not in names and with_separator in names else name
