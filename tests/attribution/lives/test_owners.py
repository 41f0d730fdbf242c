"""Chains of owners that the API has lost and samples saw."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from attribution.lives.lives import merged_pods

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder


def chain(text: str) -> dict[str, object]:
    """The columns of owners of ``Kind/name Kind/name``, nearest first."""
    links = [dict(zip(("kind", "name"), part.split("/"), strict=True)) for part in text.split()]
    owners = json.dumps(links, separators=(",", ":"), sort_keys=True)
    last = links[-1] if links else {"kind": None, "name": None}
    return {"owners": owners, "root_kind": last["kind"], "root_name": last["name"]}


@pytest.mark.parametrize(
    ("api", "samples", "root"),
    [
        ("Job/a", "Job/a JobSet/b", "JobSet/b"),
        ("", "Job/a JobSet/b", "JobSet/b"),
        ("Job/a JobSet/b", "Job/a", "JobSet/b"),
        ("Job/a JobSet/b", "Job/a RayJob/c", "JobSet/b"),
        ("Job/a", "Job/ab JobSet/b", "Job/a"),
        ("Job/a", "", "Job/a"),
        ("", "", None),
    ],
)
def test_the_longer_chain_counts_where_both_begin_alike(
    new_day: type[DayBuilder], api: str, samples: str, root: str | None
) -> None:
    day = new_day().node()
    day.pod("u", **chain(api))  # type: ignore[arg-type]
    day.pod("u", interval=60.0, **chain(samples))  # type: ignore[arg-type]
    row = merged_pods(day.facts()).row(0, named=True)
    assert (row["root_name"] and f"{row['root_kind']}/{row['root_name']}") == root


@pytest.mark.parametrize(
    ("api", "samples", "role"),
    [("x:api", "x:sample", "x:api"), (None, "x:sample", "x:sample"), (None, None, None)],
)
def test_the_role_is_the_apis_else_that_of_samples(
    new_day: type[DayBuilder], api: str | None, samples: str | None, role: str | None
) -> None:
    day = new_day().node().pod("u", role=api).pod("u", interval=60.0, role=samples)
    assert merged_pods(day.facts())["role"].to_list() == [role]


def test_a_pod_that_is_gone_inherits_what_the_api_tells_of_its_job_by_others(
    new_day: type[DayBuilder],
) -> None:
    day = new_day().node()
    for uid, part in (("a", "worker"), ("b", "driver")):
        labels = json.dumps({"owner": "lin", "part": part})
        day.pod(uid, owner_labels=labels, **chain("Runner/x Tune/y"))  # type: ignore[arg-type]
    day.pod("c", interval=60.0, **chain("Runner/x"))  # type: ignore[arg-type]
    day.pod("d", interval=60.0, **chain("Runner/z"))  # type: ignore[arg-type]
    rows = {row["uid"]: row for row in merged_pods(day.facts()).iter_rows(named=True)}
    assert (rows["c"]["root_kind"], rows["c"]["root_name"]) == ("Tune", "y")
    assert json.loads(rows["c"]["owner_labels"]) == {"owner": "lin"}
    assert (rows["d"]["root_name"], rows["d"]["owner_labels"]) == ("z", None)


def test_a_name_that_two_owners_had_is_not_followed(new_day: type[DayBuilder]) -> None:
    day = new_day().node()
    day.pod("a", **chain("Runner/x Tune/y"))  # type: ignore[arg-type]
    day.pod("b", **chain("Runner/x Tune/z"))  # type: ignore[arg-type]
    day.pod("c", interval=60.0, **chain("Runner/x"))  # type: ignore[arg-type]
    rows = merged_pods(day.facts()).filter(uid="c")
    assert rows.select("root_kind", "root_name").rows() == [("Runner", "x")]
