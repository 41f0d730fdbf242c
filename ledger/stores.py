"""The ``storage`` block of the settings: what is inventoried, and how the bill names it."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

StoreName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$")]


class StoreBlock(BaseModel):
    """What all kinds of stores have: frozen, and unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    name: StoreName | None = Field(None, description="default: the last part of the path")
    path: str = Field(description="folder; local, or s3:// for an inventory")
    depth: int = Field(
        1, ge=0, le=16, description="levels of folders told apart beside the `path:` rules"
    )
    required: bool = True

    @property
    def label(self) -> str:
        """The name, else what the last part of the path makes of one."""
        last = re.sub(r"[^A-Za-z0-9._-]+", "-", self.path.rstrip("/").rpartition("/")[2])
        return self.name or last.lstrip("._-")[:63] or self.kind

    @property
    def source(self) -> str:
        """The name of its collector: the source column of its rows holds it."""
        return f"storage/{self.label}"


class FileSystemStore(StoreBlock):
    """A file system whose folders are walked."""

    kind: Literal["filesystem"]
    resource: str | None = Field(
        None, description="the file system as the bill names it, e.g. fs-0abc; default: the name"
    )


class InventoryStore(StoreBlock):
    """Reports of S3 Inventory: the folder that holds them, at any depth."""

    kind: Literal["s3-inventory"]
    bucket: str | None = Field(
        None, description="the bucket that is inventoried; default: all that have reports there"
    )


Store = Annotated[FileSystemStore | InventoryStore, Field(discriminator="kind")]
