"""The series of engines: what vLLM and SGLang serve, and what Ray says of cards and objects.

An engine says its figures itself, so that they belong to the pod that was scraped. Ray's agent
gives those of vLLM again, under names that begin with ``ray_``, and with the colon as an underscore
in some versions.

Names: https://docs.vllm.ai/en/latest/usage/metrics.html,
https://docs.sglang.ai/references/production_metrics.html and
https://docs.ray.io/en/latest/ray-observability/reference/system-metrics.html
"""

from __future__ import annotations

from collector.prometheus.series.metric import Series, same

_POD = same("namespace", "pod", "container", "instance")
# What tells engines of one pod apart; ``engine`` is vLLM's data-parallel rank.
_ENGINE = {
    **_POD,
    "model": ("model_name",),
    "engine": ("engine", "engine_index"),
    "kind": ("engine_type",),
    "dp": ("dp_rank",),
    "worker": ("WorkerId", "worker_id", "ReplicaId", "replica"),
    "finished": ("finished_reason",),
}
# Ranks that say the same of one engine: tensor, pipeline and expert parallel.
RANKS = {"pp": ("pp_rank",), "tp": ("tp_rank",), "ep": ("moe_ep_rank", "ep_rank")}
_FULL = 1.5  # a cache is full at 1, or a little above where blocks are shared


def _vllm(*names: str, blind: str, ceiling: float | None = None) -> Series:
    """A series of vLLM, under its names from new to old, each also as Ray gives it."""
    told = [f"{start}{name}" for start in ("vllm:", "ray_vllm:", "ray_vllm_") for name in names]
    also = dict.fromkeys(told[1:], 1.0)
    return Series(told[0], _ENGINE, also=also, blind=blind, ceiling=ceiling, optional=True)


def _sglang(name: str, blind: str, ceiling: float | None = None) -> Series:
    identity = {**_ENGINE, **RANKS}
    return Series(f"sglang:{name}", identity, blind=blind, ceiling=ceiling, optional=True)


_GENERATED = "tokens that engines generated, and the cost of a token"
_PROMPT = "tokens of prompts that engines read"
_RUNNING = "how many requests engines served at once: cards held without any"
_WAITING = "how many requests waited for an engine"
_CACHE = "how full the key-value cache of engines was"

VLLM_GENERATED = _vllm("generation_tokens_total", blind=_GENERATED)
VLLM_PROMPT = _vllm("prompt_tokens_total", blind=_PROMPT)
VLLM_RUNNING = _vllm("num_requests_running", blind=_RUNNING)
VLLM_WAITING = _vllm("num_requests_waiting", blind=_WAITING)
VLLM_CACHE = _vllm("kv_cache_usage_perc", "gpu_cache_usage_perc", blind=_CACHE, ceiling=_FULL)
VLLM_PREEMPTED = _vllm(
    "num_preemptions_total", blind="requests that engines put off and computed again"
)
VLLM_FINISHED = _vllm("request_success_total", blind="how many requests engines finished")
SGLANG_GENERATED = _sglang("generation_tokens_total", _GENERATED)
SGLANG_PROMPT = _sglang("prompt_tokens_total", _PROMPT)
SGLANG_RUNNING = _sglang("num_running_reqs", _RUNNING)
SGLANG_WAITING = _sglang("num_queue_reqs", _WAITING)
SGLANG_CACHE = _sglang("token_usage", _CACHE, ceiling=_FULL)

RAY_CARDS = Series(
    "ray_node_gpus_utilization",
    {**_POD, **same("ip"), "device": ("GpuIndex", "gpu_index")},
    blind="how busy Ray saw the cards of its pods, where no exporter of cards tells",
    ceiling=100.0,
    optional=True,
)
RAY_OBJECTS = Series(
    "ray_object_store_memory",
    {
        **_POD,
        "ip": ("ip", "NodeAddress"),
        "location": ("Location",),
        "state": ("ObjectState",),
        "worker": ("WorkerId",),
    },
    blind="bytes of objects that Ray spilled to disks",
    optional=True,
)

ENGINE_SERIES = (
    VLLM_GENERATED,
    SGLANG_GENERATED,
    VLLM_PROMPT,
    SGLANG_PROMPT,
    VLLM_RUNNING,
    SGLANG_RUNNING,
    VLLM_WAITING,
    SGLANG_WAITING,
    VLLM_CACHE,
    SGLANG_CACHE,
    VLLM_PREEMPTED,
    VLLM_FINISHED,
    RAY_CARDS,
    RAY_OBJECTS,
)
