"""Host lists: what Slurm writes is read back, what was cut is refused."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.slurm.hostlist import HostListError, expand
from tests.effort import examples


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("n1", "n1"),
        ("gpu[001-003,007]", "gpu001 gpu002 gpu003 gpu007"),
        ("cpu-a[1-2]b[3,4]", "cpu-a1b3 cpu-a1b4 cpu-a2b3 cpu-a2b4"),
        ("a[08-11]-ib,login,b[1]", "a08-ib a09-ib a10-ib a11-ib login b1"),
        ("n[1-2],n2", "n1 n2"),
        ("q-dy-p5-[1-2].a.local", "q-dy-p5-1.a.local q-dy-p5-2.a.local"),
    ],
)
def test_expands(text: str, hosts: str) -> None:
    assert expand(text) == tuple(hosts.split())


@pytest.mark.parametrize("text", ["", "None assigned", "(null)", "N/A", " None "])
def test_no_nodes(text: str) -> None:
    assert expand(text) == ()


@pytest.mark.parametrize(
    "text",
    [
        "gpu[001-",
        "gpu0+",
        "a b",
        "[1-2",
        "a]",
        "x[1-]",
        "x[5-2]",
        "x[0-99999999]",
        "a,,b",
        ",",
        "a[1-2[3]]",
        "x[]",
        "n[1-400]m[1-400]",
    ],
)
def test_refuses(text: str) -> None:
    with pytest.raises(HostListError):
        expand(text)


def test_ten_thousand_nodes() -> None:
    hosts = expand("c[00001-10000]")
    assert (len(hosts), hosts[0], hosts[-1]) == (10_000, "c00001", "c10000")


def _compress(prefix: str, suffix: str, numbers: list[int], width: int) -> str:
    """Slurm's own form: ranges of numbers of one width."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][1] + 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    parts = [f"{a:0{width}}" if a == b else f"{a:0{width}}-{b:0{width}}" for a, b in ranges]
    return f"{prefix}[{','.join(parts)}]{suffix}"


@settings(max_examples=examples(100))
@given(
    st.lists(
        st.tuples(
            st.from_regex(r"[a-z]{1,3}-?", fullmatch=True),
            st.sampled_from(["", "-ib", ".local"]),
            st.sets(st.integers(0, 999), min_size=1, max_size=30),
            st.integers(1, 5),
        ),
        min_size=1,
        max_size=3,
        unique_by=lambda each: each[:2],
    )
)
def test_what_is_compressed_comes_back(groups: list[tuple[str, str, set[int], int]]) -> None:
    expected: dict[str, None] = {}
    texts = []
    for prefix, suffix, numbers, width in groups:
        ordered = sorted(numbers)
        texts.append(_compress(prefix, suffix, ordered, width))
        expected |= dict.fromkeys(f"{prefix}{n:0{width}}{suffix}" for n in ordered)
    assert expand(",".join(texts)) == tuple(expected)
