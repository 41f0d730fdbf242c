"""Unpacking gzip in pieces and no further than a limit: a small archive may hold terabytes."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path
from typing import IO

from ledger.errors import BadInputError

GZIP = b"\x1f\x8b"
"""How a gzip archive starts."""

_PIECE = 1 << 20


class TooLargeError(BadInputError):
    """An archive holds more than the limit."""


def unpack(packed: Path, sink: IO[bytes], limit: int, where: str) -> None:
    """Unpack an archive.

    Args:
        packed: The archive.
        sink: Takes the content.
        limit: Most bytes to unpack.
        where: Path or URL by which the user knows the archive.

    Raises:
        TooLargeError: It holds more than the limit.
        BadInputError: It is cut or damaged.
        OSError: It cannot be read, or the sink is full.
    """
    rest = limit
    try:
        with gzip.open(packed) as source:
            while piece := source.read(min(_PIECE, rest + 1)):
                rest -= len(piece)
                if rest < 0:
                    raise TooLargeError(
                        f"{where} unpacks to more than {limit / 2**30:g} GiB, "
                        f"from {packed.stat().st_size:,} bytes",
                        "is it what it should be? then unpack it yourself, or split it",
                    )
                sink.write(piece)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BadInputError(f"{where} is a gzip file that is cut or damaged: {error}") from error
