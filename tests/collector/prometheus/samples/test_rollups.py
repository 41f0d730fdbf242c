"""What MetricsQL tells of a block of ones among other values, against the samples themselves."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.prometheus.samples.asking import without_holes
from collector.prometheus.samples.rollups import BLOCK, decode
from collector.prometheus.series import catalogue as s
from collector.prometheus.sources.source import SAMPLES
from tests.collector.prometheus.builders import at
from tests.effort import examples

START, END = at("0:00"), at("3:30")
VALUES = st.sampled_from((0.0, 0.0, 1.0, 1.0, None))
SERIES = st.lists(VALUES, min_size=1, max_size=9)
Numbers = dict[str, float | None]


def rollups(before: float | None, samples: list[tuple[float, float]]) -> Numbers:
    """The functions by their definitions, with the sample before the range if there is one."""
    times, values = zip(*samples, strict=True)
    start, end = START.timestamp(), END.timestamp()
    chain = [*([(start, before)] if before is not None else []), *samples]
    pairs = list(pairwise(chain))
    changes = [time for (_, old), (time, new) in pairs if old != new]
    appears = [times[0]] if before is None else []
    area = sum(old * (time - earlier) for (earlier, old), (time, _) in pairs)
    return {
        "tfirst_over_time": times[0],
        "tmax_over_time": max(time for time, value in samples if value == max(values)),
        "tlast_change_over_time": max([*appears, *changes], default=None),
        "decreases_over_time": sum(new < old for (_, old), (_, new) in pairs),
        "integrate": area + chain[-1][1] * (end - chain[-1][0]),
        "sum_over_time": sum(values),
        "sum2_over_time": sum(value**2 for value in values),
    }


def cells(known: dict[str, Numbers]) -> pl.DataFrame:
    rows = [
        {"labels": f'{{"rollup":"{function}","uid":"{uid}"}}', "timestamp": END, "value": value}
        for uid, numbers in known.items()
        for function, value in numbers.items()
        if value is not None
    ]
    return without_holes(decode([(pl.DataFrame(rows, schema=SAMPLES), "")], s.POD_PHASE))


@settings(max_examples=examples(150), deadline=None)
@given(before=st.sampled_from((None, 0.0, 1.0)), values=SERIES, odd=st.sampled_from((1, 3, 0.5)))
def test_a_block_is_proven_only_if_it_is_that_of_the_samples(
    before: float | None, values: list[float | None], odd: float
) -> None:
    samples = [
        ((START + timedelta(minutes=1 + number, milliseconds=17)).timestamp(), value * odd)
        for number, value in enumerate(values)
        if value is not None
    ]
    if not samples:
        return
    told = rollups(before, samples)
    assert set(told) == set(BLOCK)
    calm = rollups(None, [(START.timestamp() + 60 * (1 + number), 1.0) for number in range(200)])
    found = cells({"calm": calm, "x": told}).filter(pl.col("labels").str.contains('"x"'))
    ones = [time for time, value in samples if value]
    if not ones:
        assert found.is_empty()
        return
    row = found.row(0, named=True)
    whole = len(ones) == round((ones[-1] - ones[0]) / 60) + 1
    if row["proven"]:
        assert odd == 1
        assert abs(row["first"].timestamp() - ones[0]) < 0.001
        assert abs(row["last"].timestamp() - ones[-1]) < 0.001
        assert row["count"] == len(ones)
        assert not any(value == 0 for time, value in samples if ones[0] < time < ones[-1])
    elif odd == 1 and before is None:
        assert not whole
