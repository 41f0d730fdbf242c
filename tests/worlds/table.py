"""``docs/systems.md``: what is recognised of each training system, and what each world gave.

``python -m tests.worlds.table > docs/systems.md`` writes it; a test compares the two.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from collector.systems import SYSTEMS, Key, Owner, Role, Sign, System
from tests.worlds.every import TITLES
from tests.worlds.model import Truth, World
from tests.worlds.views import Seen, see_all

_HEAD = """# Training systems

Made from the table in `collector/systems` and from simulated clusters, one for each system, by
`python -m tests.worlds.table`; a test compares the two.

## What is recognised

A pod is of the first system whose marks it bears, else of that whose objects own it. Its owners
are followed by reference, through any custom resource; labels and annotations (*a*) go on where
references end. The **experiment** is the name of the last owner, unless an identity rule before
`workload` names one; an owner in italics is no object of the API and stands above all objects.
Series tell labels and annotations only where kube-state-metrics shows them
(`--metric-labels-allowlist=pods=[*]`, `--metric-annotations-allowlist=pods=[*]`).

| system | recognised by | objects | owners by label | role | owner | note |
|---|---|---|---|---|---|---|
"""
_MEASURED = """
Roles become phases by `roles:` of the settings, else by words of the field
(`attribution/phases.py`).

## What each simulated cluster gives

Whether the experiment, owner and role of every pod are the true ones (`all`), or what is lost. What
is lost is unknown, never made up; an experiment is then called after the nearest owner that is
known.

- *API*, *series*: one of the two sources alone. Series know neither labels of owners nor the
  environment of pods, and above custom kinds only what labels and KubeRay's operator tell.
- *both*: as clusters should be read.
- *pods gone*: when the API is asked, one pod of each job is left, and the job; Prometheus saw all.
- *finished*: the owners are gone from the API (a TTL, a deletion), their pods are not; *alone*
  without Prometheus beside it.
- *no allow-list*: series of a kube-state-metrics that shows no labels, and none of KubeRay's
  operator: the gap `labels_not_exported`. With the API beside it (*with API*) nothing is lost.

"""
_VIEWS = {
    "API": "api",
    "series": "prometheus",
    "both": "both",
    "pods gone": "pods gone, both",
    "finished": "owners gone, both",
    "finished, alone": "owners gone",
    "no allow-list": "no allow-list",
    "no allow-list, with API": "no allow-list, both",
}
"""Columns of the second table and the views that they show."""


def page(seen: Seen) -> str:
    """The whole page, as Markdown."""
    systems = [_row(_system(one)) for one in SYSTEMS]
    measured = [
        _row([TITLES[one.system], str(len(one.pods)), *_cells(seen, one)])
        for one in seen.worlds
        if one.system in TITLES
    ]
    columns = ["simulated", "pods", *_VIEWS]
    head = [_row(columns), _row("---" for _ in columns)]
    return "".join([_HEAD, *systems, _MEASURED, *head, *measured])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |\n"


def _system(one: System) -> list[str]:
    signs = [_sign(sign) for sign in one.signs]
    needs = f" with {_list(map(_key, one.needs))}" if one.needs else ""
    by_owners = [
        f"`{role}` under {' > '.join(kinds)}" for kinds, role in sorted(one.by_owners.items())
    ]
    return [
        one.name,
        (_list(signs) + needs) or "its objects",
        _list(kind.kind for kind in one.objects),
        " > ".join(_owner(owner) for owner in one.chain),
        _list([*map(_role, one.roles), *by_owners]),
        _list(map(_key, one.user)),
        one.note,
    ]


def _owner(owner: Owner) -> str:
    kind = owner.kind if owner.group else f"*{owner.kind}*"
    if owner.told:
        kind = f"kind of {_key(owner.told)}, else {kind}"
    return f"{kind}: {_list(map(_key, owner.names))}"


def _role(role: Role) -> str:
    return f"`{role.form}:` {_list(map(_key, role.keys))}"


def _sign(sign: Sign) -> str:
    return _key(sign.key) + (f" = `{sign.value}`" if sign.value else "")


def _key(key: Key) -> str:
    return f"`{key.name}`" + (" *a*" if key.annotation else "")


def _list(texts: Iterable[str]) -> str:
    return ", ".join(dict.fromkeys(texts))


def _cells(seen: Seen, one: World) -> list[str]:
    return [_cell(one.truth, seen.of(view)) for view in _VIEWS.values()]


def _cell(truth: Mapping[str, Truth], told: Mapping[str, Truth]) -> str:
    """What a view loses of a world: each key, and of how many of the pods that have it."""
    lost = []
    for key in ("experiment", "owner", "role"):
        have = [uid for uid, true in truth.items() if getattr(true, key) is not None]
        right = sum(getattr(told[uid], key) == getattr(truth[uid], key) for uid in have)
        if right < len(have):
            lost.append(f"no {key}" if not right else f"{key} of {right} in {len(have)}")
    return ", ".join(lost) or "all"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(page(see_all(Path(folder))))
