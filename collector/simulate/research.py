"""The research nodes: used in working hours only, with everything that goes wrong there.

Every working day an evaluator and an unlabelled notebook with cards; on one day also a pod that
hangs in its image pull, a pod name that is used twice, a pod of 40 seconds between two scrapes and
two pods that the Kubernetes API has forgotten. Nights and weekends (local time) are empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from collector.simulate.draw import number, suffix, uid
from collector.simulate.model import Node, Owner, Pod
from collector.simulate.options import DAY, HOUR, MINUTE, WorldOptions, milliseconds
from collector.simulate.training import gpu_containers, start_delay

_WORKDAY = 14 * HOUR
SHORT = 40_000
"""Life of the short pod: 40 seconds."""


def research_pods(options: WorldOptions, nodes: Sequence[Node]) -> Iterator[Pod]:
    """All pods of the research nodes."""
    labs = [node for node in nodes if node.pool == "research"]
    starts = work_starts(options)
    for lab, node in enumerate(labs):
        for start in starts:
            day = (start - options.start_ms) // DAY
            yield _evaluator(options, node, f"{lab}-{day}", start)
            yield _notebook(options, node, f"{lab}-{day}", start)
    yield from _specials(options, labs[0], _special_start(options, starts))


def work_starts(options: WorldOptions) -> list[int]:
    """08:00 local time (ms) of each working day that touches the world.

    A world too short to hold a whole working day works on its first day, whatever day it is, so
    that every situation occurs in it.
    """
    zone = ZoneInfo(options.timezone)
    day, last = options.window.start.date() - timedelta(days=1), options.end + timedelta(days=1)
    starts = []
    while day <= last:
        start = milliseconds(datetime.combine(day, time(8), tzinfo=zone))
        if day.weekday() < 5 and start < options.end_ms and start + _WORKDAY > options.start_ms:
            starts.append(options.snap(start))
        day += timedelta(days=1)
    return starts if any(_inside(options, start) for start in starts) else [options.start_ms]


def _inside(options: WorldOptions, start: int) -> bool:
    return options.start_ms <= start and start + _WORKDAY <= options.end_ms


def _special_start(options: WorldOptions, starts: Sequence[int]) -> int:
    return next(start for start in starts if _inside(options, start))


def _evaluator(options: WorldOptions, node: Node, key: str, start: int) -> Pod:
    """A plain Job; only the Job, not its pod, carries the experiment."""
    job = f"eval-math-{key}"
    begin = options.snap(start + number(options.seed, job, "start", low=5, high=25) * MINUTE)
    length = number(options.seed, job, "length", low=150, high=300) * MINUTE
    return Pod(
        uid=uid(options.seed, job),
        namespace="research",
        name=f"{job}-{suffix(options.seed, job)}",
        node=node.name,
        bound=begin,
        started=begin + start_delay(options, job),
        finished=options.snap(begin + length),
        containers=gpu_containers(max(1, node.gpus // 2)),
        experiment="eval-math",
        phase="evaluation",
        owners=(Owner("Job", job, {"experiment": "eval-math", "owner": "zoe"}),),
        labels={"phase": "evaluation", "batch.kubernetes.io/job-name": job},
        lingers=True,
        activity=0.55,
    )


def _notebook(options: WorldOptions, node: Node, key: str, start: int) -> Pod:
    """A bare pod with cards and without any label: nobody can tell whose it is."""
    name = f"notebook-{key}"
    begin = options.snap(start + number(options.seed, name, "start", low=350, high=380) * MINUTE)
    length = number(options.seed, name, "length", low=60, high=200) * MINUTE
    return Pod(
        uid=uid(options.seed, name),
        namespace="default",
        name=name,
        node=node.name,
        bound=begin,
        started=begin + start_delay(options, name),
        finished=options.snap(begin + length),
        containers=gpu_containers(max(1, node.gpus // 4)),
        experiment=None,
        phase="unknown",
        activity=0.03,
    )


def _specials(options: WorldOptions, node: Node, start: int) -> Iterator[Pod]:
    """One after the other from the eleventh hour of a working day."""
    cards = max(1, node.gpus // 4)

    def jitter(key: str, minute: int, spread: int) -> int:
        late = number(options.seed, "special", key, low=0, high=spread)
        return options.snap(start + (minute + late) * MINUTE)

    def pod(name: str, key: str, begin: int, end: int) -> Pod:
        return Pod(
            uid=uid(options.seed, key),
            namespace="research",
            name=name,
            node=node.name,
            bound=begin,
            started=begin,
            finished=end,
            containers=gpu_containers(cards),
            labels={"experiment": "ablation", "owner": "lin"},
            experiment="ablation",
            phase="unknown",
            activity=0.4,
        )

    held = pod("sweep-0", "held", jitter("held", 605, 5), jitter("held-end", 680, 5))
    yield replace(held, started=jitter("held-start", 645, 10), reason="ImagePullBackOff")
    first = pod("ablation-0", "first", jitter("first", 690, 4), jitter("first-end", 715, 5))
    yield replace(first, in_api=False)
    yield pod("ablation-0", "second", jitter("second", 740, 4), jitter("second-end", 760, 5))
    begin = jitter("short", 775, 4) + 10_000
    yield replace(
        pod("smoke-test", "short", begin, begin + SHORT),
        experiment="smoke-test",
        labels={"experiment": "smoke-test", "owner": "zoe"},
        activity=0.2,
    )
    for name, minute in (("probe-0", 790), ("probe-1", 812)):
        probe = pod(name, name, jitter(name, minute, 2), jitter(f"{name}-end", minute + 12, 4))
        yield replace(
            probe, phase="evaluation", in_api=False, labels={**probe.labels, "phase": "evaluation"}
        )
