"""Reading the settings: file, environment and flags, and where each value came from."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, EnvSettingsSource, SettingsConfigDict

from ledger.errors import SettingsError
from ledger.settings import Settings

PREFIX = "RUNBILL_"
_NOT_SETTINGS = {"RUNBILL_CONFIG", "RUNBILL_DEBUG", "RUNBILL_SHARED", "RUNBILL_CI"}
_REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True)
class LoadedSettings:
    """Checked settings and where they came from.

    Args:
        settings: The settings in force.
        path: The file, or None if there was none.
        base: The folder that relative paths refer to.
        origins: Dotted key of each value that was given to "flag", "environment" or the file.
    """

    settings: Settings
    path: Path | None
    base: Path
    origins: Mapping[str, str]


class _Environment(BaseSettings, Settings):
    """Only there so that pydantic-settings knows the names and types of the variables."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_nested_delimiter="__")


def load_settings(
    config: Path | None = None, overrides: Mapping[str, Any] | None = None
) -> LoadedSettings:
    """Read the settings in force.

    Args:
        config: The file the user named; else the search path of ``ledger.settings`` applies.
        overrides: Values the user typed as flags, nested like the file.

    Raises:
        SettingsError: A file is missing or no YAML, a key or variable is unknown, a value is
            wrong, or ``${NAME}`` is not set.
    """
    path = find_file(config)
    layers = {
        str(path): _read(path) if path else {},
        "environment": _environment(),
        "flag": dict(overrides or {}),
    }
    data: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, layer in layers.items():
        data = _merge(data, layer)
        origins.update((key, origin) for key in _keys(layer))
    try:
        settings = Settings.model_validate(data)
    except ValidationError as error:
        raise _explain(error.errors(), origins, str(path) if path else "the settings") from None
    base = path.parent if path else Path.cwd()
    return LoadedSettings(settings, path, base.absolute(), origins)


def find_file(config: Path | None = None) -> Path | None:
    """The settings file in force, or None.

    Raises:
        SettingsError: The file that ``config`` or ``$RUNBILL_CONFIG`` names is not there.
    """
    named = config or (Path(value) if (value := os.environ.get("RUNBILL_CONFIG")) else None)
    if named:
        if not named.is_file():
            raise SettingsError(f"there is no settings file {named}", "write one: runbill init")
        return named
    xdg = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    places = (
        Path("runbill.yaml"),
        Path(xdg) / "runbill/runbill.yaml",
        Path("/etc/runbill/runbill.yaml"),
    )
    return next((p for place in places if (p := place.expanduser()).is_file()), None)


class _RepeatedKeyError(yaml.YAMLError):
    """A key that stands twice in one block: YAML would keep the last one in silence."""

    def __init__(self, key: object, first: int, again: int) -> None:
        super().__init__(f"the key {key} stands twice, in line {first} and in line {again}")


def _read(path: Path) -> dict[str, Any]:
    try:
        data = _parse(path.read_text(encoding="utf-8-sig"))
    except _RepeatedKeyError as error:
        raise SettingsError(f"{path}: {error}", "join the two blocks") from error
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        text = " ".join(str(error).split())
        raise SettingsError(f"{path} is not YAML: {text}") from error
    if data is None:
        return {}
    if not isinstance(data, dict):
        raise SettingsError(f"{path} must hold keys and values, e.g. 'timezone: UTC'")
    return {str(key): _resolve(value, f"{path}: {key}") for key, value in data.items()}


def _parse(text: str) -> Any:  # noqa: ANN401 - YAML has any shape
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _refuse_repeated_keys(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def _refuse_repeated_keys(root: yaml.Node) -> None:
    """Look before references are merged: a block may say again what it takes from another."""
    rest, seen = [root], set[int]()
    while rest:
        node = rest.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            rest.extend(node.value)
        elif isinstance(node, yaml.MappingNode):
            rest.extend(value for _, value in node.value)
            lines: dict[str, int] = {}
            for key in (key for key, _ in node.value if isinstance(key, yaml.ScalarNode)):
                line = key.start_mark.line + 1
                if key.value in lines:
                    raise _RepeatedKeyError(key.value, lines[key.value], line)
                lines[key.value] = line


def _resolve(value: Any, where: str) -> Any:  # noqa: ANN401 - YAML has any shape
    """Replace ``${NAME}`` in strings, at any depth."""
    if isinstance(value, dict):
        return {str(key): _resolve(item, f"{where}.{key}") for key, item in value.items()}
    if isinstance(value, list):
        return [_resolve(item, where) for item in value]
    if not isinstance(value, str):
        return value
    for name in _REFERENCE.findall(value):
        if name not in os.environ:
            raise SettingsError(f"{where} needs the environment variable {name}", f"set {name}")
    return _REFERENCE.sub(lambda match: os.environ[match[1]], value)


def _environment() -> dict[str, Any]:
    given = {name for name in os.environ if name.startswith(PREFIX)} - _NOT_SETTINGS
    for name in sorted(given):
        top = name.removeprefix(PREFIX).split("__")[0].lower()
        if top not in Settings.model_fields:
            near = _nearest(top, Settings.model_fields)
            hint = f"did you mean {PREFIX}{near.upper()}" if near else None
            raise SettingsError(f"the environment variable {name} is no setting", hint)
    try:
        return dict(EnvSettingsSource(_Environment)())
    except ValueError as error:
        raise SettingsError(f"environment: {error}", "lists and blocks are JSON") from error


def _merge(below: dict[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = dict(below)
    for key, value in above.items():
        old = merged.get(key)
        both = isinstance(old, dict) and isinstance(value, Mapping)
        merged[key] = _merge(old, value) if isinstance(old, dict) and both else value
    return merged


def _keys(layer: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key, value in layer.items():
        if isinstance(value, Mapping):
            yield from _keys(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}"


def _explain(errors: list[ErrorDetails], origins: Mapping[str, str], default: str) -> SettingsError:
    """One line for the first error: the dotted key, what is wrong, and the nearest name."""
    error, others = errors[0], len(errors) - 1
    loc = [str(part) for part in error["loc"]]
    key, hint = ".".join(loc), None
    where = next((o for k, o in origins.items() if f"{key}.".startswith(f"{k}.")), default)
    if error["type"] == "extra_forbidden":
        near = _nearest(loc[-1], _names_beside(error["loc"]))
        message = f"{where}: unknown key {key}"
        hint = f"did you mean {near}" if near else "see: runbill config schema"
    else:
        text = error["msg"].removeprefix("Value error, ")
        message = f"{where}: {key}: {text}" if key else f"{where}: {text}"
    if others:
        message += f" (and {others} more)"
    return SettingsError(message, hint)


def _names_beside(loc: tuple[int | str, ...]) -> list[str]:
    """The keys that would have been right where ``loc`` ends."""
    model: Any = Settings
    for part in loc[:-1]:
        if isinstance(part, int):
            continue
        field = getattr(model, "model_fields", {}).get(part)
        if field is None:
            return []
        model = next((m for m in _models(field.annotation)), None)
    return list(getattr(model, "model_fields", {}))


def _models(annotation: Any) -> Iterator[type[BaseModel]]:  # noqa: ANN401 - a type expression
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from _models(inner)


def _nearest(name: str, names: Any) -> str | None:  # noqa: ANN401 - any iterable of names
    return next(iter(difflib.get_close_matches(name, list(names), n=1, cutoff=0.5)), None)
