"""Composing a first ``runbill.yaml`` from answers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path

from ledger.errors import SettingsError, UsageError


@dataclass(frozen=True)
class Answers:
    """What ``init`` knows.

    Args:
        cluster: Name of the cluster.
        kubernetes: The block of the cluster's Kubernetes source, e.g. ``{"context": "train-a"}``.
        prometheus: Base URL of the server, or the path of an export of its series, or None.
        bill: Path of FOCUS files, relative to the settings, or None.
        gpu_prices: Card model to price per card-hour.
        currency: Currency of the prices.
        timezone: Zone of nights and weekends.
        ledger: Place of the ledger.
        gpu_models: Card models that the nodes name, for whoever is to give a price.
    """

    cluster: str = "cluster"
    kubernetes: Mapping[str, str | bool] | None = None
    prometheus: str | None = None
    bill: str | None = None
    gpu_prices: Mapping[str, Decimal] = field(default_factory=dict)
    currency: str = "USD"
    timezone: str = "UTC"
    ledger: str = "./ledger"
    gpu_models: tuple[str, ...] = ()

    @property
    def sources(self) -> bool:
        """Whether there is anything to read; a price alone is not."""
        return bool(self.kubernetes or self.prometheus or self.bill)


def parse_price(text: str) -> tuple[str, Decimal]:
    """Read ``H100=2.50``.

    Raises:
        UsageError: It has another form, or the price is no number ≥ 0.
    """
    model, equals, price = text.partition("=")
    try:
        value = Decimal(price)
    except InvalidOperation:
        value = Decimal("NaN")
    if not (model.strip() and equals and value.is_finite() and value >= 0):
        raise UsageError(f"{text!r} is no price per GPU-hour", "write it like H100=2.50")
    return model.strip(), value


def is_url(text: str) -> bool:
    """Whether it is the address of a server, and not a path."""
    return text.startswith(("http://", "https://"))


def settings_text(answers: Answers) -> str:
    """The settings as commented YAML.

    Raises:
        SettingsError: The answers do not make valid settings.
    """
    import yaml
    from pydantic import ValidationError

    from ledger.settings import Settings

    text = "\n".join(_lines(answers)) + "\n"
    try:
        Settings.model_validate(yaml.safe_load(text))
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise SettingsError(f"{where}: {first['msg']}", "give another value") from None
    return text


def _lines(answers: Answers) -> Iterator[str]:
    yield "# Settings of runbill; every block is optional. All keys: runbill config schema"
    yield "# Relative paths are relative to this file; ${NAME} reads the environment."
    yield f"ledger: {_quoted(answers.ledger)}   # or s3://bucket/prefix"
    yield f"currency: {answers.currency}   # of the prices below"
    yield f"timezone: {_quoted(answers.timezone)}   # of nights and weekends"
    yield ""
    yield from _cluster(answers)
    yield ""
    yield from _billing(answers)
    yield ""
    yield from _prices(answers)
    yield ""
    yield "# Who an hour belongs to: first hit wins; these defaults hold where a key is left out."
    yield "# identity:"
    yield '#   experiment: ["label:experiment", "env:WANDB_RUN_GROUP", "workload"]'
    yield '#   owner: ["label:owner", "label:team", "default:unowned"]'


def _cluster(answers: Answers) -> Iterator[str]:
    if not (answers.kubernetes or answers.prometheus):
        yield "# Without a cluster, node costs are not split to experiments."
        yield "# clusters:"
        yield "#   - name: train-a"
        yield "#     kubernetes: {context: train-a}   # or {in_cluster: true}"
        yield '#     prometheus: {url: "http://prometheus:9090"}'
        return
    yield "clusters:"
    yield f"  - name: {_quoted(answers.cluster)}"
    if answers.kubernetes:
        yield f"    kubernetes: {_flow(answers.kubernetes)}   # labels, owners and requests of pods"
    else:
        yield "    # kubernetes: {context: train-a}   # would add owners and annotations"
    if answers.prometheus:
        way = "url" if is_url(answers.prometheus) else "export"
        yield f"    prometheus: {_flow({way: answers.prometheus})}   # lives and GPU activity"
    else:
        yield '    # prometheus: {url: "http://prometheus:9090"}   # lives and GPU activity'


def _billing(answers: Answers) -> Iterator[str]:
    if answers.bill:
        yield "billing:"
        yield f"  - {_flow({'name': 'bill', 'kind': 'focus', 'path': answers.bill})}"
        return
    yield "# Without a bill every figure is estimated from the prices below."
    yield "# billing:"
    yield '#   - {name: cloud, kind: focus, path: "s3://billing/focus/"}'


def _prices(answers: Answers) -> Iterator[str]:
    if answers.gpu_prices:
        cards = ", ".join(
            f"{_quoted(model)}: {price:f}" for model, price in answers.gpu_prices.items()
        )
        yield "# Price per card-hour, the host included, where no bill prices a node."
        yield f"prices: {{gpu: {{{cards}}}}}"
        return
    yield "# prices: {gpu: {H100: 2.50}}   # per card-hour, where no bill prices a node"


def _flow(block: Mapping[str, str | bool]) -> str:
    return "{" + ", ".join(f"{key}: {_quoted(value)}" for key, value in block.items()) + "}"


def _quoted(value: str | bool) -> str:
    """A YAML scalar; JSON's strings and booleans are YAML's."""
    return json.dumps(value, ensure_ascii=False)


def relative(path: Path, base: Path) -> str:
    """A path as the settings hold it: relative to their folder where it lies in it."""
    absolute = Path(path).expanduser().absolute()
    return str(absolute.relative_to(base)) if absolute.is_relative_to(base) else str(absolute)
