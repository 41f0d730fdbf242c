"""A job as accounting knows it, in one form for all formats of ``sacct``.

One row is one *run* of a job: a requeued job has several, told apart by their start. Steps are
never rows. Times are seconds since the epoch.
"""

from __future__ import annotations

import re

import polars as pl

SCHEMA: dict[str, pl.DataType] = {
    "cluster": pl.String(),  # of Slurm, not of the settings
    "job": pl.String(),  # 123, 123_4 (array), 123+1 (heterogeneous)
    "raw": pl.String(),  # the number of the job alone
    "array": pl.String(),  # the number that all jobs of an array share
    "submit": pl.Int64(),
    "start": pl.Int64(),  # null = not started
    "end": pl.Int64(),  # null = not ended, as far as the file knows
    "elapsed": pl.Int64(),
    "suspended": pl.Int64(),
    "state": pl.String(),
    "nodes": pl.String(),
    "tres": pl.String(),  # allocated, else requested
    "name": pl.String(),
    "account": pl.String(),
    "user": pl.String(),
    "partition": pl.String(),
    "qos": pl.String(),
    "comment": pl.String(),
    "admin_comment": pl.String(),
    "wckey": pl.String(),
    "reservation": pl.String(),
    "exit_code": pl.String(),
    "bad": pl.String(),  # why the row cannot be used; null = it can
}

ENDED = frozenset(
    "BOOT_FAIL CANCELLED COMPLETED DEADLINE FAILED LAUNCH_FAILED NODE_FAIL OUT_OF_MEMORY "
    "PREEMPTED RECONFIG_FAIL REQUEUED RESIZING REVOKED SPECIAL_EXIT TIMEOUT".split()
)
WAITING = frozenset({"PENDING", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD"})
BOOTING = frozenset({"CONFIGURING", "POWER_UP_NODE"})
RUNNING = frozenset(
    {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "SIGNALING", "STAGE_OUT", "EXPEDITING"}
)
STATES = ENDED | WAITING | BOOTING | RUNNING
"""States of a job, as ``job_state_string`` of Slurm names them, and its flags."""

_SHORT = {
    "BF": "BOOT_FAIL",
    "CA": "CANCELLED",
    "CD": "COMPLETED",
    "CF": "CONFIGURING",
    "CG": "COMPLETING",
    "DL": "DEADLINE",
    "F": "FAILED",
    "NF": "NODE_FAIL",
    "OOM": "OUT_OF_MEMORY",
    "PD": "PENDING",
    "PR": "PREEMPTED",
    "R": "RUNNING",
    "RQ": "REQUEUED",
    "RS": "RESIZING",
    "RV": "REVOKED",
    "S": "SUSPENDED",
    "ST": "STOPPED",
    "TO": "TIMEOUT",
}
_FIRST = (ENDED, BOOTING, WAITING, RUNNING)


def state_of(text: str) -> str:
    """The state that counts of a text such as ``CANCELLED by 1000`` or ``RUNNING CONFIGURING``.

    Of several the one that has ended wins, then one that boots; a word that nobody knows is
    returned as it is.
    """
    words = [_SHORT.get(word, word) for word in re.split(r"[\s,+]+", text.strip().upper()) if word]
    for kind in _FIRST:
        if known := next((word for word in words if word in kind), None):
            return known
    return words[0] if words else ""


def with_states(rows: pl.DataFrame) -> pl.DataFrame:
    """Replace the texts of ``state`` by ``state_of`` them; each distinct text is read once."""
    texts = rows["state"].drop_nulls().unique().to_list()
    found = pl.DataFrame(
        {"state": texts, "_state": [state_of(text) for text in texts]},
        schema={"state": pl.String(), "_state": pl.String()},
    )
    joined = rows.join(found, on="state", how="left", maintain_order="left")
    return joined.with_columns(pl.col("_state").fill_null("").alias("state")).drop("_state")
