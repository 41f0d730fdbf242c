"""The settings as documents: flat keys with their origin, and the JSON Schema."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from cli.document import Column, Document, Section, Tile, envelope
from cli.render.json import dumps

if TYPE_CHECKING:
    from ledger.load import LoadedSettings

_SECRET = ("token", "password", "headers")
_MASK = "********"
_USERINFO = re.compile(r"://[^/@\s]+@")


def settings_document(loaded: LoadedSettings, *, origin: bool) -> Document:
    """Every setting by its dotted key, with its value in force and, if asked, its origin."""
    values = mask(loaded.settings.model_dump(mode="json"))
    rows = tuple(
        {"key": key, "value": _shown(value), "origin": _origin(key, loaded.origins)}
        for key, value in _leaves(values)
    )
    columns = [Column("key", "Key"), Column("value", "Value")]
    if origin:
        columns.append(Column("origin", "Origin"))
    data = envelope("config", path=_path(loaded), settings=values)
    if origin:
        data["origins"] = {str(row["key"]): row["origin"] for row in rows}
    section = Section("settings", "Settings in force", tuple(columns), rows)
    return Document(
        "config", f"Settings from {_path(loaded) or 'the defaults'}", data, sections=(section,)
    )


def validity_document(loaded: LoadedSettings) -> Document:
    """That the settings are valid, and what they name."""
    settings = loaded.settings
    blocks = {name: getattr(settings, name) for name in ("clusters", "billing", "storage")}
    counts = {name: len(block) for name, block in blocks.items()}
    data = envelope("config-validity", valid=True, path=_path(loaded), **counts)
    tiles = tuple(Tile(name, str(count)) for name, count in counts.items())
    title = f"{_path(loaded) or 'the defaults'}: valid"
    return Document("config-validity", title, data, tiles)


def settings_schema() -> str:
    """JSON Schema of ``runbill.yaml``, as text."""
    from ledger.settings import Settings

    schema = Settings.model_json_schema()
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "runbill settings"}
    return dumps({**schema, **head}, indent=2) + "\n"


def mask(value: object, key: str = "") -> object:
    """The value with secrets hidden: tokens, passwords, header values, user names in URLs."""
    if isinstance(value, dict):
        if key in _SECRET:
            return dict.fromkeys(value, _MASK)
        return {name: mask(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [mask(item) for item in value]
    if key in _SECRET and value is not None:
        return _MASK
    return _USERINFO.sub(f"://{_MASK}@", value) if isinstance(value, str) else value


def _leaves(value: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(item, f"{prefix}.{name}" if prefix else str(name))
    elif isinstance(value, list) and any(isinstance(item, dict) for item in value):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{prefix}.{number}")
    else:
        yield prefix, value


def _origin(key: str, origins: Mapping[str, str]) -> str:
    """The origin of a key or of the nearest block above it."""
    parts = key.split(".")
    for length in range(len(parts), 0, -1):
        if (found := origins.get(".".join(parts[:length]))) is not None:
            return found
    return "default"


def _shown(value: object) -> str | None:
    return value if isinstance(value, str) or value is None else dumps(value)


def _path(loaded: LoadedSettings) -> str | None:
    return str(loaded.path) if loaded.path else None
