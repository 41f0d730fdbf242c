"""Multi-Instance GPU: what a profile is of a card, and how many of them one card holds.

Source: NVIDIA's MIG user guide, "Supported MIG profiles". A card of 7 compute slices has 8 slices
of memory, so that it is cut by whichever runs out first. Models are compared word by word: an
RTX A3000 or an A300 is no A30.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

# Compute slices of a card → slices of its memory, and the sizes of instance that it can be cut in.
_MEMORY_SLICES = {7: 8, 4: 4, 2: 2}
_SIZES = {7: (1, 2, 3, 4, 7), 4: (1, 2, 4), 2: (1, 2)}
# Words of a model → compute slices, and GB where the model alone tells it.
_MODELS: tuple[tuple[tuple[str, ...], int, int | None], ...] = (
    (("RTX", "PRO", "6000"), 4, 96),
    (("RTX", "PRO", "5000"), 2, None),
    (("RTX", "PRO", "4500"), 2, 32),
    (("GH200",), 7, 96),
    (("GB200",), 7, 186),
    (("GB300",), 7, 279),
    (("B300",), 7, 270),
    (("B200",), 7, 180),
    (("B100",), 7, None),
    (("H200",), 7, 141),
    (("H20", "3E"), 7, 141),
    (("H20",), 7, 96),
    (("H100", "NVL"), 7, 94),
    (("H100",), 7, 80),
    (("H800",), 7, 80),
    (("TESLA", "A100"), 7, 40),  # GKE's name of the first one
    (("A100",), 7, None),
    (("A100X",), 7, 80),
    (("A800",), 7, None),
    (("A30",), 4, 24),
    (("A30X",), 4, 24),
)
_SIZE = re.compile(r"([0-9]{2,3})GB?")
_MOST_GB = 400  # on one card: "GH200 480GB" names the memory of its processor
_PROFILE = re.compile(r"(?:([1-9])c\.)?([1-9])g\.([1-9][0-9]{0,3})gb((?:[.+-][a-z]+)*)", re.I)
_PRODUCT = re.compile(r"(.*?)-MIG-(.+?)(?:-SHARED)?", re.I)


@dataclass(frozen=True)
class Profile:
    """A MIG profile, e.g. ``1c.3g.40gb+me``.

    Args:
        compute: Compute slices that a tenant has: those of the compute instance, if it names one.
        slices: Compute slices of the GPU instance.
        gb: Memory in GB, as the name rounds it.
        media: Whether it takes the card's media engines, so that a card has only one of it.
    """

    compute: int
    slices: int
    gb: int
    media: bool


@dataclass(frozen=True)
class Model:
    """A card that can be cut.

    Args:
        slices: Compute slices of the whole card.
        gb: Nominal memory in GB; None if its name does not tell it.
    """

    slices: int
    gb: int | None


@lru_cache(maxsize=1024)
def profile(text: str) -> Profile | None:
    """Read a profile; suffixes may stand behind ``+``, ``.`` or ``-``. None if it is none."""
    match = _PROFILE.fullmatch(text)
    if match is None:
        return None
    compute, slices, gb, suffix = match.groups()
    found = Profile(
        int(compute or slices), int(slices), int(gb), bool(re.match(r"[.+]me\b", suffix, re.I))
    )
    return found if found.compute <= found.slices else None


@lru_cache(maxsize=1024)
def model(text: str) -> Model | None:
    """The card that a product name or an accelerator's label speaks of; None if not known."""
    words = re.split(r"[^A-Z0-9]+", text.upper())
    for name, slices, gb in _MODELS:
        if any(tuple(words[at : at + len(name)]) == name for at in range(len(words))):
            sizes = [
                int(word.rstrip("GB")) for word in words if re.fullmatch(r"[0-9]{2,3}GB?", word)
            ]
            # "GH200 480GB" names the memory of its processor, not of its card.
            told = next((size for size in sizes if size < 400), gb)
            return Model(slices, told)
    return None


def product_parts(product: str) -> tuple[str, str] | None:
    """Card and profile of a product of strategy ``single``: ``A100-SXM4-40GB-MIG-1g.5gb``."""
    match = _PRODUCT.fullmatch(product)
    return (match[1], match[2]) if match else None


def card_name(product: str) -> str:
    """The card that a product names, without what it says of the layout: ``A100-SXM4-40GB``."""
    parts = product_parts(product)
    return parts[0] if parts else re.sub("-SHARED$", "", product, flags=re.I)


def share(of: Profile | None, card: Model | None) -> Fraction | None:
    """What an instance is of a card: compute slices ÷ those of the card; None = not known."""
    if of is None or card is None or of.slices not in _SIZES[card.slices]:
        return None
    return Fraction(of.compute, card.slices)


def per_card(of: Profile | None, card: Model | None) -> int | None:
    """How many instances of one profile a card holds; None = not known.

    Compute or memory runs out first: 7 of ``1g.5gb`` on an A100 of 40 GB, 4 of ``1g.10gb``, 2 of
    ``3g.20gb``, which leave a seventh of the card that nobody can use.
    """
    if of is None or card is None or share(of, card) is None:
        return None
    instances = card.slices // of.slices
    if card.gb:
        every = _MEMORY_SLICES[card.slices]
        instances = min(
            instances, every // min(every, max(1, round(Fraction(of.gb * every, card.gb))))
        )
    if of.media:
        instances = 1
    return instances * (of.slices // of.compute)
