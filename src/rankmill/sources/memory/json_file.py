"""Read one JSON object or list: by query, as pytrec_eval and ranx have it, or a table."""

import json
import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rankmill.columns.objects import shown
from rankmill.errors import InputError, UsageError
from rankmill.sources.files.files import File
from rankmill.sources.files.text_blocks import last_character, read_blocks
from rankmill.sources.input_options import InputOptions
from rankmill.sources.memory.documents import open_document
from rankmill.sources.roles.source import Source


def open_files(files: Sequence[File], name: str, asked: InputOptions) -> Source:
    """Open a file that holds one JSON object; it is read whole, and held in memory."""
    if len(files) > 1:
        raise InputError(
            f"{name}: a JSON object by query is one file, but there are {len(files)}; give one, or "
            "write JSON Lines"
        )
    (file,) = files
    text = b"".join(block.data.tobytes() for block in read_blocks(file, last_character))
    huge = re.search(rb"[eE]\+?[0-9]{3}", text) is not None
    try:
        found = json.loads(text, object_pairs_hook=_object, parse_float=_finite if huge else float)
    except ValueError as error:
        raise InputError(
            f"{file.name}: {error}; expected one JSON object or list, or JSON Lines"
        ) from None
    if not isinstance(found, dict | list):
        raise InputError(f"{file.name} holds {shown(found)}; expected an object or a list")
    try:
        return replace(open_document(found, asked, file.name), format="JSON")
    except UsageError as error:  # of an argument in Python; here it is the file that is wrong
        raise InputError(str(error)) from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of some names and values; json keeps the last of equal names without a word."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((again, _),) = Counter(name for name, _ in pairs).most_common(1)
        raise ValueError(f"the name {again!r} appears twice in one object")
    return found


def _finite(text: str) -> float:
    """The number of a text; json makes one that is too large infinite without a word."""
    if math.isinf(float(text)):
        raise ValueError(f"the number {text} is too large for float64")
    return float(text)
