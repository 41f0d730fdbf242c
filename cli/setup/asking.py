"""From what the user typed, what can be probed and what can be asked to the answers of ``init``."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

import click

from cli.document import Document, Tile, envelope
from cli.options import Globals
from cli.setup import probing
from cli.setup.answers import Answers, parse_price, relative
from cli.streams import note
from ledger.errors import UsageError


@dataclass(frozen=True)
class Wishes:
    """The options of ``init``, as typed."""

    context: str | None
    dump: str | None
    cluster: str | None
    prometheus: tuple[str, ...]
    bill: str | None
    prices: tuple[str, ...]
    currency: str
    timezone: str
    ledger: str


def answers_for(options: Globals, wishes: Wishes, base: Path) -> Answers:
    """Complete the wishes by probing and, on a terminal, by asking.

    Raises:
        UsageError: A wish contradicts what is there: unknown context, missing file, bad price.
    """
    asking = sys.stdin.isatty() and sys.stderr.isatty() and not options.quiet
    kubernetes = _kubernetes(wishes, base, asking)
    prometheus = _prometheus(options, wishes, asking)
    bill = _bill(wishes, base, asking)
    prices = dict(parse_price(text) for text in wishes.prices)
    if not prices and not bill and (kubernetes or prometheus) and asking:
        prices = _ask_price(wishes.currency)
    context = str(kubernetes.get("context", "")) if kubernetes else ""
    return Answers(
        cluster=wishes.cluster or _cluster_name(context),
        kubernetes=kubernetes,
        prometheus=prometheus,
        bill=bill,
        gpu_prices=prices,
        currency=wishes.currency,
        timezone=wishes.timezone,
        ledger=wishes.ledger,
    )


def init_document(answers: Answers, path: Path) -> Document:
    """What was found and written, and what to do next."""
    found = {
        "kubernetes": dict(answers.kubernetes) if answers.kubernetes else None,
        "prometheus": answers.prometheus,
        "bill": answers.bill,
        "gpu_prices": {model: f"{price:f}" for model, price in answers.gpu_prices.items()},
    }
    shown = {
        "Kubernetes": ", ".join(f"{k}: {v}" for k, v in (answers.kubernetes or {}).items()),
        "Prometheus": answers.prometheus,
        "Bill": answers.bill,
        "GPU prices": ", ".join(
            f"{m}: {p:f} {answers.currency}" for m, p in answers.gpu_prices.items()
        ),
    }
    tiles = tuple(
        Tile(name, value or "not found", tone="good" if value else "warn")
        for name, value in shown.items()
    )
    priced = answers.bill or answers.gpu_prices
    hint = (
        ()
        if priced
        else (
            "No bill and no price: GPU-hours will show, but no money. Add --gpu-price or --bill.",
        )
    )
    return Document(
        "init",
        f"Wrote {path}",
        envelope("init", path=str(path), **found),
        tiles,
        remarks=(*hint, "Next: runbill doctor, then runbill run"),
    )


def _kubernetes(wishes: Wishes, base: Path, asking: bool) -> Mapping[str, str | bool] | None:
    if wishes.context and wishes.dump:
        raise UsageError("--context and --dump are both given", "a cluster is read in one way")
    if wishes.dump:
        return {"dump": _existing(wishes.dump, base, "--dump")}
    found = probing.contexts()
    if wishes.context:
        if wishes.context not in found.names:
            known = ", ".join(found.names) or "none"
            raise UsageError(
                f"the kubeconfig has no context {wishes.context!r}", f"its contexts: {known}"
            )
        return {"context": wishes.context}
    if probing.in_cluster():
        return {"in_cluster": True}
    if asking and found.names:
        choice: str = click.prompt(
            "Context of the cluster (- for none)",
            err=True,
            default=found.current or "-",
            type=click.Choice([*found.names, "-"]),
        )
        return None if choice == "-" else {"context": choice}
    return {"context": found.current} if found.current in found.names and found.current else None


def _prometheus(options: Globals, wishes: Wishes, asking: bool) -> str | None:
    for url in wishes.prometheus or probing.prometheus_candidates():
        if probing.is_prometheus(url):
            return url
    if wishes.prometheus:
        note(options, f"no Prometheus answers at {', '.join(wishes.prometheus)}; written anyway")
        return wishes.prometheus[0]
    if not asking:
        return None
    answer: str = click.prompt(
        "URL of Prometheus (empty for none)", err=True, default="", show_default=False
    )
    return answer or None


def _bill(wishes: Wishes, base: Path, asking: bool) -> str | None:
    if wishes.bill:
        return _existing(wishes.bill, base, "--bill")
    if not asking:
        return None
    answer: str = click.prompt(
        "Path of the FOCUS bill (empty for none)", err=True, default="", show_default=False
    )
    return _existing(answer, base, "the bill") if answer else None


def _ask_price(currency: str) -> dict[str, Decimal]:
    answer: str = click.prompt(
        f"Price per GPU-hour in {currency}, like H100=2.50 (empty for none)",
        err=True,
        default="",
        show_default=False,
    )
    return dict([parse_price(answer)]) if answer else {}


def _existing(text: str, base: Path, name: str) -> str:
    """A path that exists (URLs and globs are taken as they are), relative to the settings."""
    if "://" in text:
        return text
    path = Path(text).expanduser()
    if not any(char in text for char in "*?[") and not path.exists():
        raise UsageError(f"{name}: there is no {text}", "give a file, a folder, a glob or s3://")
    return relative(path, base)


def _cluster_name(context: str) -> str:
    """A name of the form that settings accept, from the last part of a context."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", context.rsplit("/", 1)[-1]).strip("._-")[:63]
    return name or "cluster"
