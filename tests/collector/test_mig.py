"""MIG profiles: the share of a card, and how many of them a card holds."""

from __future__ import annotations

from fractions import Fraction

import pytest

from collector.mig import model, per_card, product_parts, profile, share

A100, A100_80, A30 = "NVIDIA-A100-SXM4-40GB", "NVIDIA-A100-SXM4-80GB", "NVIDIA-A30"


@pytest.mark.parametrize(
    ("card", "text", "of_a_card", "instances"),
    [
        (A100, "1g.5gb", "1/7", 7),
        (A100, "1g.10gb", "1/7", 4),
        (A100, "2g.10gb", "2/7", 3),
        (A100, "3g.20gb", "3/7", 2),
        (A100, "4g.20gb", "4/7", 1),
        (A100, "7g.40gb", "1", 1),
        (A100_80, "1g.10gb", "1/7", 7),
        (A100_80, "1g.20gb", "1/7", 4),
        ("NVIDIA-A100-80GB-PCIe", "3g.40gb", "3/7", 2),
        ("nvidia-tesla-a100", "1g.10gb", "1/7", 4),
        ("NVIDIA-H100-80GB-HBM3", "1g.10gb", "1/7", 7),
        ("NVIDIA-H100-PCIe", "1g.20gb", "1/7", 4),
        ("NVIDIA-H100-NVL", "3g.47gb", "3/7", 2),
        ("NVIDIA-H200", "1g.18gb", "1/7", 7),
        ("NVIDIA-H200", "1g.35gb", "1/7", 4),
        ("NVIDIA-H200", "3g.71gb", "3/7", 2),
        ("NVIDIA-H20-3e", "1g.18gb", "1/7", 7),
        ("NVIDIA-H20", "1g.12gb", "1/7", 7),
        ("NVIDIA-GH200-480GB", "1g.12gb", "1/7", 7),
        ("NVIDIA-GH200-480GB", "7g.96gb", "1", 1),
        ("NVIDIA-GH200-144G-HBM3e", "1g.18gb", "1/7", 7),
        ("NVIDIA-B200", "1g.23gb", "1/7", 7),
        ("NVIDIA-B200", "1g.45gb", "1/7", 4),
        ("NVIDIA-GB200", "3g.93gb", "3/7", 2),
        ("NVIDIA-A800-SXM4-80GB", "2g.20gb", "2/7", 3),
        (A30, "1g.6gb", "1/4", 4),
        (A30, "2g.12gb", "1/2", 2),
        (A30, "4g.24gb", "1", 1),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "1g.24gb", "1/4", 4),
        ("NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition", "2g.48gb+gfx", "1/2", 2),
        ("NVIDIA-RTX-PRO-5000-Blackwell", "1g.24gb", "1/2", 2),
        # A compute instance is told apart inside its GPU instance.
        ("NVIDIA-H100-80GB-HBM3", "1c.3g.40gb", "1/7", 6),
        ("NVIDIA-H100-80GB-HBM3", "2c.4g.40gb", "2/7", 2),
        # The media engines of a card belong to one instance.
        ("NVIDIA-H100-80GB-HBM3", "1g.10gb+me", "1/7", 1),
        ("NVIDIA-H100-80GB-HBM3", "1g.10gb.me", "1/7", 1),
        ("NVIDIA-RTX-PRO-6000", "1g.24gb+me.all", "1/4", 1),
        ("NVIDIA-RTX-PRO-6000", "1g.24gb-me", "1/4", 4),
    ],
)
def test_a_profile_on_its_card(card: str, text: str, of_a_card: str, instances: int) -> None:
    assert share(profile(text), model(card)) == Fraction(of_a_card)
    assert per_card(profile(text), model(card)) == instances


@pytest.mark.parametrize(
    "card",
    [
        "NVIDIA-RTX-A3000",
        "NVIDIA-A3000",
        "NVIDIA-A300",
        "NVIDIA-XA100",
        "NVIDIA-RTX-6000-Ada-Generation",
        "NVIDIA-RTX-A6000",
        "NVIDIA-RTX-PRO-60000",
        "NVIDIA-L40S",
        "NVIDIA-H2000",
        "",
    ],
)
def test_a_card_that_is_not_known_has_no_shares(card: str) -> None:
    assert model(card) is None
    assert share(profile("1g.5gb"), model(card)) is None
    assert per_card(profile("1g.5gb"), model(card)) is None


@pytest.mark.parametrize("text", ["9g.80gb", "5g.40gb", "2c.1g.10gb", "INVALID", "g.5gb", "", "1g"])
def test_a_profile_that_no_card_has_is_unknown(text: str) -> None:
    assert share(profile(text), model(A100)) is None
    assert per_card(profile(text), model(A100)) is None


def test_a_profile_of_another_card_is_unknown() -> None:
    assert share(profile("3g.20gb"), model(A30)) is None
    assert share(profile("7g.40gb"), model("NVIDIA-RTX-PRO-5000")) is None


def test_a_product_under_strategy_single_names_card_and_profile() -> None:
    assert product_parts("A100-SXM4-40GB-MIG-1g.5gb") == ("A100-SXM4-40GB", "1g.5gb")
    assert product_parts("NVIDIA-A30-MIG-2g.12gb-SHARED") == ("NVIDIA-A30", "2g.12gb")
    assert product_parts("NVIDIA-A30") is None
