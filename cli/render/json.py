"""JSON: the document as other programs read it; money is a decimal string."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal

from cli.document import Document
from cli.render.text import scalar


def to_json(documents: Sequence[Document]) -> str:
    """One JSON text: a document as an object, several (one per currency) as an array of them."""
    data = [document.data for document in documents]
    return dumps(data[0] if len(data) == 1 else data, indent=2) + "\n"


def dumps(data: object, indent: int | None = None) -> str:
    """JSON text in ASCII (safe on any terminal); NaN is refused, decimals are strings."""
    return json.dumps(data, indent=indent, allow_nan=False, default=_encode)


def _encode(value: object) -> str:
    if isinstance(value, Decimal | date | datetime):
        return scalar(value)
    raise TypeError(f"{type(value).__name__} has no place in a JSON document")
