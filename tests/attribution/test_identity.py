"""Which rule names what."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

from attribution.identity import (
    ambiguous_labels,
    first_hit,
    label,
    name_lines,
    name_pods,
    pod_rule,
    rule_hits,
    tag,
)
from attribution.lives.labels import aliases
from attribution.phases import add_phase
from ledger.errors import SettingsError
from ledger.schema import CHARGES
from ledger.settings import Identity, Settings

if TYPE_CHECKING:
    from tests.attribution.conftest import DayBuilder


def value(expr: pl.Expr, labels: dict[str, str]) -> object:
    return pl.DataFrame({"labels": [json.dumps(labels)]}).select(expr).item()


@pytest.mark.parametrize(
    ("key", "labels", "expected"),
    [
        ("foo-bar", {"foo-bar": "a", "foo_bar": "b"}, "a"),
        ("foo_bar", {"foo-bar": "a", "foo_bar": "b"}, "b"),
        ("foo-bar", {"foo_bar": "b"}, None),
        ("foo-bar", {"label_foo_bar": "a"}, "a"),
        ("fooBar", {"label_foo_bar": "a"}, "a"),
        ("fooBar", {"label_fooBar": "a"}, "a"),
        ("foo-bar", {"label_foo_bar_conflict1": "a", "label_foo_bar_conflict2": "b"}, None),
        ("foo-bar", {"label_foo_bar": "a", "label_foo_bar_conflict2": "b"}, None),
        ("team.example/owner", {"team.example/owner": "lin"}, "lin"),
        ("team.example/owner", {"label_team_example_owner": "lin"}, "lin"),
        ("it's", {"it's": "x"}, "x"),
        ("empty", {"empty": ""}, None),
        ("sly", {"sly": "__idle__"}, None),
    ],
)
def test_label(key: str, labels: dict[str, str], expected: str | None) -> None:
    assert value(label("labels", key), labels) == expected


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({"team.example/owner": "lin"}, "lin"),
        ({"annotation_team_example_owner": "lin"}, "lin"),
        ({"annotation_team_example_owner": "lin", "team.example/owner": "wei"}, "wei"),
        ({"label_team_example_owner": "lin"}, None),
        (
            {
                "annotation_team_example_owner_conflict1": "lin",
                "annotation_team_example_owner_conflict2": "wei",
            },
            None,
        ),
    ],
)
def test_an_annotation_is_found_in_its_sanitised_form(
    annotations: dict[str, str], expected: str | None
) -> None:
    rule = pod_rule("annotation:team.example/owner")
    assert rule is not None
    frame = pl.DataFrame({"annotations": [json.dumps(annotations)]})
    assert frame.select(rule).item() == expected


@pytest.mark.parametrize("kind", ["label", "owner-label", "annotation"])
def test_keys_that_collide_are_named(new_day: type[DayBuilder], kind: str) -> None:
    form = "annotation" if kind == "annotation" else "label"
    column = {"label": "labels", "owner-label": "owner_labels", "annotation": "annotations"}[kind]
    told = json.dumps({f"{form}_a_b_conflict1": "x", f"{form}_a_b_conflict2": "y"})
    empty = {name: "{}" for name in ("labels", "owner_labels", "annotations")}
    day = new_day().node().pod("u", interval=60.0)
    lives = day.frame_of("workloads").with_columns(
        pl.lit(text).alias(name) for name, text in {**empty, column: told}.items()
    )
    settings = Settings(identity=Identity(owner=(f"{kind}:a-b",)))
    gaps = ambiguous_labels(lives, settings)
    assert [(gap.reason, gap.amounts) for gap in gaps] == [("ambiguous_label", {"pods": 1.0})]
    assert f"{kind} a-b" in gaps[0].detail


def test_aliases_are_the_sanitised_forms() -> None:
    assert aliases("ray.io/clusterName") == [
        "label_ray_io_cluster_name",
        "label_ray_io_clusterName",
    ]


def test_a_key_that_cannot_be_looked_up_is_refused() -> None:
    with pytest.raises(SettingsError, match="cannot be looked up"):
        label("labels", "a'b\"c")


@pytest.mark.parametrize("key", ["owner", "user:owner", "user_owner"])
def test_tags_are_found_with_the_providers_prefix(key: str) -> None:
    assert value(tag("labels", "owner"), {key: "lin"}) == "lin"


def test_rules_are_tried_in_order(new_day: type[DayBuilder]) -> None:
    day = new_day().node()
    day.pod("a", labels={"experiment": "by-label"}, root_name="job")
    day.pod("b", owner_labels='{"experiment":"by-owner"}', root_name="job")
    day.pod("c", annotations='{"experiment":"by-annotation"}', root_name="job")
    day.pod("d", environment='{"WANDB_RUN_GROUP":"by-env"}', root_name="job")
    day.pod("e", root_name="job").pod("f")
    hits = rule_hits(day.frame_of("workloads"), Settings()).filter(pl.col("key") == "experiment")
    assert list(hits.select("uid", "rule", "value").iter_rows()) == [
        ("a", "label:experiment", "by-label"),
        ("b", "owner-label:experiment", "by-owner"),
        ("c", "annotation:experiment", "by-annotation"),
        ("d", "env:WANDB_RUN_GROUP", "by-env"),
        ("e", "workload", "job"),
        ("f", None, None),
    ]


def test_the_rule_that_is_told_is_the_one_that_named_the_cost(new_day: type[DayBuilder]) -> None:
    """Samples know a pod's sanitised labels, the API its owners' and its own: the API names it."""
    day = new_day().node().node(interval=60)
    for uid in "abcdef":
        day.pod(uid, gpus=1, root_name="sampled", interval=60)
        day.pod(uid, gpus=1, root_name="sampled", owner_labels='{"experiment":"grpo"}')
    day.pod("seen", gpus=1, root_name="sampled", interval=60).pod("waits", node=None)
    day.line("l1")
    rows = day.frame_of("workloads")
    told = rule_hits(rows, Settings())
    for seed in range(8):
        assert rule_hits(rows.sample(fraction=1, shuffle=True, seed=seed), Settings()).equals(told)
    hits = told.filter(pl.col("key") == "experiment")
    assert dict(hits.select("uid", "rule").iter_rows()) == {
        **dict.fromkeys("abcdef", "owner-label:experiment"),
        "seen": "workload",
        "waits": None,
    }
    named = day.attribute().costs.filter(pl.col("uid").is_not_null())
    assert set(named.select("uid", "experiment").iter_rows()) == set(
        hits.filter(pl.col("uid") != "waits").select("uid", "value").iter_rows()
    )


def test_pods_that_share_texts_are_each_named_as_if_alone() -> None:
    mine, other, none = '{"experiment":"a","owner":"x"}', '{"experiment":"b"}', "{}"
    pods = pl.DataFrame(
        {
            "uid": ["1", "2", "3", "4", "5"],
            "labels": [mine, none, other, mine, None],
            "owner_labels": [none, mine, mine, other, none],
            "annotations": [none, none, None, none, none],
            "environment": [none] * 5,
            "root_name": ["j", "k", "j", None, None],
            "namespace": ["n", "n", "m", "m", None],
        }
    )
    settings = Settings(identity=Identity(owner=("default:lin",), pipeline=("namespace",)))
    rules = settings.identity.experiment
    named = name_pods(pods, settings)
    assert named.drop("experiment", "model_version", "pipeline", "owner", "project").equals(pods)
    assert named["experiment"].to_list() == ["a", "a", "b", "a", None]
    assert named["experiment"].equals(pods.select(first_hit(rules, pod_rule).alias("e"))["e"])
    assert named["owner"].to_list() == ["lin"] * 5
    assert named["pipeline"].to_list() == ["n", "n", "m", "m", None]


def test_pods_are_named_where_no_rule_reads_a_column() -> None:
    rules = dict.fromkeys(("experiment", "model_version", "pipeline", "owner", "project"), ())
    settings = Settings(identity=Identity(**rules))
    named = name_pods(pl.DataFrame({"uid": ["1", "2"]}), settings)
    assert named.rows() == [("1", *[None] * 5), ("2", *[None] * 5)]


def test_no_pod_no_rule(new_day: type[DayBuilder]) -> None:
    assert rule_hits(new_day().frame_of("workloads"), Settings()).is_empty()


@pytest.mark.parametrize(
    ("resource", "tags", "expected"),
    [
        ("arn:aws:s3:::rollouts/grpo-7b/x", {}, "grpo-7b"),
        ("s3://rollouts/grpo-7b/", {}, "grpo-7b"),
        ("s3://rollouts/grpo-7b", {"experiment": "tagged"}, "tagged"),
        ("s3://other/grpo-7b", {}, None),
        ("s3://rollouts.evil/grpo-7b", {}, None),
    ],
)
def test_bill_lines_are_named_by_tag_and_path(
    resource: str, tags: dict[str, str], expected: str | None
) -> None:
    settings = Settings(
        identity=Identity(experiment=("label:experiment", "path:s3://rollouts/{experiment}/"))
    )
    lines = pl.DataFrame(
        {"Tags": [json.dumps(tags)], "ResourceId": [resource], "ResourceName": [None]},
        schema={
            name: CHARGES.columns[name].dtype for name in ("Tags", "ResourceId", "ResourceName")
        },
    )
    assert name_lines(lines, settings)["experiment"].item() == expected


@pytest.mark.parametrize(
    ("role", "root", "expected"),
    [
        ("ray-group:rollout-workers", "grpo", "rollout"),
        ("ray-group:vllm", "grpo", "rollout"),
        ("ray-group:trainer", "grpo", "update"),
        ("ray-group:reward-model", "grpo", "reward"),
        ("replicated-job:llm-judge", "grpo", "reward"),
        ("ray-group:ref", "grpo", "reference"),
        ("ray-group:prefill", "grpo", "unknown"),
        ("ray-group:worker", "grpo", "unknown"),
        ("ray-node-type:head", "grpo", "unknown"),
        ("replica-type:Worker", "sft-7b", "update"),
        ("replica-type:worker", "eval-math", "evaluation"),
        ("replicated-job:trainer", "sft", "update"),
        ("replicated-job:dataset-initializer", "sft", "data"),
        ("replicated-job:launcher", "moe", "unknown"),
        ("replica-type:launcher", "moe", "unknown"),
        ("replica-type:chief", "tf", "update"),
        ("replica-type:ps", "tf", "update"),
        ("replica-type:evaluator", "tf", "evaluation"),
        ("task-spec:trainer", "kto", "update"),
        ("task-spec:worker", "kto", "unknown"),
        ("trainjob-ancestor-step:trainer", "sft", "update"),
        ("trainjob-ancestor-step:dataset-initializer", "sft", "data"),
        ("trainjob-ancestor-step:model-initializer", "sft", "unknown"),
        ("task-type:trial", "sweep", "update"),
        ("task-type:notebook", "sweep", "unknown"),
        ("step:train", "flow", "update"),
        ("step:fine-tune-model", "flow", "update"),
        ("step:train-reward-model", "flow", "update"),
        ("step:score-with-judge", "flow", "reward"),
        ("step:evaluate", "flow", "evaluation"),
        ("step:prepare-data", "flow", "data"),
        ("step:trained-model-upload", "flow", "unknown"),
        ("spark-role:executor", "clean", "data"),
        ("spark-role:driver", "clean", "unknown"),
        ("kserve-component:predictor", "chat", "serve"),
        ("lws:leader", "llm", "unknown"),
        ("lws:worker", "llm", "unknown"),
        ("sky-node-type:head", "sft", "unknown"),
        ("slurm:node", "gpu", "unknown"),
        (None, "eval-math", "evaluation"),
        (None, "medieval", "unknown"),
        (None, None, "unknown"),
    ],
)
def test_phase_of_a_role(
    new_day: type[DayBuilder], role: str | None, root: str | None, expected: str
) -> None:
    rows = new_day().pod("u", role=role, root_name=root).frame_of("workloads")
    assert add_phase(rows, Settings())["phase"].item() == expected


@pytest.mark.parametrize(
    ("kind", "root", "role", "expected"),
    [
        ("Deployment", "judge-72b", None, "reward"),
        ("LeaderWorkerSet", "grpo-rollout", "lws:worker", "rollout"),
        ("StatefulSet", "reward", None, "reward"),
        ("Deployment", "prejudice", None, "unknown"),
        ("Deployment", "vllm", None, "unknown"),
        ("RayJob", "train-reward-model", "ray-group:worker", "unknown"),
        ("PyTorchJob", "reward-7b", "replica-type:worker", "update"),
        ("RayService", "judge-72b", "ray-group:small", "reward"),
        ("RayService", "chat", "ray-group:small", "serve"),
        ("RayService", "chat", "ray-node-type:head", "unknown"),
        ("RayService", "eval-judge", "ray-group:small", "evaluation"),
        ("InferenceService", "chat", None, "serve"),
    ],
)
def test_phase_of_what_is_served(
    new_day: type[DayBuilder], kind: str, root: str, role: str | None, expected: str
) -> None:
    day = new_day().pod("u", role=role, root_name=root, root_kind=kind)
    assert add_phase(day.frame_of("workloads"), Settings())["phase"].item() == expected


def test_explicit_phases_and_roles_of_the_settings_come_first(new_day: type[DayBuilder]) -> None:
    settings = Settings(roles={"reward": ("ray-group:Scor*",)})
    day = (
        new_day()
        .pod("a", role="ray-group:scorers")
        .pod("b", role="ray-group:trainer", labels={"phase": "Sync"})
    )
    day.pod("c", role="ray-group:trainer", labels={"phase": "nonsense"})
    day.pod("d", role="ray-group:trainer", labels={"phase": "sync"}, state="held")
    rows = add_phase(day.frame_of("workloads"), settings)
    assert rows["phase"].to_list() == ["reward", "sync", "update", "wait"]
