"""S3 Inventory: the newest report of each bucket, rolled up file by file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import unquote_plus

import polars as pl

from collector.billing.files import LocalFile, fetch
from collector.billing.s3 import is_s3
from collector.source import Permissions, Probe
from collector.storage import manifests
from collector.storage.bands import AGES, KEYS, SIZES, band_column, object_rows, roll_up
from collector.storage.manifests import Manifest
from collector.storage.prefixes import Prefixes
from ledger.errors import AccessError, BadInputError, RunbillError, SourceError
from ledger.facts import Facts, Gap, Quarantine
from ledger.schema import OBJECTS, TIME
from ledger.stores import InventoryStore
from ledger.window import Window

MOST_DAYS = 7
"""How old a report may be and still say what a bucket holds."""

_NAMES = {
    "key": "Key",
    "size": "Size",
    "changed": "LastModifiedDate",
    "storage_class": "StorageClass",
    "marker": "IsDeleteMarker",
}
_PARQUET = {
    "key": "key",
    "size": "size",
    "changed": "last_modified_date",
    "storage_class": "storage_class",
    "marker": "is_delete_marker",
}
_DAY_MS = 86_400_000


@dataclass(frozen=True)
class Inventory:
    """Reports of S3 Inventory of the settings.

    Args:
        store: Their block of the settings.
        path: Folder or ``s3://`` prefix, absolute.
        patterns: ``prefixes.patterns_of``.
    """

    store: InventoryStore
    path: str
    patterns: Sequence[str]
    _rolled: dict[str, tuple[pl.DataFrame, Counter[str], int]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """``storage/NAME``."""
        return self.store.source

    @property
    def required(self) -> bool:
        """Whether a gap here makes the run end with exit code 3."""
        return self.store.required

    @property
    def snapshot(self) -> bool:
        """No: reports stay."""
        return False

    @property
    def permissions(self) -> Permissions:
        """Listing and reading the destination of the reports."""
        return Permissions(iam=("s3:ListBucket", "s3:GetObject") if is_s3(self.path) else ())

    @cached_property
    def _manifests(self) -> list[Manifest]:
        found = [manifests.read(where) for where in manifests.find(self.path)]
        return [m for m in found if self.store.bucket in (None, m.bucket)]

    def reach(self) -> Window | None:
        """From the first report to as long after the last as it counts."""
        days = sorted(manifest.day for manifest in self._manifests)
        return Window.of_days(days[0], days[-1] + timedelta(days=MOST_DAYS)) if days else None

    def probe(self) -> Sequence[Probe]:
        """Look for reports and read their manifests."""
        need, blind = f"read reports below {self.path}", "who owns the bytes of the bucket"
        try:
            found = self._manifests
        except RunbillError as error:
            return [Probe(need, False, str(error), blind, failure=type(error))]
        if not found:
            return [Probe(need, False, "no manifest.json of a report", blind, failure=SourceError)]
        last = max(found, key=lambda manifest: manifest.created)
        detail = f"{len(found)} reports, the last of {last.day} ({last.bucket}, {last.form})"
        return [Probe(need, True, detail, reach=self.reach())]

    def collect(self, window: Window) -> Facts:
        """What the buckets held by their newest reports, as rows of each day.

        The report of a day stands on the following ones too, for at most ``MOST_DAYS``. All
        versions of an object count, delete markers do not. Ages count to the report's time.

        Raises:
            AccessError, SourceError: The reports cannot be found.
            BadInputError: A manifest is none.
        """
        rows: list[pl.DataFrame] = []
        gaps: dict[tuple[str, str], Gap] = {}
        notes: list[str] = []
        used: dict[str, Manifest] = {}
        for day in window.days():
            reports = manifests.newest(self._manifests, day, MOST_DAYS)
            if not reports:
                gap = Gap("no_inventory", f"{self.path}: no report of {MOST_DAYS} days up to {day}")
                gaps[gap.reason, gap.detail] = gap
            for report in reports:
                try:
                    rows.append(self._rows(report, day))
                    used[report.where] = report
                except (AccessError, SourceError, BadInputError) as error:
                    gap = Gap(_reason(error), str(error))
                    gaps[gap.reason, gap.detail] = gap
                if report.day < day:
                    notes.append(f"{report.bucket}: on {day} by the report of {report.day}")
        return Facts(
            window,
            {OBJECTS.name: pl.concat(rows)} if rows else {},
            gaps=tuple(gaps.values()),
            quarantine=tuple(self._aside(used)),
            notes=tuple(notes),
            data_through=max((m.created for m in used.values()), default=None),
            read=sum(self._rolled[where][2] for where in used),
        )

    def _aside(self, used: dict[str, Manifest]) -> Iterator[Quarantine]:
        for where in used:
            for reason, count in sorted(self._rolled[where][1].items()):
                yield Quarantine(reason, where, count)

    def _rows(self, report: Manifest, day: date) -> pl.DataFrame:
        if report.where not in self._rolled:
            self._rolled[report.where] = self._roll(report)
        return object_rows(self._rolled[report.where][0], report.bucket, day)

    def _roll(self, report: Manifest) -> tuple[pl.DataFrame, Counter[str], int]:
        """The roll-up of a report, what was put aside by reason, and how many rows were read."""
        if report.form not in ("CSV", "PARQUET"):
            raise BadInputError(
                f"{report.where} is in the form {report.form}, which is not read",
                "let S3 Inventory write CSV or Parquet",
            )
        prefixes = Prefixes(f"s3://{report.bucket}/", self.patterns, self.store.depth)
        parts, aside, count = [_nothing()], Counter[str](), 0
        for key in report.files:
            with TemporaryDirectory() as folder:
                file = fetch(report.locate(key), Path(folder))
                try:
                    part, faults, height = _part(_listed(file, report), report, prefixes)
                except pl.exceptions.PolarsError as error:
                    text = " ".join(str(error).split())
                    raise BadInputError(f"{file.where} cannot be read: {text}") from error
            parts.append(part)
            aside.update(faults)
            count += height
        return roll_up(parts), aside, count


def _reason(error: RunbillError) -> str:
    """The name of what keeps a report from being read."""
    if isinstance(error, AccessError):
        return "access_denied"
    return "incomplete_export" if isinstance(error, SourceError) else "unreadable_file"


def _nothing() -> pl.DataFrame:
    names = (*KEYS, "count", "bytes", "oldest", "newest", "last_read")
    return pl.DataFrame(schema={name: OBJECTS.schema[name] for name in names})


def _listed(file: LocalFile, report: Manifest) -> pl.LazyFrame:
    """A data file under our names, all texts if it is CSV; a column that it lacks is null.

    Raises:
        BadInputError: It has no keys, or not the columns of its manifest.
    """
    names = _PARQUET if file.parquet else _NAMES
    if file.parquet:
        rows = pl.scan_parquet(file.path)
    else:
        rows = pl.scan_csv(
            file.path,
            has_header=False,
            new_columns=list(report.columns),
            schema=dict.fromkeys(report.columns, pl.String),
            null_values=[""],
        )
    known = rows.collect_schema().names()
    if names["key"] not in known:
        raise BadInputError(f"{file.where} has no column {names['key']}")
    # A report tells a time as text or as a time: what it lacks is null in the same form.
    times = {"changed": TIME} if file.parquet else {}
    return rows.select(
        pl.col(given).alias(ours)
        if given in known
        else pl.lit(None, dtype=times.get(ours, pl.String)).alias(ours)
        for ours, given in names.items()
    )


def _part(
    listed: pl.LazyFrame, report: Manifest, prefixes: Prefixes
) -> tuple[pl.DataFrame, Counter[str], int]:
    """The roll-up of one data file."""
    csv = report.form == "CSV"
    size = pl.col("size").cast(pl.Int64, strict=False)
    changed = (
        pl.col("changed").str.to_datetime("%+", time_unit="us", time_zone="UTC", strict=False)
        if csv
        else pl.col("changed").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    )
    deep = f"^((?:[^/]*/){{0,{max(prefixes.levels, 0)}}})"
    marker = pl.col("marker").cast(pl.String).str.to_lowercase() == "true"
    rows = listed.filter(~marker.fill_null(value=False)).select(
        pl.col("key")
        .cast(pl.String)
        .str.extract(r"^(.*/)")
        .fill_null("")
        .str.extract(deep)
        .alias("raw"),
        size.alias("bytes"),
        changed.cast(TIME).alias("changed"),
        pl.col("storage_class").cast(pl.String),
        (pl.col("size").is_not_null() & size.is_null()).alias("bad_number"),
        (pl.col("changed").is_not_null() & changed.is_null()).alias("bad_date"),
    )
    age = (pl.lit(report.created).cast(TIME) - pl.col("changed")).dt.total_milliseconds() / _DAY_MS
    grouped = (
        rows.with_columns(
            band_column(age, AGES).alias("age_band"),
            band_column(pl.col("bytes"), SIZES).alias("size_band"),
        )
        .group_by("raw", "storage_class", "age_band", "size_band")
        .agg(
            pl.len().cast(pl.Int64).alias("count"),
            pl.when(pl.col("bytes").count() > 0).then(pl.col("bytes").sum()).alias("bytes"),
            pl.col("changed").min().alias("oldest"),
            pl.col("changed").max().alias("newest"),
            pl.lit(None, dtype=TIME).alias("last_read"),
            pl.col("bad_number", "bad_date").sum(),
        )
        .collect(engine="streaming")
    )
    folders = _folders(grouped["raw"].unique(), prefixes, encoded=csv)
    named = grouped.join(folders, on="raw", how="left")
    faults = Counter({name: int(named[name].sum()) for name in ("bad_number", "bad_date")})
    part = roll_up([named.select(_nothing().columns).cast(_nothing().schema)])
    return part, +faults, int(named["count"].sum())


def _folders(raw: pl.Series, prefixes: Prefixes, *, encoded: bool) -> pl.DataFrame:
    """``raw, prefix`` of folders as a report writes them; keys of a CSV report are URL-encoded."""
    plain = [unquote_plus(text) if encoded else text for text in raw]
    frame = pl.DataFrame(
        {"raw": raw, "folder": plain}, schema={"raw": pl.String, "folder": pl.String}
    )
    full = frame.with_columns(pl.concat_str(pl.lit(prefixes.root), "folder").alias("folder"))
    return full.select("raw", prefixes.column("folder").alias("prefix"))
