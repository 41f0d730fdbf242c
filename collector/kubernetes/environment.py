"""Variables that say which run a pod belongs to; no other variable is ever kept.

Values come from the specification only: literal ones, fields of the pod itself, and what a RayJob
sets for its job. What a secret or a config map holds is never read, and a value that would need it
is not guessed. A value with a login or a token in it is dropped, whatever its variable is called.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from collector.kubernetes import yaml_text
from collector.kubernetes.yaml_text import entries, plain_text
from ledger.errors import SettingsError
from ledger.text import holds_credentials

if TYPE_CHECKING:
    from collector.kubernetes.objects import Metadata, Pod, Variable

ENVIRONMENT = frozenset(
    {
        # Weights & Biases
        *("WANDB_ENTITY", "WANDB_JOB_TYPE", "WANDB_NAME", "WANDB_PROJECT"),
        *("WANDB_RUN_GROUP", "WANDB_RUN_ID", "WANDB_SWEEP_ID", "WANDB_TAGS", "WANDB_USERNAME"),
        # MLflow, SwanLab, ClearML, Comet, Neptune
        *("MLFLOW_EXPERIMENT_ID", "MLFLOW_EXPERIMENT_NAME", "MLFLOW_RUN_ID", "MLFLOW_RUN_NAME"),
        *("SWANLAB_EXP_NAME", "SWANLAB_PROJ_NAME", "SWANLAB_RUN_ID", "SWANLAB_WORKSPACE"),
        *("CLEARML_PROJECT", "CLEARML_TASK_ID"),
        *("COMET_EXPERIMENT_NAME", "COMET_PROJECT_NAME", "COMET_WORKSPACE"),
        *("NEPTUNE_CUSTOM_RUN_ID", "NEPTUNE_PROJECT"),
        # Ray
        *("RAY_CLUSTER_NAME", "RAY_JOB_NAME", "RAY_JOB_SUBMISSION_ID"),
        # Schedulers and pipelines
        *("SKYPILOT_CLUSTER_NAME", "SKYPILOT_JOB_ID", "SKYPILOT_MANAGED_JOB_ID"),
        *("SKYPILOT_TASK_ID", "SKYPILOT_USER"),
        *("DET_ALLOCATION_ID", "DET_EXPERIMENT_ID", "DET_JOB_ID", "DET_TASK_ID", "DET_TASK_TYPE"),
        *("DET_TRIAL_ID", "DET_USER"),
        *("DSTACK_JOB_ID", "DSTACK_REPLICA_ID", "DSTACK_RUN_ID", "DSTACK_RUN_NAME"),
        *("RUNAI_JOB_NAME", "RUNAI_PROJECT"),
        *("METAFLOW_FLOW_NAME", "METAFLOW_RUN_ID", "METAFLOW_STEP_NAME", "METAFLOW_USER"),
        *("FLYTE_INTERNAL_EXECUTION_ID", "FLYTE_INTERNAL_EXECUTION_WORKFLOW"),
        *("FLYTE_INTERNAL_TASK_NAME", "KATIB_TRIAL_NAME"),
        # Words that scripts of the field use
        *("EXPERIMENT_ID", "EXPERIMENT_NAME", "RUN_NAME"),
    }
)
"""Names that are kept; each names a run, an experiment, a job or who it belongs to."""

LONGEST = 1024  # characters of a value; identity is short, and what is not is none
_LARGEST = 1 << 16  # characters of a command that is looked at
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)")
_ENTRY = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")
_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", re.DOTALL)
_SECRET = re.compile(
    r"token|secret|passw|credential|((api|access|private|auth|license)_?key)|(^|_)(key|auth|pass)$",
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"(?<![A-Za-z0-9])(hf_[A-Za-z0-9]{20}|sk-[\w-]{20}|gh[opusr]_\w{30}|github_pat_\w{20}|glpat-[\w-]{16}"
    r"|xox[abeoprs]-[\w-]{10}|A[KS]IA[0-9A-Z]{16}|AIza[\w-]{30}|wandb_v1_\w{20}|eyJ[\w-]{8,}\.eyJ[\w-]{8}"
    r"|-----BEGIN )"
)
"""What tokens begin with, as their issuers publish it so that scanners of secrets find them."""


def allowed(rules: Iterable[str]) -> frozenset[str]:
    """The names that are kept: the usual ones, and those that rules of the settings name.

    Args:
        rules: Identity rules, e.g. ``env:RUN_FAMILY``.

    Raises:
        SettingsError: A rule names what sounds like a secret.
    """
    named = {rule.removeprefix("env:") for rule in rules if rule.startswith("env:")}
    for name in sorted(named):
        if _SECRET.search(name):
            raise SettingsError(
                f"the identity rule env:{name} names what sounds like a secret",
                "name a variable that says which run it is",
            )
    return ENVIRONMENT | named


def of_pod(pod: Pod, job: Mapping[str, str], names: frozenset[str] = ENVIRONMENT) -> dict[str, str]:
    """The variables of a pod that are kept.

    Args:
        pod: The pod. Of its containers the first that sets a variable counts; init containers
            prepare a run, and do not name it.
        job: What its job sets for its processes, which is nearer to the run than the pod is.
        names: Names that are kept, from ``allowed``.
    """
    found = {name: value for name, value in job.items() if name in names}
    for container in pod.spec.containers or ():
        for name, value in _values(container.env or (), pod.metadata).items():
            if name in names and not _hidden(value):
                found.setdefault(name, value)
    return found


def _hidden(value: str) -> bool:
    """Whether a value is no identity: too long, or with a login or a token in it."""
    return len(value) > LONGEST or holds_credentials(value) or bool(_TOKEN.search(value))


def of_ray_job(runtime_env: object, entrypoint: object) -> dict[str, str]:
    """The variables that a RayJob sets for its job.

    Args:
        runtime_env: ``spec.runtimeEnvYAML``: YAML with a map ``env_vars`` of texts.
        entrypoint: ``spec.entrypoint``: a command of the shell, perhaps with assignments before it.

    Returns:
        Those that a rule may name (``of_pod`` keeps what one does), and no secret; the command's
        win, as they do in the shell.
    """
    return _of_runtime_env(runtime_env) | dict(_of_command(entrypoint))


def _of_runtime_env(text: object) -> dict[str, str]:
    if not isinstance(text, str) or "env_vars" not in text:
        return {}
    variables = entries(entries(yaml_text.read(text)).get("env_vars"))
    return {
        name: value
        for name, told in variables.items()
        if _candidate(name) and (value := plain_text(told)) and _plain(value)
    }


def _of_command(text: object) -> Iterator[tuple[str, str]]:
    """Assignments of plain words: ``A=b command``, ``env A=b command`` and ``export A=b``."""
    if not isinstance(text, str) or len(text) > _LARGEST or "=" not in text:
        return
    try:
        lexer = shlex.shlex(text, posix=True, punctuation_chars=";&|()\n")
        lexer.whitespace = " \t\r"
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return
    begins = True
    for word in words:
        if not word.strip(";&|()\n"):
            begins = True
        elif begins and (found := _ASSIGNMENT.fullmatch(word)):
            name, value = found.groups()
            if _candidate(name) and _plain(value):
                yield name, value
        else:
            begins = begins and word in ("env", "export")


def _candidate(name: str) -> bool:
    return name in ENVIRONMENT or not _SECRET.search(name)


def _plain(value: str) -> bool:
    """Whether a value says something, and the same to us as to the shell."""
    return bool(value) and not re.search(r"[$`]", value) and not _hidden(value)


def _values(variables: Iterable[Variable], pod: Metadata) -> dict[str, str]:
    """What the variables of a container hold, as far as the specification says it.

    A value may name variables before it as ``$(NAME)``. One that is not known (it comes from a
    secret, a config map or a service) leaves the value unknown. Of two of one name the last counts.
    """
    known: dict[str, str] = {}
    for variable in variables:
        value = _value(variable, pod, known)
        known.pop(variable.name, None)
        if value:
            known[variable.name] = value
    return known


def _value(variable: Variable, pod: Metadata, known: Mapping[str, str]) -> str | None:
    source = variable.value_from
    if variable.value is not None and source is None:
        return _expanded(variable.value, known) if len(variable.value) <= LONGEST else None
    if source is None or source.field_ref is None:
        return None
    return _field(source.field_ref.field_path, pod)


def _expanded(text: str, known: Mapping[str, str]) -> str | None:
    """A value with its references replaced; None if one of them is not known, or a secret's name.

    ``$$`` is a dollar sign (Kubernetes: dependent environment variables).
    """
    parts: list[str] = []
    at = 0
    for found in _REFERENCE.finditer(text):
        parts.append(text[at : found.start()])
        at = found.end()
        name = found.group(1)
        if name is None:
            parts.append("$")
        elif name not in known or (name not in ENVIRONMENT and _SECRET.search(name)):
            return None
        else:
            parts.append(known[name])
    whole = "".join(parts) + text[at:]
    return whole if len(whole) <= LONGEST else None


def _field(path: str, pod: Metadata) -> str | None:
    if found := _ENTRY.fullmatch(path):
        entries = pod.labels if found.group(1) == "labels" else pod.annotations
        return (entries or {}).get(found.group(2))
    return {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "metadata.uid": pod.uid,
    }.get(path)
