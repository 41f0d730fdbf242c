"""What a bill line pays for, by its units, its meter and its words.

FOCUS has no column for it. AWS names usage types (``USE1-Requests-Tier1``) in ``SkuMeter`` or
``x_UsageType``, Google and Azure write meters in words (``Class A Operations``, ``Hot LRS Write
Operations``).
"""

from __future__ import annotations

import polars as pl

_COLUMNS = ("SkuMeter", "ChargeDescription", "ConsumedUnit", "PricingUnit")
_OWN = ("x_UsageType", "x_Operation", "lineItem/UsageType", "line_item_usage_type")
_REQUESTS = r"\brequests?\b|\boperations?\b|\bapi calls?\b|\btransactions?\b"
_MOVED = (
    r"data.?transfer|(out|in|vpce|regional)-bytes|\begress\b|\bingress\b|\bdownload\b|\bretriev"
    r"|bandwidth|data.?access"
)
_INBOUND = r"(^|[^a-z])in-bytes|transfer[- ]in\b|\bingress\b|\binbound\b|\bdata in\b"
_WRITES = r"tier-?1\b|class a\b|\bput\b|\bwrite\b|\blist\b|\bcreate\b"
_READS = r"tier-?2\b|class b\b|\bget\b|\bread\b"
_STORED = r"timedstorage|\bstor(age|ed)\b|archiv|retention|gb-mo|month"
_COMPUTED = r"\bnat.?gateway|nat gateway|load.?balanc|\blcu"
_NETWORK = rf"{_MOVED}|{_COMPUTED}|inter.?zone|inter.?region|cross.?zone|\binternet\b"
_NOT_TRAFFIC = r"\bdns\b|route ?53|\bvpn\b|direct ?connect|cloudfront|\bcdn\b|firewall|domain"
_DISKS = r"\bebs\b|ebs:|elastic block|\bvolume|\bdisks?\b|\bpd (capacity|storage)"
_STORES = r"\bs3\b|simple storage|cloud storage|\bblob|elastic file|\befs\b|fsx|filestore|glacier"
_NO_MACHINE = (
    r"aws ?lambda|lambda-|serverless|\bfunctions?\b|cloud run|app ?engine|app ?runner|app service"
    r"|quantum|sagemaker|\bml\.|bedrock|vertex|lightsail|workspaces|appstream|gamelift|codebuild"
    r"|\bemr\b|elastic ?mapreduce|databricks|control.?plane|eks-hours|eks-auto|percluster"
    r"|cluster management|uptime sla|azure kubernetes service|snapshot|\bebs\b|ebs:|elastic block"
    r"|managed disks|elastic ?ip|public ?ipv4|ip addresses|idleaddress"
)
"""Words of what is no machine that could be a node, though bills call it Compute."""
_KUBERNETES = r"\beks\b|amazoneks|elastic (kubernetes|container) service"
_FARGATE = r"fargate"
_AWS_TYPE = (
    r"(?:^|[^a-z0-9.-])([a-z][a-z0-9-]*\d[a-z0-9-]*"
    r"\.(?:nano|micro|small|medium|large|\d*xlarge|metal[a-z0-9-]*))(?:$|[^a-z0-9.])"
)
_CLASSES = (
    ("GLACIER_IR", r"-gir\b|glacier.?i(nstant|r)"),
    ("DEEP_ARCHIVE", r"-gda\b|deep.?archive"),
    ("GLACIER", r"glacier"),
    ("ONEZONE_IA", r"-zia\b|one.?zone.{0,3}(infrequent|ia\b)"),
    ("INTELLIGENT_TIERING", r"-int\b|-int-|intelligent"),
    ("STANDARD_IA", r"-sia\b|standard.{0,3}(infrequent|ia\b)"),
    ("REDUCED_REDUNDANCY", r"-rrs\b|reduced.?redundancy"),
    ("EXPRESS_ONEZONE", r"-xz\b|express.?one"),
    ("NEARLINE", r"\bnearline\b"),
    ("COLDLINE", r"\bcoldline\b"),
    ("STANDARD", r"timedstorage-bytehrs|\bstandard storage\b"),
    ("ARCHIVE", r"\barchive\b.{0,12}(storage|data stored)"),
    ("HOT", r"\bhot\b.{0,12}data stored"),
    ("COOL", r"\bcool\b.{0,12}data stored"),
    ("COLD", r"\bcold\b.{0,12}data stored"),
)
"""Storage class of an inventory, and how lines name it; the first that fits counts."""


def with_words(lines: pl.DataFrame) -> pl.DataFrame:
    """Add ``words``: all that a line says of what it pays for, in lower case, between bars."""
    own = (pl.col("x_Other").str.json_path_match(f"$['{name}']") for name in _OWN)
    text = pl.concat_str(*map(pl.col, _COLUMNS), *own, separator=" | ", ignore_nulls=True)
    return lines.with_columns(text.str.to_lowercase().alias("words"))


def stored_kind() -> pl.Expr:
    """What a line of a store pays for: ``requests``, ``objects``, ``moved`` bytes or ``bytes``."""
    unit = pl.coalesce("ConsumedUnit", "PricingUnit").str.to_lowercase()
    words = pl.col("words")
    return (
        pl.when(unit.str.contains(_REQUESTS))
        .then(pl.lit("requests"))
        .when(unit.str.contains(r"\bobjects?\b"))
        .then(pl.lit("objects"))
        .when(words.str.contains(_MOVED))
        .then(pl.lit("moved"))
        .when(words.str.contains(_REQUESTS))
        .then(pl.lit("requests"))
        .otherwise(pl.lit("bytes"))
    )


def request_class() -> pl.Expr:
    """``write`` or ``read`` where a line of requests says which; null = all, or it does not."""
    writes, reads = (pl.col("words").str.contains(words) for words in (_WRITES, _READS))
    return pl.when(writes & ~reads).then(pl.lit("write")).when(reads & ~writes).then(pl.lit("read"))


def moved_class() -> pl.Expr:
    """``write`` for a line of bytes that came in, else ``read``: bytes that went out."""
    return pl.when(inbound()).then(pl.lit("write")).otherwise(pl.lit("read"))


def operation_class(column: str) -> pl.Expr:
    """``write`` (PUT, COPY, POST, LIST), ``free`` (deletions) or ``read`` of an operation's name.

    Source of the classes: S3 request tiers 1 and 2, Google's classes A and B; all delete for free.
    """
    name = pl.col(column).str.to_lowercase()
    return (
        pl.when(name.str.contains(r"delete|abort"))
        .then(pl.lit("free"))
        .when(name.str.contains(r"put|post|copy|list|upload|create|write|insert|compose|rename"))
        .then(pl.lit("write"))
        .otherwise(pl.lit("read"))
    )


def storage_class() -> pl.Expr:
    """The storage class that a line names; null if it names none."""
    words = pl.col("words")
    hits = (pl.when(words.str.contains(regex)).then(pl.lit(name)) for name, regex in _CLASSES)
    return pl.coalesce(*hits, pl.lit(None, dtype=pl.String))


def keeps_logs() -> pl.Expr:
    """Whether a line of a log group pays for what is kept, not for what was written."""
    return pl.col("words").str.contains(_STORED)


def inbound() -> pl.Expr:
    """Whether a line pays for bytes that came in."""
    return pl.col("words").str.contains(_INBOUND)


def is_network() -> pl.Expr:
    """Whether a line pays for traffic, a NAT gateway or a load balancer."""
    service = pl.concat_str(
        "ServiceName", "ServiceSubcategory", "words", separator=" | ", ignore_nulls=True
    ).str.to_lowercase()
    networking = (pl.col("ServiceCategory") == "Networking").fill_null(value=False)
    about = service.str.contains(_NETWORK)
    return (networking | about) & (about | ~service.str.contains(_NOT_TRAFFIC))


def may_be_disk() -> pl.Expr:
    """Whether a line may pay for a disk: it speaks of one, or of storage that is no store."""
    text = pl.concat_str(
        "ServiceName", "ResourceType", "words", separator=" | ", ignore_nulls=True
    ).str.to_lowercase()
    storage = (pl.col("ServiceCategory") == "Storage").fill_null(value=False)
    return text.str.contains(_DISKS) | (storage & ~text.str.contains(_STORES))


def _service_text() -> pl.Expr:
    service = ("ServiceName", "ServiceSubcategory", "words")
    return pl.concat_str(*service, separator=" | ", ignore_nulls=True).str.to_lowercase()


def may_be_machine() -> pl.Expr:
    """Whether a Compute line may pay for a machine that is a node of a cluster.

    Functions, managed services, fees of control planes, disks, addresses and traffic are none.
    """
    text = _service_text()
    fee = text.str.contains(_KUBERNETES) & ~text.str.contains(_FARGATE)
    return ~(text.str.contains(_NO_MACHINE) | fee | is_network()).fill_null(value=False)


def is_fargate() -> pl.Expr:
    """Whether a line pays for a pod's own machine, which is no instance."""
    return _service_text().str.contains(_FARGATE).fill_null(value=False)


def instance_type() -> pl.Expr:
    """The instance type that a line names, in lower case; null if it names none that we know."""
    told = pl.col("SkuPriceDetails").str.json_path_match("$.InstanceType").str.to_lowercase()
    return pl.coalesce(told, pl.col("words").str.extract(_AWS_TYPE))
