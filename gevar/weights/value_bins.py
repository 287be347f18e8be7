"""The option ``ge.exec.value_bins``: paths of weight files by id.

Source: GE source, base/common/file_constant_utils/file_constant_utils.cc, GetFileIdToPath.
Differs: edge 31 of docs/differences.md.
"""

import json
from typing import Final

VALUE_BINS: Final = "ge.exec.value_bins"
"""Name of the option."""


def value_bins(text: str) -> dict[str, str]:
    """Return the files in the option's text, by id; the first one of an id counts. No text has no files.

    Raises
    ------
    ValueError
        The text is no JSON, or not an object with lists of records.

    Examples
    --------
    >>> value_bins('{"value_bins": [{"value_bin_id": "a", "value_bin_file": "a.bin"}]}')
    {'a': 'a.bin'}
    """
    if not text:
        return {}
    try:
        lists: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"option {VALUE_BINS} is no JSON: {error}") from error
    if not isinstance(lists, dict) or not all(isinstance(records, list) for records in lists.values()):
        raise ValueError(f"option {VALUE_BINS} is {text!r:.60}: give an object with lists of records")
    found: dict[str, str] = {}
    for record in (record for records in lists.values() for record in records):
        if not isinstance(record, dict):
            raise ValueError(f"option {VALUE_BINS} has the record {record!r:.60}: give an object")
        name, file = record.get("value_bin_id", ""), record.get("value_bin_file", "")
        if not isinstance(name, str) or not isinstance(file, str):
            raise ValueError(f"option {VALUE_BINS} has the record {record!r:.60}: give texts")
        found.setdefault(name, file)
    return found
