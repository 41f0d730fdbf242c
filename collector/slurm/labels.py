"""What accounting says of a job, as labels: ``slurm/…``, and what users write into free fields.

``key=value`` in the comment, the workload characterisation key or the administrator's comment is a
label of that key, as ``sbatch --comment experiment=grpo-7b,team=reasoning`` means it; so is a JSON
object of texts. Of a key in several of the three the first in this order counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import msgspec
import polars as pl

from ledger.text import canonical_json

_COLUMNS: Mapping[str, str] = {
    "slurm/account": "account",
    "slurm/admin-comment": "admin_comment",
    "slurm/array-job-id": "array",
    "slurm/cluster": "cluster",
    "slurm/comment": "comment",
    "slurm/exit-code": "exit_code",
    "slurm/job-id": "job",
    "slurm/job-id-raw": "raw",
    "slurm/name": "name",
    "slurm/partition": "partition",
    "slurm/qos": "qos",
    "slurm/reservation": "reservation",
    "slurm/state": "state",
    "slurm/user": "user",
    "slurm/wckey": "wckey",
}
_FREE = ("comment", "wckey", "admin_comment")
_LONGEST = 256
_PAIR = re.compile(r"(?:^|[\s,;|])([A-Za-z][A-Za-z0-9_./-]{0,62})=(?:\"([^\"]*)\"|([^\s,;|\"]+))")


def with_labels(rows: pl.DataFrame) -> pl.DataFrame:
    """Add ``labels``: canonical JSON (sorted keys, no blanks) of what is known of each job."""
    asked = rows.select(_FREE).unique()
    told = [free_labels(*texts) for texts in asked.iter_rows()]
    found = asked.with_columns(
        pl.Series("_before", [_body(each, before=True) for each in told], dtype=pl.String),
        pl.Series("_after", [_body(each, before=False) for each in told], dtype=pl.String),
    )
    own = pl.struct(
        pl.when(pl.col(column) != "").then(pl.col(column).str.slice(0, _LONGEST)).alias(key)
        for key, column in sorted(_COLUMNS.items())
    ).struct.json_encode()
    known = own.str.replace_all(r'"slurm/[a-z-]+":null,?', "").str.strip_prefix("{")
    known = known.str.strip_suffix("}").str.strip_suffix(",")
    joined = rows.join(found, on=list(_FREE), how="left", nulls_equal=True, maintain_order="left")
    parts = [
        pl.when(part != "").then(part) for part in (pl.col("_before"), known, pl.col("_after"))
    ]
    body = pl.concat_str(parts, separator=",", ignore_nulls=True)
    return joined.with_columns(pl.concat_str(pl.lit("{"), body, pl.lit("}")).alias("labels")).drop(
        "_before", "_after"
    )


def of_node(partitions: Sequence[str], features: Sequence[str] = ()) -> str:
    """The labels of a node, for pools, prices and questions, as canonical JSON."""
    found = {f"slurm/feature/{each}": "true" for each in features}
    found |= {f"slurm/partition/{each}": "true" for each in partitions}
    if partitions:
        found["slurm/partition"] = ",".join(partitions)
    if features:
        found["slurm/features"] = ",".join(features)
    return canonical_json(found)


def free_labels(*texts: str | None) -> dict[str, str]:
    """The labels in free texts; of a key that stands in several the first text's counts."""
    found: dict[str, str] = {}
    for text in filter(None, texts):
        for key, value in _pairs(text).items():
            if value and not key.startswith("slurm/"):
                found.setdefault(key, value[:_LONGEST])
    return found


def _pairs(text: str) -> dict[str, str]:
    if text.lstrip().startswith("{"):
        try:
            decoded = msgspec.json.decode(text)
        except msgspec.MsgspecError:
            return {}
        return {key: value for key, value in decoded.items() if isinstance(value, str)}
    return {key: quoted or plain for key, quoted, plain in _PAIR.findall(text)}


def _body(labels: Mapping[str, str], *, before: bool) -> str:
    """The members of an object that sort before (or after) those of ``slurm/``."""
    some = {key: value for key, value in labels.items() if (key < "slurm/") == before}
    return canonical_json(some)[1:-1]
