"""Read one JSON object by query, such as {"q1": {"d1": 0.9}}, the shape of pytrec_eval and ranx."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from rankmill.errors import InputError, UsageError
from rankmill.sources.files.files import File
from rankmill.sources.files.text_blocks import read_blocks
from rankmill.sources.input_options import InputOptions, Role
from rankmill.sources.memory.python_objects import open_mapping
from rankmill.sources.roles.source import Source


def open_files(files: Sequence[File], name: str, asked: InputOptions) -> Source:
    """Open a file that holds one JSON object; it is read whole, and held in memory."""
    if len(files) > 1:
        raise InputError(
            f"{name}: a JSON object by query is one file, but there are {len(files)}; give one, or "
            "write JSON Lines"
        )
    (file,) = files
    text = b"".join(block.data.tobytes() for block in read_blocks(file, _last_ascii))
    try:
        found = json.loads(text, object_pairs_hook=_object)
    except ValueError as error:
        raise InputError(f"{file.name}: {error}; expected one JSON object") from None
    if not isinstance(found, dict):
        raise InputError(
            f"{file.name} holds a JSON {type(found).__name__}; expected an object by query"
        )
    return _source(found, file.name, asked.role)


def _last_ascii(data: np.ndarray, quotes: bool) -> int:
    """Where the last character of one byte ends, because an object may stand in one long line."""
    end = len(data)
    while end and data[end - 1] >= 0x80:
        end -= 1
    return end


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of some names and values; json keeps the last of equal names without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((again, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the name {again!r} appears twice in one object")
    return found


def _source(found: dict[str, Any], name: str, role: Role) -> Source:
    try:
        source = replace(open_mapping(found, role, name), format="JSON", text_ids=True)
    except UsageError as error:  # of an argument in Python; here it is the file that is wrong
        raise InputError(str(error)) from None
    return replace(source, typed=lambda types: _source(_typed(found, types, name), name, role))


def _typed(found: dict[Any, Any], types: Mapping[str, Any], name: str) -> dict[Any, Any]:
    """The object with integers for the ids that are to be integers; JSON has no such names."""
    if "query" in types:
        found = {_integer(query, name): items for query, items in found.items()}
    if "items" in types:
        found = {
            query: {_integer(item, name): number for item, number in items.items()}
            if isinstance(items, dict)
            else items
            for query, items in found.items()
        }
    return found


def _integer(text: Any, name: str) -> Any:
    if isinstance(text, str) and not re.fullmatch(r"0|-?[1-9][0-9]*", text):
        raise InputError(
            f"{name}: the id {text[:60]!r} is not an integer; ids are integers on both sides, or "
            "strings on both"
        )
    return int(text)
