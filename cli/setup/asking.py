"""From what the user typed, what can be probed and what can be asked to the answers of ``init``."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from shlex import quote
from typing import TypeVar

import click

from cli.document import Document, Tile, envelope
from cli.options import Globals
from cli.setup import probing
from cli.setup.answers import Answers, is_url, parse_price, relative
from cli.streams import note
from ledger.errors import UsageError

T = TypeVar("T")


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
    prices = dict(parse_price(text) for text in wishes.prices)
    kubernetes = _kubernetes(wishes, base, asking)
    prometheus = _prometheus(options, wishes, base, asking)
    bill = _bill(wishes, base, asking)
    models: tuple[str, ...] = ()
    if not (prices or bill) and kubernetes and (asking or "dump" in kubernetes):
        models = probing.gpu_models(kubernetes, base)
    if not (prices or bill) and (kubernetes or prometheus) and asking:
        prices = _ask_prices(wishes.currency, models)
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
        gpu_models=models,
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
    return Document(
        "init",
        f"Wrote {path}",
        envelope("init", path=str(path), **found),
        tiles,
        remarks=tuple(_remarks(answers, path)),
    )


def _remarks(answers: Answers, path: Path) -> Iterator[str]:
    """What is missing, and what to do next."""
    program = "runbill" if path == Path("runbill.yaml") else f"runbill --config {quote(str(path))}"
    if not answers.sources:
        yield (
            "No source was found, so there is nothing to close yet. Add a cluster (--context or "
            "--dump), its series (--prometheus) or a bill (--bill)."
        )
        yield f"Next: edit {path}, or {program} init --force with these; then {program} doctor"
        return
    if not (answers.bill or answers.gpu_prices):
        models = f" The nodes hold {', '.join(answers.gpu_models)}." if answers.gpu_models else ""
        yield (
            "No bill and no price: GPU-hours will show, but no money. Add --gpu-price or --bill."
            f"{models}"
        )
    yield f"Next: {program} doctor, then {program} run"


def _kubernetes(wishes: Wishes, base: Path, asking: bool) -> Mapping[str, str | bool] | None:
    if wishes.context and wishes.dump:
        raise UsageError("--context and --dump are both given", "a cluster is read in one way")
    if wishes.dump:
        return {"dump": _local(wishes.dump, base, "--dump")}
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
    if asking:
        dump = _ask(
            "Path of a dump by kubectl get -o json (empty for none)",
            lambda text: _local(text, base, "the dump"),
        )
        return {"dump": dump} if dump else None
    return {"context": found.current} if found.current in found.names and found.current else None


def _prometheus(options: Globals, wishes: Wishes, base: Path, asking: bool) -> str | None:
    if wishes.prometheus:
        return _series(options, [_place(text, base) for text in wishes.prometheus])
    for url in probing.prometheus_candidates():
        if probing.is_prometheus(url):
            return url
    if not asking:
        return None
    place = _ask(
        "URL of Prometheus, or path of an export (empty for none)",
        lambda text: _place(text, base),
    )
    return _series(options, [place]) if place else None


def _place(text: str, base: Path) -> str:
    """The URL of a server as it is, or the path of an export that exists."""
    if is_url(text):
        return text
    return _local(text, base, "Prometheus", "give http://HOST:PORT, or an export's folder or file")


def _series(options: Globals, places: Sequence[str]) -> str:
    """The first place that can be read; the first of all, with a warning, if none can."""
    for place in places:
        if not is_url(place) or probing.is_prometheus(place):
            return place
    note(options, f"no Prometheus answers at {', '.join(places)}; written anyway")
    return places[0]


def _bill(wishes: Wishes, base: Path, asking: bool) -> str | None:
    if wishes.bill:
        return _existing(wishes.bill, base, "--bill")
    if not asking:
        return None
    return _ask(
        "Path of the FOCUS bill (empty for none)", lambda text: _existing(text, base, "the bill")
    )


def _ask_prices(currency: str, models: Sequence[str]) -> dict[str, Decimal]:
    about = f" of {', '.join(models)}" if models else ""
    prices = _ask(
        f"Price per GPU-hour in {currency}{about}, like H100=2.50,A100=1.20 (empty for none)",
        lambda text: dict(parse_price(part.strip()) for part in text.split(",")),
    )
    return prices or {}


def _ask(question: str, read: Callable[[str], T]) -> T | None:
    """Ask until the answer can be read; None if it is empty."""

    def checked(text: str) -> T | None:
        try:
            return read(text.strip()) if text.strip() else None
        except UsageError as error:  # click shows it and asks again
            raise click.BadParameter(f"{error.message}; {error.hint}") from None

    answer: T | None = click.prompt(
        question, err=True, default="", show_default=False, value_proc=checked
    )
    return answer


def _existing(text: str, base: Path, name: str) -> str:
    """Files that exist (URLs and globs are taken as they are), relative to the settings."""
    if "://" in text or any(char in text for char in "*?["):
        return text if "://" in text else relative(Path(text), base)
    return _local(text, base, name, "give a file, a folder, a glob or s3://")


def _local(text: str, base: Path, name: str, hint: str = "give a file or a folder") -> str:
    """A path on this machine that exists, relative to the settings."""
    path = Path(text).expanduser()
    if not path.exists():
        raise UsageError(f"{name}: there is no {text}", hint)
    return relative(path, base)


def _cluster_name(context: str) -> str:
    """A name of the form that settings accept, from the last part of a context."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", context.rsplit("/", 1)[-1]).strip("._-")[:63]
    return name or "cluster"
