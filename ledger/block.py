"""What the blocks of the settings share: their base, and the types of common fields."""

from __future__ import annotations

from typing import Annotated
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BaseModel, ConfigDict, Field


def _known_zone(name: str) -> str:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"{name!r} is not an IANA time zone, e.g. Asia/Shanghai") from error
    return name


TimeZone = Annotated[str, AfterValidator(_known_zone)]
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]


class Block(BaseModel):
    """A block of the settings: frozen, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)
