"""Phases: what a pod was doing, by explicit rules, the roles of the settings, or its role's name.

A held pod waits, whatever it is. A role is told by the Ray group, replicated job, replica type,
task or step that created the pod. The default patterns name only what the words of the field mean:
a Ray group ``worker`` may do anything and stays unknown, the ``Worker`` of a PyTorchJob trains.
Pods that only steer a run (heads, launchers, drivers, submitters) do none of the phases
and stay unknown. What is served tells by its name what for, else ``serve`` if its kind does nothing
but serve.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import get_args

import polars as pl

from attribution.identity import pod_rule, values, with_first
from ledger.settings import Phase, Settings

PHASES: tuple[str, ...] = get_args(Phase)
_TRAINERS = r"(trainer.*|node|worker.*|master|learner.*|actor)"
_TRAINS = r"(train|training|trainer|fine-?tun(e|ing)|sft)([-_.]?(model|\d+))?"

DEFAULT_ROLES: tuple[tuple[str, str], ...] = (
    ("reward", r"^[^:]*:.*(reward|judge)"),
    ("reference", r"^[^:]*:(.*[-_])?ref(erence)?([-_].*)?$"),
    ("rollout", r"^[^:]*:(rollout|generat|vllm|sglang|.*sampler)"),
    ("evaluation", r"^[^:]*:eval"),
    ("data", r"^[^:]*:(data|preprocess|tokeniz|prep(are)?[-_]?data)"),
    ("data", r"^spark-role:executor$"),
    ("serve", r"^[^:]*:(serve|serving|predictor)"),
    ("update", rf"^(replica-type|replicated-job):{_TRAINERS}$"),
    ("update", r"^replica-type:(chief|ps)$"),
    ("update", r"^(ray-group|task-spec|podset|subgroup):(trainer|learner)"),
    ("update", rf"^(step|trainjob-ancestor-step):{_TRAINS}$"),
    ("update", r"^task-type:trial$"),
)
"""Phase and pattern of the role, in any case; the first that matches wins."""

_TRAINS_A_JUDGE = ("update", r"^step:(train|fine-?tun(e|ing)|sft)[-_.].*(reward|judge)")
_STEERS = (
    r"(?i)^(ray-node-type:|replica-type:launcher$|spark-role:driver$|dask-component:scheduler$"
    r"|replicated-job:(launcher|driver|coordinator)$|step:(launcher|driver)$)"
)
"""Roles of pods that steer their run's other pods."""
_EVALUATOR = r"^eval(uat|$|[-_.0-9])"
_SERVING = ("RayService", "InferenceService", "LLMInferenceService", "InferenceWorkload")
_STANDING = (*_SERVING, "Deployment", "StatefulSet", "LeaderWorkerSet", "Rollout")
_SERVED = (("reward", r"(^|[-_.])(reward|judge)"), ("rollout", r"(^|[-_.])rollout"))
"""Phase and pattern of the root's name, of what stands and answers instead of running to its end.

A *job* of such a name may train the reward model; a server of it scores.
"""


def glob_regex(pattern: str) -> str:
    """A glob (``*``, ``?``, both also for line breaks) as an anchored regular expression."""
    parts = re.split(r"([*?])", pattern)
    return "(?s)^" + "".join({"*": ".*", "?": "."}.get(p, re.escape(p)) for p in parts) + "$"


def add_phase(lives: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Add ``phase`` to pod intervals.

    Args:
        lives: With ``state``, ``role``, ``root_kind``, ``root_name`` and what the rules of
            ``phase`` read.
        settings: Rules and roles.
    """
    lives = with_first(lives, {"phase": values(settings.identity.phase, pod_rule)})
    told = pl.col("phase").str.to_lowercase()
    explicit = pl.when(told.is_in(PHASES)).then(told)
    chosen = _by_pattern(
        "role",
        ((phase, glob_regex(glob)) for phase, globs in settings.roles.items() for glob in globs),
    )
    evaluator = pl.when(pl.col("root_name").str.to_lowercase().str.contains(_EVALUATOR)).then(
        pl.lit("evaluation")
    )
    special = [(phase, regex) for phase, regex in DEFAULT_ROLES if phase != "update"]
    update = [(phase, regex) for phase, regex in DEFAULT_ROLES if phase == "update"]
    works = ~pl.col("role").str.contains(_STEERS).fill_null(value=False)
    kind = pl.col("root_kind")
    # The workers of a job that is called eval-... evaluate, although workers train elsewhere.
    phase = pl.coalesce(
        explicit,
        chosen,
        _by_pattern("role", [_TRAINS_A_JUDGE, *special]),
        evaluator,
        pl.when(works & kind.is_in(_STANDING)).then(_by_pattern("root_name", _SERVED)),
        _by_pattern("role", update),
        pl.when(works & kind.is_in(_SERVING)).then(pl.lit("serve")),
        pl.lit("unknown"),
    )
    held = pl.col("state") == "held"
    return lives.with_columns(pl.when(held).then(pl.lit("wait")).otherwise(phase).alias("phase"))


def _by_pattern(column: str, patterns: Iterable[tuple[str, str]]) -> pl.Expr:
    hits = [
        pl.when(pl.col(column).str.contains(f"(?i){regex}")).then(pl.lit(phase))
        for phase, regex in patterns
    ]
    return pl.coalesce(*hits, pl.lit(None, dtype=pl.String))


def dimension(phase: pl.Expr, given: pl.Expr) -> pl.Expr:
    """Cost dimension of a share: what its phase says, else that of its charge."""
    return (
        pl.when(phase.is_in(["evaluation", "reward"]))
        .then(pl.lit("evaluation"))
        .when(phase == "data")
        .then(pl.lit("data"))
        .otherwise(given)
    )
