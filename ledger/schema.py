"""The tables of the ledger: one place for names, types and meaning.

Every table has ``day`` (UTC date) as its first partition column. Fact tables are also partitioned
by their source, because *day × source* is what a collector replaces. Time stamps are UTC
microseconds, intervals half-open. Money is ``Decimal(38, 12)`` in the row's ``BillingCurrency``.
JSON columns hold canonical text (sorted keys, no blanks), objects unless said otherwise.

FOCUS columns keep the names of the FinOps Open Cost and Usage Specification 1.2 (plus the provider
columns of 1.3); own columns of FOCUS tables start with ``x_``, as the specification asks.
"""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

MONEY = pl.Decimal(38, 12)
TIME = pl.Datetime("us", "UTC")

COST_COLUMNS = ("BilledCost", "EffectiveCost", "ContractedCost", "ListCost")
IDENTITY_KEYS = ("experiment", "model_version", "pipeline", "owner", "project", "phase")
IDLE, SHARED, UNATTRIBUTED = "__idle__", "__shared__", "__unattributed__"


@dataclass(frozen=True)
class Column:
    """A column: its type, unit or form, and whether a row may lack it."""

    dtype: pl.DataType
    doc: str
    required: bool = False


@dataclass(frozen=True)
class Table:
    """A table: its columns, the partition that a writer replaces, and its row key."""

    name: str
    doc: str
    columns: dict[str, Column]
    partition: tuple[str, ...] = ("day",)
    key: tuple[str, ...] = ()

    @property
    def schema(self) -> dict[str, pl.DataType]:
        """Column names and polars types, in order."""
        return {name: column.dtype for name, column in self.columns.items()}

    @property
    def source_column(self) -> str | None:
        """The partition column that names the source, if the table has one."""
        return self.partition[-1] if len(self.partition) > 1 else None

    def empty(self) -> pl.DataFrame:
        """A frame without rows in this table's form."""
        return pl.DataFrame(schema=self.schema)


def _text(doc: str, *, required: bool = False) -> Column:
    return Column(pl.String(), doc, required)


def _time(doc: str, *, required: bool = False) -> Column:
    return Column(TIME, doc, required)


def _money(doc: str) -> Column:
    return Column(MONEY, doc)


def _int(doc: str) -> Column:
    return Column(pl.Int64(), doc)


def _float(doc: str) -> Column:
    return Column(pl.Float64(), doc)


_DAY = Column(pl.Date(), "UTC day", required=True)
_SOURCE = _text("the collector that wrote the row, e.g. prometheus/train-a", required=True)
_CLUSTER = _text("cluster name from the settings", required=True)

_FOCUS_TEXT = (
    "AvailabilityZone BillingAccountId BillingAccountName BillingAccountType BillingCurrency "
    "CapacityReservationId CapacityReservationStatus ChargeCategory ChargeClass ChargeDescription "
    "ChargeFrequency CommitmentDiscountCategory CommitmentDiscountId CommitmentDiscountName "
    "CommitmentDiscountStatus CommitmentDiscountType CommitmentDiscountUnit ConsumedUnit "
    "HostProviderName InvoiceId InvoiceIssuerName PricingCategory PricingCurrency PricingUnit "
    "ProviderName PublisherName RegionId RegionName ResourceId ResourceName ResourceType "
    "ServiceCategory ServiceName ServiceProviderName ServiceSubcategory SkuId SkuMeter SkuPriceId "
    "SubAccountId SubAccountName SubAccountType"
).split()
_FOCUS_DECIMAL = (
    "BilledCost EffectiveCost ContractedCost ListCost ListUnitPrice ContractedUnitPrice "
    "PricingQuantity ConsumedQuantity CommitmentDiscountQuantity "
    "PricingCurrencyContractedUnitPrice PricingCurrencyEffectiveCost PricingCurrencyListUnitPrice"
).split()
_FOCUS_TIME = "BillingPeriodStart BillingPeriodEnd ChargePeriodStart ChargePeriodEnd".split()
_FOCUS_JSON = "SkuPriceDetails Tags".split()
_FOCUS_REQUIRED = {"BillingCurrency", "ChargeCategory", "ChargePeriodStart", "ChargePeriodEnd"}


def _focus_columns() -> dict[str, Column]:
    columns: dict[str, Column] = {}
    for names, dtype, doc in (
        (_FOCUS_TEXT, pl.String(), "FOCUS text"),
        (_FOCUS_DECIMAL, MONEY, "FOCUS decimal"),
        (_FOCUS_TIME, TIME, "FOCUS date-time, UTC; starts inclusive, ends exclusive"),
        (_FOCUS_JSON, pl.String(), "FOCUS JSON object, original keys"),
    ):
        for name in names:
            columns[name] = Column(dtype, doc, name in _FOCUS_REQUIRED)
    return dict(sorted(columns.items()))


_X_ORIGIN = {
    "x_Source": _text(
        "the bill that the line stands in, by its name in the settings", required=True
    ),
    "x_LineId": _text("stable id of the bill line inside its source", required=True),
    "x_Part": _int("number of the day's part of a line that spans several days, from 0"),
    "x_Basis": _text("evidence: billed, estimated or declared", required=True),
    "x_Dimension": _text("data, compute, evaluation, storage_logs, human or other"),
    "x_Elasticity": _text("fixed or elastic"),
}

CHARGES = Table(
    "charges",
    "One line of a bill, or a day's part of a longer one: FOCUS Cost and Usage columns.",
    {
        "day": _DAY,
        **_X_ORIGIN,
        **_focus_columns(),
        "x_InvoiceMonth": _text("month of the invoice, YYYY-MM, where the bill tells it apart"),
        "x_PriceSource": _text("where the price of an estimated line comes from"),
        "x_Other": _text("columns of the file that FOCUS does not know, JSON"),
    },
    partition=("day", "x_Source"),
    key=("x_LineId", "x_Part"),
)

PRICES = Table(
    "prices",
    "A price of a key over an interval; what prices a node where no bill does.",
    {
        "day": _DAY,
        "source": _SOURCE,
        "resource": _text(
            "node, gpu (a card and its part of the node), gpu_alone (a card without them), vcpu, "
            "gib or storage_gib",
            required=True,
        ),
        "provider": _text("provider name, null = any"),
        "region": _text("region, null = any"),
        "zone": _text("zone, null = any"),
        "node": _text("node name: the price of this node alone, as a metric tells it"),
        "instance_type": _text("instance type, null = any"),
        "operating_system": _text("linux or windows, null = any"),
        "tenancy": _text("shared, dedicated or host, null = any"),
        "gpu_model": _text("card model, for resource gpu"),
        "capacity_type": _text("on-demand, spot, reserved; null = any"),
        "currency": _text("ISO 4217", required=True),
        "start": _time("valid from", required=True),
        "end": _time("valid until", required=True),
        "price_per_hour": _money("price of one unit for one hour; null = there is one, unknown"),
        "kind": _text(
            "contract, settings, upfront (a fee spread over its hours), free (0 is meant), spot, "
            "list (a price book), metric (what an exporter shows) or reference (a built-in rate); "
            "null = settings"
        ),
    },
    partition=("day", "source"),
)

NODES = Table(
    "nodes",
    "A node over an interval of the day in which its capacity and labels did not change.",
    {
        "day": _DAY,
        "source": _SOURCE,
        "cluster": _CLUSTER,
        "node": _text("node name", required=True),
        "provider_id": _text("spec.providerID, as given"),
        "start": _time("seen or registered from, inside the day", required=True),
        "end": _time("until", required=True),
        "created": _time("metadata.creationTimestamp, may lie before the day"),
        "instance_type": _text("node.kubernetes.io/instance-type"),
        "capacity_type": _text("on-demand, spot, reserved"),
        "region": _text("topology.kubernetes.io/region"),
        "zone": _text("topology.kubernetes.io/zone"),
        "cpu_millicores": _int("capacity, thousandths of a core"),
        "memory_bytes": _int("capacity, bytes"),
        "gpus": _int("physical cards; null = the node does not say"),
        "gpu_resource": _text("resource name of the cards, e.g. nvidia.com/gpu"),
        "gpu_model": _text("card model, e.g. NVIDIA-H100-80GB-HBM3"),
        "gpu_units": _text(
            "what one unit of each device resource of the node is of a physical card, JSON object "
            'of fractions ("1", "1/7"); null under a name = not known; null = units are cards'
        ),
        "gpu_memory_mib": _int("memory of one physical card, MiB"),
        "labels": _text("labels, JSON"),
        "interval_seconds": _float(
            "usual distance of the samples; 0 = told to the second; null = from the API"
        ),
    },
    partition=("day", "source"),
    key=("cluster", "node", "start"),
)

WORKLOADS = Table(
    "workloads",
    "A pod over an interval of constant labels, requests, node and state, inside the day.",
    {
        "day": _DAY,
        "source": _SOURCE,
        "cluster": _CLUSTER,
        "uid": _text("pod uid", required=True),
        "namespace": _text("namespace", required=True),
        "pod": _text("pod name", required=True),
        "node": _text("node name; null = not bound, costs nothing"),
        "start": _time("from", required=True),
        "end": _time("until", required=True),
        "state": _text(
            "running, or held (bound, no container running yet or any more)", required=True
        ),
        "reason": _text("why held: ContainerCreating, ...; EndNotSeen: it ended unseen after that"),
        "bound_at": _time("PodScheduled time from the API; may lie outside the day"),
        "finished_at": _time(
            "finish time from the API, or last seen while its cluster still was; may lie outside "
            "the day"
        ),
        "owners": _text("owner chain, nearest first: JSON list of {kind, name}"),
        "root_kind": _text("kind of the last known owner"),
        "root_name": _text("name of the last known owner; null = bare pod"),
        "role": _text("FORM:VALUE, e.g. ray-group:NAME, replica-type:NAME, ray-node-type:head"),
        "labels": _text("pod labels, JSON, original keys; sanitised ones start with label_"),
        "owner_labels": _text("labels of the owners, nearest wins, JSON"),
        "annotations": _text("pod annotations, allow-listed, JSON"),
        "environment": _text("allow-listed environment variables, JSON"),
        "cpu_millicores": _int("effective request, thousandths of a core"),
        "memory_bytes": _int("effective request, bytes"),
        "gpus": _int("requested units of gpu_resource"),
        "gpu_resource": _text("resource name, e.g. nvidia.com/gpu"),
        "gpu_request": _text(
            "requested units of every device resource, JSON object of whole numbers: cards, parts "
            "of cards, nvidia.com/gpucores, nvidia.com/gpumem; null = gpus of gpu_resource"
        ),
        "interval_seconds": _float(
            "usual distance of the samples; 0 = told to the second; null = from the API"
        ),
    },
    partition=("day", "source"),
    key=("cluster", "uid", "start"),
)

CLAIMS = Table(
    "claims",
    "A ResourceClaim (dynamic resource allocation) over an interval of constant allocation.",
    {
        "day": _DAY,
        "source": _SOURCE,
        "cluster": _CLUSTER,
        "uid": _text("claim uid", required=True),
        "namespace": _text("namespace", required=True),
        "claim": _text("claim name", required=True),
        "node": _text("node whose devices it holds; null = not told"),
        "start": _time("allocated from, inside the day", required=True),
        "end": _time("until", required=True),
        "cards": _text(
            'what its devices are of physical cards, a fraction ("2", "1/7"); devices with '
            "adminAccess count nothing; null = not known"
        ),
        "pods": _text("uids of the pods that it is reserved for, JSON list"),
        "interval_seconds": _float("usual distance of the samples; null = from the API"),
    },
    partition=("day", "source"),
    key=("cluster", "uid", "start"),
)

VOLUMES = Table(
    "volumes",
    "A persistent volume over an interval of the day.",
    {
        "day": _DAY,
        "source": _SOURCE,
        "cluster": _CLUSTER,
        "volume": _text("name of the PersistentVolume", required=True),
        "handle": _text("the provider's id of the disk, e.g. vol-0abc; meets ResourceId"),
        "driver": _text("CSI driver or volume plugin"),
        "namespace": _text("namespace of the claim"),
        "claim": _text("name of the PersistentVolumeClaim"),
        "storage_class": _text("storage class"),
        "start": _time("from", required=True),
        "end": _time("until", required=True),
        "bytes": _int("capacity, bytes"),
        "labels": _text("labels of the claim, JSON"),
        "annotations": _text("annotations of the claim, allow-listed, JSON"),
        "interval_seconds": _float("usual distance of the samples; null = from the API"),
    },
    partition=("day", "source"),
    key=("cluster", "volume", "start"),
)

MOUNTS = Table(
    "mounts",
    "A pod that mounts a persistent volume, as its specification says; its life is the pod's.",
    {
        "day": _DAY,
        "source": _SOURCE,
        "cluster": _CLUSTER,
        "volume": _text("name of the PersistentVolume", required=True),
        "uid": _text("pod uid", required=True),
    },
    partition=("day", "source"),
    key=("cluster", "volume", "uid"),
)

OBJECTS = Table(
    "objects",
    "What a bucket or file system holds on a day, per prefix, class, age band and size band.",
    {
        "day": _DAY,
        "source": _SOURCE,
        "resource": _text("bucket or file system as the bill names it", required=True),
        "prefix": _text("path of the prefix, e.g. s3://rollouts/grpo-7b/", required=True),
        "storage_class": _text("storage class, null = the file system's only one"),
        "age_band": _text("lower bound in days of the time since the last change"),
        "size_band": _text("lower bound in bytes"),
        "count": _int("objects"),
        "bytes": _int("bytes"),
        "oldest": _time("oldest last change"),
        "newest": _time("newest last change"),
        "last_read": _time("newest read, where it is known"),
    },
    partition=("day", "source"),
    key=("resource", "prefix", "storage_class", "age_band", "size_band"),
)

REQUESTS = Table(
    "requests",
    "Storage operations per prefix, operation and hour.",
    {
        "day": _DAY,
        "source": _SOURCE,
        "resource": _text("bucket or file system as the bill names it", required=True),
        "prefix": _text("path of the prefix", required=True),
        "operation": _text("operation, e.g. GetObject", required=True),
        "hour": _time("start of the hour", required=True),
        "count": _int("operations"),
        "bytes": _int("bytes moved"),
    },
    partition=("day", "source"),
    key=("resource", "prefix", "operation", "hour"),
)

LOG_VOLUME = Table(
    "log_volume",
    "Log lines and bytes per stream, level and hour.",
    {
        "day": _DAY,
        "source": _SOURCE,
        "resource": _text("log group or store as the bill names it", required=True),
        "stream": _text("stream: path, log stream or cluster/namespace/pod", required=True),
        "cluster": _text("cluster of the pod that wrote it, where it is known"),
        "uid": _text("uid of the pod that wrote it, where it is known"),
        "level": _text("trace, debug, info, warning, error, critical or unknown", required=True),
        "hour": _time("start of the hour", required=True),
        "lines": _int("lines"),
        "bytes": _int("bytes"),
        "stored_bytes": _int("bytes that the whole stream keeps, where it is known"),
        "labels": _text("labels of the stream, JSON"),
    },
    partition=("day", "source"),
    key=("resource", "stream", "level", "hour"),
)

POD_SPLITS = Table(
    "pod_splits",
    "A row of the provider's own split of a machine (EKS split cost): evidence, never a charge.",
    {
        "day": _DAY,
        "source": _SOURCE,
        "parent": _text("ResourceId of the machine whose price it repeats", required=True),
        "BillingCurrency": _text("ISO 4217", required=True),
        "namespace": _text("namespace of the pod"),
        "pod": _text("pod name"),
        "uid": _text("pod uid, where the bill tells it"),
        "resource": _text("cpu, memory or gpu", required=True),
        "start": _time("from", required=True),
        "end": _time("until", required=True),
        "reserved": Column(MONEY, "vCPU-hours, GB-hours or card-hours that were reserved"),
        "used": Column(MONEY, "the same, used"),
        "SplitCost": _money("cost of what the pod had"),
        "UnusedCost": _money("the pod's part of the unused cost"),
    },
    partition=("day", "source"),
)

USAGE = Table(
    "usage",
    "A meter of a node, device or pod in a 15-minute slot.",
    {
        "day": _DAY,
        "source": _SOURCE,
        "cluster": _CLUSTER,
        "node": _text("node name"),
        "device": _text("card UUID, or its index on the node"),
        "uid": _text("pod uid"),
        "namespace": _text("namespace"),
        "pod": _text("pod name"),
        "meter": _text(
            "gpu_activity (ratio), cpu_usage (cores), memory_working_set (bytes), "
            "cpu_above_request and memory_above_request (the same, above the request at each "
            "sample; only where use crosses it), "
            "network_receive and network_transmit (bytes per second), up (1 per scrape); of "
            "engines in a pod: generation_tokens and prompt_tokens (tokens per second), "
            "requests_running, requests_waiting, kv_cache_usage (ratio), preemptions and "
            "requests_finished (per second); of Ray: "
            "ray_gpu_utilization (ratio), object_store_spilled (bytes)",
            required=True,
        ),
        "slot": _time("start of the slot", required=True),
        "mean": _float("mean"),
        "min": _float("minimum"),
        "max": _float("maximum"),
        "p50": _float("median"),
        "p99": _float("99th percentile"),
        "last": _float("last value"),
        "last_change": _time("last sample whose value differs from the one before"),
        "samples": _int("samples seen"),
        "expected": _int("samples expected"),
    },
    partition=("day", "source"),
    key=("cluster", "node", "device", "uid", "meter", "slot"),
)

COVERAGE = Table(
    "coverage",
    "How many samples of a meter were seen on a node in a day, of how many that could be expected.",
    {
        "day": _DAY,
        "source": _SOURCE,
        "cluster": _CLUSTER,
        "node": _text("node name; null = of what is on no known node"),
        "meter": _text("a meter of usage", required=True),
        "seen": _int("samples seen"),
        "expected": _int("samples expected: of all that ran on it, at the usual distance"),
        "things": _int("cards, pods or nodes that samples were expected of"),
        "silent": _int("those of them that no sample was seen of; null = not told"),
        "interval_seconds": _float("usual distance of the samples"),
    },
    partition=("day", "source"),
    key=("cluster", "node", "meter"),
)

RESOURCES = Table(
    "resources",
    "The configuration of a resource on a day: an autoscaler, a RayJob's status, a bucket rule.",
    {
        "day": _DAY,
        "source": _SOURCE,
        "cluster": _text("cluster name, if it lives in one"),
        "kind": _text("Kubernetes kind or cloud resource type", required=True),
        "namespace": _text("namespace"),
        "name": _text("name", required=True),
        "uid": _text("uid, where it has one: a name can be used again"),
        "seen_at": _time("when it was last seen so; null = not told (a dump)"),
        "configuration": _text("what was read of it, JSON; docs/resources.md has the keys"),
    },
    partition=("day", "source"),
    key=("cluster", "kind", "namespace", "name", "uid"),
)

EVENTS = Table(
    "events",
    "Something that happened at a moment to a pod, node, job or run.",
    {
        "day": _DAY,
        "source": _SOURCE,
        "cluster": _text("cluster name, if it happened in one"),
        "id": _text(
            "what is the same in every telling of it: the uid of the API's Event, "
            "POD_UID/CONTAINER/FINISHED of a container that ended, RUN/ATTEMPT/STEP/KIND, ...",
            required=True,
        ),
        "time": _time("when it happened, the last time on this day", required=True),
        "first_time": _time("since when it has happened; may lie before the day"),
        "kind": _text(
            "eviction, preemption, out_of_memory, restart, not_scheduled, node_not_ready, "
            "scale_down, checkpoint, resume, from_scratch, hang, ...: docs/resources.md",
            required=True,
        ),
        "object_kind": _text("what it happened to: Pod, Node, RayJob, run, ..."),
        "namespace": _text("namespace"),
        "name": _text("name"),
        "uid": _text("uid of the object"),
        "node": _text("node that it happened on"),
        "reason": _text("the word of whoever tells it, e.g. OOMKilled"),
        "message": _text("its sentence, cut short, without credentials"),
        "count": _int("how often since first_time; null = not told"),
        "attributes": _text("what else is known: container, exit code, step, ...; JSON"),
    },
    partition=("day", "source"),
    key=("cluster", "id"),
)

_PLACE = {
    "cluster": _text("cluster of the node"),
    "node": _text("node name"),
    "namespace": _text("namespace of the pod"),
    "resource": _text(
        "what was paid for: gpu, cpu, memory, storage, requests, network, logs, or null where the "
        "line is not split"
    ),
}
_ORIGIN_OF_ROW = {
    "instance_type": _text("instance type of the node"),
    "root_kind": _text("kind of the pod's last known owner, e.g. RayJob"),
    "root_name": _text("name of the pod's last known owner; null = bare pod"),
    "annotations": _text("pod annotations, allow-listed, JSON"),
    "x_LineType": _text(
        "usage, commitment, commitment_unused, purchase, discount, credit, refund, tax, support "
        "or adjustment"
    ),
    "x_InvoiceMonth": _text("YYYY-MM of the invoice, else of the billing period"),
    "x_PriceSource": _text("where the price of an estimated line comes from"),
    "BillingPeriodStart": _time("FOCUS BillingPeriodStart of the line"),
}
_IDENTITY = {
    "target": _text(
        "workload, charge (by its own tags), __idle__, __shared__ or __unattributed__",
        required=True,
    ),
    "reason": _text("why __unattributed__: no_rule, no_samples, unpriced, ..."),
    **{key: _text(f"{key}; special targets repeat their name here") for key in IDENTITY_KEYS},
    "tags": _text("pod labels, or the tags of the bill line, JSON; what --tag looks at"),
    "confidence": _text("high or low"),
}
_FIGURES = {
    "BilledCost": _money("share of the invoice line"),
    "EffectiveCost": _money("share of the amortised cost"),
    "ContractedCost": _money("share of the contracted cost; null = unknown"),
    "ListCost": _money("share of the list cost; null = unknown"),
    "ActiveCost": _money("effective cost of the part that worked; null = no telemetry"),
    "gpu_seconds": Column(MONEY, "card-seconds; on one line of a node-hour only, so sums are true"),
    "requested": Column(
        MONEY,
        "core-hours, GiB-hours or card-hours that the pod asked for, by resource; on one line of a "
        "node-hour only; null = not known",
    ),
    "used": Column(MONEY, "the same, used: null = no telemetry"),
}
_ORIGIN_DIMENSIONS = {
    name: CHARGES.columns[name]
    for name in (
        "BillingCurrency",
        "ProviderName",
        "ServiceName",
        "ServiceCategory",
        "ChargeCategory",
        "RegionId",
        "SubAccountId",
    )
}

COSTS = Table(
    "costs",
    "The product: an attributed share of one charge, cut by hour where a node is split.",
    {
        "day": _DAY,
        **_X_ORIGIN,
        **_ORIGIN_DIMENSIONS,
        "ResourceId": _text("FOCUS ResourceId of the line"),
        "ChargePeriodStart": _time("start of this share's hour or of the line", required=True),
        "ChargePeriodEnd": _time("its end", required=True),
        **_PLACE,
        "uid": _text("pod uid"),
        "pod": _text("pod name"),
        "path": _text("prefix, directory, stream or volume that the share is of"),
        **_ORIGIN_OF_ROW,
        **_IDENTITY,
        **_FIGURES,
    },
    key=(
        "x_Source",
        "x_LineId",
        "x_Part",
        "ChargePeriodStart",
        "resource",
        "target",
        "uid",
        "reason",
        "path",
    ),
)

COSTS_DAILY = Table(
    "costs_daily",
    "costs, summed over lines, pods and hours: what query and report read.",
    {
        "day": _DAY,
        "x_Source": _X_ORIGIN["x_Source"],
        "x_Basis": _X_ORIGIN["x_Basis"],
        "x_Dimension": _X_ORIGIN["x_Dimension"],
        "x_Elasticity": _X_ORIGIN["x_Elasticity"],
        **_ORIGIN_DIMENSIONS,
        **_PLACE,
        **_ORIGIN_OF_ROW,
        **_IDENTITY,
        **_FIGURES,
        **{f"{name}_unknown": _int(f"shares whose {name} is unknown") for name in COST_COLUMNS},
    },
)

RESTATEMENTS = Table(
    "restatements",
    "A day's cost of an experiment that changed when the day was attributed again.",
    {
        "day": _DAY,
        "experiment": _text("experiment", required=True),
        "BillingCurrency": _text("ISO 4217", required=True),
        "old": _money("effective cost before"),
        "new": _money("effective cost now"),
        "why": _text("what changed: bill, usage, settings"),
        "inputs": _text("digest of the inputs of the new figure", required=True),
    },
)

OUTCOMES = Table(
    "outcomes",
    "A rule's answer on a day, per resource; resource null is the rule's own state.",
    {
        "day": _DAY,
        "rule": _text("code", required=True),
        "name": _text("dotted name", required=True),
        "resource": _text("kind/name"),
        "status": _text("finding, clean or unknown", required=True),
        "reason": _text("why unknown"),
        "skipped": _int("resources out of scope"),
        "required": Column(pl.Boolean(), "unknown because a required source is missing"),
        "window_start": _time("first moment looked at"),
        "window_end": _time("end, exclusive"),
    },
    key=("rule", "resource"),
)

FINDINGS = Table(
    "findings",
    "Waste, with its evidence, price, owner and way out.",
    {
        "day": _DAY,
        "rule": _text("code", required=True),
        "name": _text("dotted name", required=True),
        "fingerprint": _text("hash of rule, resource and kind of evidence", required=True),
        "resource": _text("kind/name", required=True),
        "severity": _text("high, medium or low"),
        "experiment": _text("experiment"),
        "model_version": _text("model version"),
        "owner": _text("owner"),
        "title": _text("one sentence"),
        "BillingCurrency": _text("ISO 4217"),
        "spent": _money("already spent in the window"),
        "saving_per_month": _money("saved in 30 days, after overlaps; null = see money_reason"),
        "own_saving_per_month": _money("saved in 30 days if this were the only finding"),
        "method": _text("how the money was worked out"),
        "basis": _text("billed or estimated"),
        "money_reason": _text("no_price, price_ambiguous"),
        "confidence": _text("high, medium, low"),
        "evidence": _text(
            "JSON list of {metric, source, window, samples, expected, value, threshold}"
        ),
        "claims": _text("JSON list of the costs rows it claims: {cluster, node, start, end}"),
        "remedy": _text("JSON {summary, commands}"),
        "guardrail": _text("what must be kept"),
        "first_seen": Column(pl.Date(), "day of the first sighting"),
        "status": _text("new, ongoing, resolved or excepted"),
        "exception": _text("JSON {reason, until}"),
        "window_start": _time("first moment looked at"),
        "window_end": _time("end, exclusive"),
    },
    key=("rule", "fingerprint"),
)

CLOSES = Table(
    "closes",
    "How a stage of a day ended for a source: what it saw, lacked, and put aside.",
    {
        "day": _DAY,
        "stage": _text("collect, attribute or checklist", required=True),
        "source": _SOURCE,
        "status": _text("closed, gaps or failed", required=True),
        "required": Column(pl.Boolean(), "a gap here gives exit code 3"),
        "coverage": _float("seen / expected, 0 to 1; null = not applicable"),
        "rows": _int("rows written"),
        "quarantined": _int("rows put aside"),
        "quarantine": _text("JSON list of {reason, where, count, example}"),
        "gaps": _text("JSON list of {reason, detail, ...}"),
        "notes": _text("JSON list of what a reader should know"),
        "residue": _text("JSON object: table.column to the exact amount lost by rounding to 1e-12"),
        "data_through": _time("end of the delivered data"),
        "digest": _text("content digest of what was written"),
        "inputs": _text("digest of what it was worked out from"),
        "settings_hash": _text("hash of the settings in force"),
        "version": _text("runbill version"),
    },
    partition=("day", "stage", "source"),
    key=("stage", "source"),
)

TABLES: dict[str, Table] = {
    table.name: table
    for table in (
        CHARGES,
        PRICES,
        NODES,
        WORKLOADS,
        CLAIMS,
        VOLUMES,
        MOUNTS,
        OBJECTS,
        REQUESTS,
        LOG_VOLUME,
        POD_SPLITS,
        USAGE,
        COVERAGE,
        RESOURCES,
        EVENTS,
        COSTS,
        COSTS_DAILY,
        RESTATEMENTS,
        OUTCOMES,
        FINDINGS,
        CLOSES,
    )
}
