"""Identity: which experiment, model version, pipeline, owner and project something belongs to.

Each key has an ordered list of rules in the settings; the first that yields a value wins. Keys are
compared as written. Prometheus knows labels only in a sanitised form: ``foo-bar`` and ``fooBar``
become ``label_foo_bar``, and where two keys of one pod collide it appends ``_conflictN``. Such
forms are aliases of the original key; colliding ones are refused and named. The same holds of
annotations (``annotation_foo_bar``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date

import polars as pl

from attribution.facts import DayFacts
from attribution.lives.labels import aliases
from attribution.lives.lives import merged_pods
from ledger.errors import SettingsError
from ledger.facts import Gap
from ledger.schema import IDENTITY_KEYS, IDLE, SHARED, UNATTRIBUTED
from ledger.settings import Settings

SPECIAL = (IDLE, SHARED, UNATTRIBUTED)
_COLUMNS = {"label": "labels", "owner-label": "owner_labels", "annotation": "annotations"}
"""Rules that read a key of a JSON object, and the column that holds it."""
RuleReader = Callable[[str], pl.Expr | None]
"""What a rule reads of a row; None where the rule does not speak of such rows."""


def json_value(column: str, key: str) -> pl.Expr:
    """The text under a key of a JSON object column; null if absent, empty or a reserved name.

    Raises:
        SettingsError: The key holds both kinds of quotes.
    """
    if "'" in key and '"' in key:
        raise SettingsError(
            f"the key {key} cannot be looked up", "use a key with one kind of quote"
        )
    path = f'$["{key}"]' if "'" in key else f"$['{key}']"
    value = pl.col(column).str.json_path_match(path)
    return pl.when(~value.is_in(["", *SPECIAL])).then(value)


def _collides(column: str, alias: str) -> pl.Expr:
    return pl.col(column).str.contains(f'"{alias}_conflict', literal=True).fill_null(False)


def label(column: str, key: str, prefix: str = "label") -> pl.Expr:
    """A label by its original key, else by its sanitised alias unless that is ambiguous.

    Args:
        column: The JSON object.
        key: The original key.
        prefix: ``label``, or ``annotation`` where the object holds annotations.
    """
    known = [
        pl.when(~_collides(column, name)).then(json_value(column, name))
        for name in aliases(key, prefix)
    ]
    return pl.coalesce(json_value(column, key), *known)


def tag(column: str, key: str) -> pl.Expr:
    """A tag of a bill line by its key, else with the provider's prefix for user-defined tags."""
    return pl.coalesce(json_value(column, name) for name in (key, f"user:{key}", f"user_{key}"))


def pod_rule(rule: str) -> pl.Expr | None:
    """What an identity rule reads of a pod."""
    kind, _, key = rule.partition(":")
    match kind:
        case "label":
            return label("labels", key)
        case "owner-label":
            return label("owner_labels", key)
        case "annotation":
            return label("annotations", key, "annotation")
        case "env":
            return json_value("environment", key)
        case "workload":
            return pl.col("root_name")
        case "namespace":
            return pl.col("namespace")
        case "default":
            return pl.lit(key)
    return None


def line_rule(name: str) -> RuleReader:
    """What an identity rule of the key ``name`` reads of a bill line."""

    def read(rule: str) -> pl.Expr | None:
        kind, _, key = rule.partition(":")
        match kind:
            case "label" | "tag":
                return tag("Tags", key)
            case "path":
                return _path(key, name)
            case "default":
                return pl.lit(key)
        return None

    return read


def _path(pattern: str, name: str) -> pl.Expr | None:
    """The part of a resource's path at ``{name}``; ``*`` stands for one path element."""
    if f"{{{name}}}" not in pattern:
        return None
    regex = "".join(
        f"(?P<{part[1:-1]}>[^/]+)"
        if part == f"{{{name}}}"
        else "[^/]*"
        if part == "*" or part.startswith("{")
        else re.escape(part).replace("/", "/")
        for part in re.split(r"(\{\w+\}|\*)", pattern.rstrip("/"))
    )
    url = pl.col("ResourceId").str.replace(r"^arn:aws[a-z-]*:s3:::", "s3://")
    return pl.coalesce(
        source.str.extract(f"^{regex}(?:/|$)", 1) for source in (url, pl.col("ResourceName"))
    )


def values(rules: Sequence[str], read: RuleReader) -> list[pl.Expr]:
    """What each rule reads, in their order, without those that do not speak of such rows."""
    return [value for rule in rules if (value := read(rule)) is not None]


def first_hit(rules: Sequence[str], read: RuleReader) -> pl.Expr:
    """The value of the first rule that has one; null if none."""
    return pl.coalesce(*values(rules, read), pl.lit(None, dtype=pl.String))


def hit_rule(rules: Sequence[str], read: RuleReader) -> pl.Expr:
    """The text of the first rule that has a value; null if none."""
    hits = [
        pl.when(value.is_not_null()).then(pl.lit(rule))
        for rule in rules
        if (value := read(rule)) is not None
    ]
    return pl.coalesce(*hits, pl.lit(None, dtype=pl.String))


def with_first(rows: pl.DataFrame, found: Mapping[str, Sequence[pl.Expr]]) -> pl.DataFrame:
    """Add columns, each the first of its values that is there; null if none is.

    Each value is worked out once for each distinct text that it reads: looking into JSON is slow,
    and thousands of pods share their labels, annotations and owners, though seldom all of them.

    Args:
        rows: With the columns that the values read.
        found: Values by the column that they make, e.g. ``values``; each reads one row.
    """
    reads: dict[tuple[str, ...], list[pl.Expr]] = {}
    hits: dict[str, list[pl.Expr]] = {name: [] for name in found}
    for name, some in found.items():
        for index, value in enumerate(some):
            what = tuple(sorted(set(value.meta.root_names())))
            own = f"{name}/{index}"
            if what:
                reads.setdefault(what, []).append(value.alias(own))
            hits[name].append(pl.col(own) if what else value)
    texts = sorted({name for what in reads for name in what})
    told = rows.select(pl.int_range(pl.len()).alias("row"), *texts)
    for what, some in reads.items():
        distinct = told.select(what).unique().with_columns(some)
        told = told.join(
            distinct, on=list(what), how="left", nulls_equal=True, maintain_order="left"
        )
    none = pl.lit(None, dtype=pl.String)
    first = told.with_columns(pl.coalesce(*some, none).alias(name) for name, some in hits.items())
    return rows.with_columns(first.select(*hits).get_columns())


def name_pods(lives: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Add the identity keys except phase to pods; unresolved ones are null."""
    keys = [key for key in IDENTITY_KEYS if key != "phase"]
    return with_first(
        lives, {key: values(getattr(settings.identity, key), pod_rule) for key in keys}
    )


def name_lines(lines: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Add the identity keys, phase included, to bill lines; unresolved ones are null.

    Args:
        lines: With ``Tags``, ``ResourceId`` and ``ResourceName``.
        settings: The rules.
    """
    rules = settings.identity
    return with_first(
        lines, {key: values(getattr(rules, key), line_rule(key)) for key in IDENTITY_KEYS}
    )


def rule_hits(pods: pl.DataFrame, settings: Settings) -> pl.DataFrame:
    """Which rule named each pod, for ``doctor --identity``.

    What a pod was is read as attribution reads it, from all sources merged, so that neither the
    order of the rows nor what a weaker source says matters. A pod whose labels changed counts by
    its last.

    Args:
        pods: Rows of ``workloads``.
        settings: The rules.

    Returns:
        ``cluster, uid, key, rule, value``, sorted; one row per pod and key; rule and value null
        where none hit.
    """
    pod = ["cluster", "uid"]
    days = [
        merged_pods(DayFacts(day, workloads=rows))
        for (day,), rows in sorted(pods.partition_by("day", as_dict=True).items())
    ]
    lives = pl.concat(days or [merged_pods(DayFacts(date.min, workloads=pods))])
    last = lives.unique(pod, keep="last", maintain_order=True).sort(pod)
    return pl.concat(
        last.select(
            *pod,
            pl.lit(key).alias("key"),
            hit_rule(getattr(settings.identity, key), pod_rule).alias("rule"),
            first_hit(getattr(settings.identity, key), pod_rule).alias("value"),
        )
        for key in IDENTITY_KEYS
    )


def ambiguous_labels(lives: pl.DataFrame, settings: Settings) -> list[Gap]:
    """A gap for each rule of a label or annotation whose sanitised key collides on some pods."""
    gaps = []
    rules = {rule for name in IDENTITY_KEYS for rule in getattr(settings.identity, name)}
    for rule in sorted(rules):
        kind, _, key = rule.partition(":")
        if kind not in _COLUMNS:
            continue
        column = _COLUMNS[kind]
        forms = aliases(key, "annotation" if kind == "annotation" else "label")
        hits = lives.filter(
            json_value(column, key).is_null()
            & pl.any_horizontal(_collides(column, name) for name in forms)
        )
        if not hits.is_empty():
            pods = hits.select("cluster", "uid").n_unique()
            gaps.append(
                Gap(
                    "ambiguous_label",
                    f"{kind} {key}: two keys of a pod have the same sanitised form; "
                    f"collect {kind}s from the Kubernetes API",
                    {"pods": float(pods)},
                )
            )
    return gaps
