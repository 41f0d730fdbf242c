"""Variables that name a run: where they come from, and what is never read or kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.kubernetes import from_settings
from collector.kubernetes.environment import ENVIRONMENT, of_ray_job
from collector.kubernetes.job_objects import RayJob
from collector.kubernetes.objects import Pod
from ledger.errors import SettingsError
from ledger.facts import Facts
from ledger.settings import Cluster, Identity
from tests.collector.kubernetes.apiserver import ApiServer, by_list
from tests.collector.kubernetes.builders import (
    NOW,
    WINDOW,
    Json,
    collect,
    container,
    node,
    pod,
    row,
    running,
    thing,
)
from tests.effort import examples

HIDDEN = "hunter2-f00d"


def facts_of(folder: Path, *items: Json, rules: Identity | None = None) -> Facts:
    path = folder / "objects.json"
    path.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [node(), *items]}))
    cluster = Cluster.model_validate({"name": "train-a", "kubernetes": {"dump": str(path)}})
    return from_settings(cluster, Path("/"), rules).collect(WINDOW)


def read(folder: Path, *env: Json, init: tuple[Json, ...] = (), **meta: Any) -> dict[str, str]:  # noqa: ANN401
    made = pod(
        "main",
        running("08:30"),
        containers=[container(env=list(env))],
        init=[container("init", env=list(init))],
        **meta,
    )
    found: dict[str, str] = json.loads(row(facts_of(folder, made), "main")["environment"])
    return found


def field(name: str, path: str) -> Json:
    return {"name": name, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": path}}}


def secret(name: str) -> Json:
    return {"name": name, "valueFrom": {"secretKeyRef": {"name": HIDDEN, "key": HIDDEN}}}


def test_fields_of_the_pod_itself_are_read(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        field("WANDB_RUN_GROUP", "metadata.labels['team.example/run']"),
        field("WANDB_NAME", "metadata.name"),
        field("MLFLOW_RUN_ID", "metadata.annotations['mlflow']"),
        field("WANDB_PROJECT", "metadata.labels['absent']"),
        field("WANDB_ENTITY", "status.podIP"),
        labels={"team.example/run": "grpo"},
        annotations={"mlflow": "77"},
    )
    assert found == {"WANDB_RUN_GROUP": "grpo", "WANDB_NAME": "main", "MLFLOW_RUN_ID": "77"}


def test_references_to_known_variables_are_replaced(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        {"name": "MODEL", "value": "qwen"},
        {"name": "WANDB_PROJECT", "value": "p"},
        {"name": "WANDB_NAME", "value": "$(MODEL)-$(WANDB_PROJECT)-$$(MODEL)"},
        {"name": "WANDB_RUN_GROUP", "value": "$(LATER)"},
        {"name": "LATER", "value": "x"},
        {"name": "EXPERIMENT_NAME", "value": "a$b$(c"},
    )
    assert found == {
        "WANDB_PROJECT": "p",
        "WANDB_NAME": "qwen-p-$(MODEL)",
        "EXPERIMENT_NAME": "a$b$(c",
    }


def test_the_last_of_two_in_a_container_counts_and_init_containers_do_not(tmp_path: Path) -> None:
    one, two = {"name": "WANDB_PROJECT", "value": "1"}, {"name": "WANDB_PROJECT", "value": "2"}
    assert read(tmp_path, one, two) == {"WANDB_PROJECT": "2"}
    assert read(tmp_path, one, secret("WANDB_PROJECT")) == {}
    assert read(tmp_path, init=(one,)) == {}


FIELD = "metadata.annotations['a']"


def test_nothing_of_a_secret_is_kept_or_decoded(tmp_path: Path) -> None:
    """Neither a value, nor a name, nor what is built of one; for a live cluster and a dump."""
    config = {"configMapKeyRef": {"name": HIDDEN, "key": HIDDEN}}
    job = thing(
        "ray.io/v1",
        "RayJob",
        "grpo",
        spec={
            "entrypoint": f"WANDB_API_KEY={HIDDEN} WANDB_NAME=run python train.py --token {HIDDEN}",
            "runtimeEnvYAML": f"env_vars:\n  HF_TOKEN: {HIDDEN}\n  WANDB_PROJECT: rl\n",
        },
        status={"jobId": "grpo-x"},
    )
    made = pod(
        "main",
        running("08:30"),
        owners=[job],
        annotations={"kubectl.kubernetes.io/last-applied-configuration": HIDDEN},
        containers=[
            container(
                env=[
                    {"name": "WANDB_API_KEY", "value": HIDDEN},
                    {"name": "HF_TOKEN", "value": HIDDEN},
                    secret("WANDB_RUN_GROUP"),
                    {"name": "WANDB_TAGS", "valueFrom": config},
                    {"name": "MLFLOW_RUN_ID", "value": "$(HF_TOKEN)"},
                    {"name": "MLFLOW_RUN_NAME", "value": "$(WANDB_RUN_GROUP)"},
                ],
                envFrom=[{"secretRef": {"name": HIDDEN}}],
            )
        ],
    )
    hidden = thing("v1", "Secret", HIDDEN, data={"k": HIDDEN})
    with ApiServer(by_list([node(), job, made, hidden]), now=NOW) as server:
        live = collect(server=server.url)
        assert not any("secret" in request.path for request in server.requests)
    for facts in (live, facts_of(tmp_path, job, made, hidden)):
        assert json.loads(row(facts, "main")["environment"]) == {
            "WANDB_NAME": "run",
            "WANDB_PROJECT": "rl",
            "RAY_JOB_SUBMISSION_ID": "grpo-x",
        }
        shown = "".join(str(table.to_dicts()) for table in facts.tables.values())
        assert HIDDEN not in shown + str(facts.gaps) + str(facts.notes) + str(facts.quarantine)
    decoded = msgspec.json.decode(json.dumps(made), type=Pod)
    containers = decoded.spec.containers or []
    from_secret, from_config = (containers[0].env or [])[2:4]
    assert HIDDEN not in f"{from_secret}{from_config}"
    assert HIDDEN not in str(msgspec.json.decode(json.dumps(job), type=RayJob))


@pytest.mark.parametrize(
    "value",
    [
        f"https://u:{HIDDEN}@mlflow.example/x",
        "hf_" + "aB3" * 11,
        "prefix=sk-proj-" + "aB3_" * 8,
        "ghp_" + "aB3" * 12,
        "AKIA" + "ABCD" * 4,
        "eyJhbGciOiJIUzI1.eyJzdWIiOiIxMjM0.x",
        "-----BEGIN RSA PRIVATE KEY-----",
        "x" * 5000,
    ],
)
def test_a_login_a_token_or_a_novel_is_no_identity(tmp_path: Path, value: str) -> None:
    """Whatever names it: the variable itself, another one, an annotation or a RayJob."""
    env = [
        {"name": "WANDB_NAME", "value": value},
        {"name": "DB", "value": value},
        {"name": "WANDB_PROJECT", "value": "$(DB)"},
        {"name": "RUN_NAME", "valueFrom": {"fieldRef": {"fieldPath": FIELD}}},
        {"name": "WANDB_RUN_ID", "value": "task-sk-1 of hf_small at http://h/p"},
    ]
    text = f"env_vars: {{WANDB_TAGS: '{value}'}}"
    job = thing("ray.io/v1", "RayJob", "r", spec={"runtimeEnvYAML": text})
    made = pod(
        "main",
        running("08:30"),
        owners=[job],
        annotations={"a": value},
        containers=[container(env=env)],
    )
    found = row(facts_of(tmp_path, job, made), "main")["environment"]
    assert json.loads(found) == {"WANDB_RUN_ID": "task-sk-1 of hf_small at http://h/p"}


def test_a_ray_job_may_set_ten_thousand_variables() -> None:
    text = "env_vars:\n" + "".join(f"  VARIABLE_{n}: x\n" for n in range(10_000))
    found = of_ray_job(text + "  WANDB_NAME: a\n", None)
    assert found["WANDB_NAME"] == "a"


def test_what_a_ray_job_sets_is_nearer_to_the_run_than_its_pods(tmp_path: Path) -> None:
    job = thing(
        "ray.io/v1",
        "RayJob",
        "grpo",
        spec={"runtimeEnvYAML": "pip: [torch]\nenv_vars:\n  WANDB_NAME: 7\n  WANDB_TAGS: ''\n"},
    )
    cluster = thing("ray.io/v1", "RayCluster", "grpo-x", owners=[job])
    env = [{"name": "WANDB_NAME", "value": "pod"}, {"name": "WANDB_PROJECT", "value": "p"}]
    made = pod("main", running("08:30"), owners=[cluster], containers=[container(env=env)])
    found = row(facts_of(tmp_path, job, cluster, made), "main")
    assert json.loads(found["environment"]) == {"WANDB_NAME": "7", "WANDB_PROJECT": "p"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("WANDB_NAME=a python train.py", {"WANDB_NAME": "a"}),
        ("env MY_KEY=1 WANDB_NAME='a b' python t.py WANDB_PROJECT=no", {"WANDB_NAME": "a b"}),
        ("cd /w && export WANDB_NAME=a; python t.py", {"WANDB_NAME": "a"}),
        (
            "export WANDB_NAME=a WANDB_PROJECT=p\npython t.py",
            {"WANDB_NAME": "a", "WANDB_PROJECT": "p"},
        ),
        ("WANDB_NAME=$HOME python t.py", {}),
        ("WANDB_NAME=`date` python t.py", {}),
        ("python t.py --x WANDB_NAME=a", {}),
        ("python 'unclosed WANDB_NAME=a", {}),
        ("WANDB_NAME= python t.py", {}),
    ],
)
def test_assignments_before_a_command(command: str, expected: dict[str, str]) -> None:
    assert of_ray_job(None, command) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "env_vars",
        "env_vars: [a]",
        "env_vars: {: }",
        "a: [env_vars",
        "- env_vars",
        "!!x env_vars",
    ],
)
def test_an_environment_that_is_no_map_says_nothing(text: str) -> None:
    assert of_ray_job(text, None) == {}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("!!python/object/apply:os.system [id]", None),
        ("!!int ''", None),
        ("!!bool x", "x"),
        ("!!timestamp x", "x"),
        ("0x" + "f" * 9000, None),
        ("yes", "yes"),
        ("010", "010"),
        ("~", None),
        ("{<<: [*a, *a], b: c}", None),
        ("[" * 5000, None),
        ("*a29", None),
    ],
)
def test_hostile_yaml_is_text_or_nothing(value: str, expected: str | None) -> None:
    bomb = "a0: &a0 [x, x]\na: &a {b: c}\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30)
    )
    found = of_ray_job(f"{bomb}env_vars: {{WANDB_NAME: {value}}}", None)
    assert found.get("WANDB_NAME") == expected


@settings(max_examples=examples(50))
@given(st.text(max_size=40), st.text(max_size=40))
def test_no_text_breaks_the_reading_of_a_ray_job(runtime_env: str, entrypoint: str) -> None:
    found = of_ray_job(f"env_vars:\n {runtime_env}", f"A=b {entrypoint}")
    assert all(isinstance(value, str) and len(value) <= 1024 for value in found.values())


def test_a_rule_of_the_settings_adds_its_variable(tmp_path: Path) -> None:
    env = [
        {"name": "RUN_FAMILY", "value": "f"},
        {"name": "OTHER", "value": "o"},
    ]
    made = pod("main", running("08:30"), containers=[container(env=env)])
    rules = Identity(experiment=("env:RUN_FAMILY",))
    found = row(facts_of(tmp_path, made, rules=rules), "main")
    assert json.loads(found["environment"]) == {"RUN_FAMILY": "f"}


def test_a_rule_finds_its_variable_where_a_ray_job_sets_it(tmp_path: Path) -> None:
    text = "env_vars: {RUN_FAMILY: grpo, OTHER: x, RUN_TOKEN: y}"
    spec = {"runtimeEnvYAML": text, "entrypoint": "TEAM=rl OTHER_2=x python t.py"}
    job = thing("ray.io/v1", "RayJob", "r", spec=spec)
    made = pod("main", running("08:30"), owners=[job])
    rules = Identity(experiment=("env:RUN_FAMILY",), owner=("env:TEAM",))
    found = row(facts_of(tmp_path, job, made, rules=rules), "main")["environment"]
    assert json.loads(found) == {"RUN_FAMILY": "grpo", "TEAM": "rl"}


@pytest.mark.parametrize("name", ["MY_TOKEN", "WANDB_API_KEY", "DB_PASSWORD", "SSH_KEY"])
def test_a_rule_that_names_a_secret_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match="sounds like a secret"):
        facts_of(tmp_path, rules=Identity(owner=(f"env:{name}",)))
    facts_of(tmp_path, rules=Identity(owner=("env:AUTHOR", "env:KEYNOTE")))


def test_no_name_that_is_kept_sounds_like_a_secret_s() -> None:
    words = ("KEY", "TOKEN", "SECRET", "PASS", "CREDENTIAL", "URI", "URL")
    assert not [name for name in ENVIRONMENT if any(word in name for word in words)]
