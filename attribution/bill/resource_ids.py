"""Names of disks, stores and log groups in one normal form, however bill and inventory spell them.

| what | spellings | normal form |
|---|---|---|
| EBS volume | ``vol-0a``, ``arn:…:volume/vol-0a``, ``aws://zone/vol-0a`` | ``vol-0a`` |
| Google disk | ``[//host/]projects/P/zones/Z/disks/D`` | ``disk/P/Z/D`` |
| Azure | ``[https://host]/subscriptions/…`` | ``/subscriptions/…`` in lower case |
| EFS, FSx | ``fs-0a``, ``arn:…/fs-0a``, ``fs-0a::fsap-0b``, ``fs-0a.efs.…`` | ``fs-0a`` |
| Filestore | ``modeInstance/L/I/share``, ``…/locations/L/instances/I`` | ``filestore/L/I`` |
| bucket | ``arn:aws:s3:::B``, ``s3://B``, ``gs://B``, ``//storage.googleapis.com/B`` | ``B`` |
| Azure store | ``…/storageAccounts/A[/…/containers/C]``, ``https://A.blob.core…/C`` | ``A/C`` |
| log group | ``arn:aws:logs:R:N:log-group:G:*`` | ``G`` |

Anything else must be equal as written. A bare name does not say whose it is: ``store_cloud`` and
``log_place`` tell two of one name apart where both spellings do.
"""

from __future__ import annotations

import polars as pl

from attribution.facts import DayFacts
from attribution.ratio import milliseconds

_VOLUME = r"(?:^|[/:])(vol-[0-9a-z]+)$"
_DISK = r"projects/([^/]+)/(?:zones|regions)/([^/]+)/disks/([^/]+)$"
_FILES = r"(?:^|:file-system/)(fs-[0-9a-z]+)(?:$|:|\.(?:efs|fsx)\.)"
_FILES_VOLUME = r"(?:^|[/:])(fsvol-[0-9a-z]+)$"
_FILESTORE = r"^(?:modeinstance/([^/]+)/|.*/locations/([^/]+)/instances/)([^/]+)(?:/[^/]+)?$"
_S3 = r"^(?:arn:[a-z-]+:s3:::|s3[an]?://|https?://s3[.-][a-z0-9.-]*amazonaws\.com(?:\.cn)?/)([^/]+)"
_S3_OTHER = r"(?:^arn:[a-z-]+:s3express:.*:bucket/([^/]+)|^https?://([^/]+)\.s3[.-][^/]*amazonaws)"
_GOOGLE = r"^(?:gs://|(?:https?:)?//storage\.googleapis\.com/)(?:projects/[^/]+/buckets/)?([^/]+)"
_GOOGLE_PATH = r"^projects/_/buckets/([^/]+)"
_AZURE_ID = r"/providers/microsoft\.storage/storageaccounts/([^/]+)"
_AZURE_PART = rf"{_AZURE_ID}/[a-z]+services/default/(?:containers|shares)/([^/]+)"
_AZURE_URL = r"^https?://([^./]+)\.(?:blob|dfs|file)\.core\.windows\.net(?:/([^/?]+))?"
_AZURE_FS = r"^abfss?://([^@/]+)@([^./]+)\.dfs\.core\.windows\.net"
_LOG_GROUP = r"^arn:[a-z-]+:logs:([^:]*:[^:]*):log-group:([^:]+)"
_ACCOUNT = r"^([a-z0-9]{3,24})/[^/]+$"
_PROVIDERS = {"s3": r"\b(aws|amazon)\b", "gs": r"\b(google|gcp)\b", "az": r"\b(microsoft|azure)\b"}
DISK = r"^(vol-[0-9a-z]+$|disk/|/subscriptions/.*/disks/)"
"""Normal forms that tell one disk from all others of its cloud."""
FILES = r"^(fs-|fsvol-|filestore/)"
"""Normal forms of shared file systems."""


def resource_id(column: str) -> pl.Expr:
    """Normal form of a column of resource ids, volume handles or inventoried stores."""
    text = pl.col(column).str.strip_chars()
    lower = text.str.to_lowercase()
    return pl.coalesce(
        lower.str.extract(_VOLUME),
        pl.when(text.str.contains(_DISK)).then(text.str.replace(rf"^.*{_DISK}", "disk/$1/$2/$3")),
        _azure(text, lower),
        lower.str.extract(_FILES_VOLUME),
        lower.str.extract(_FILES),
        pl.when(lower.str.contains(_FILESTORE)).then(
            lower.str.replace(_FILESTORE, "filestore/$1$2/$3")
        ),
        text.str.extract(_S3),
        *(text.str.extract(_S3_OTHER, group) for group in (1, 2)),
        text.str.extract(_GOOGLE),
        text.str.extract(_GOOGLE_PATH),
        text.str.extract(_LOG_GROUP, 2),
        pl.when(text.str.len_chars() > 1).then(text.str.strip_chars_end("/")).otherwise(text),
    )


def _azure(text: pl.Expr, lower: pl.Expr) -> pl.Expr:
    """Stores as account/container, whatever else as its path in lower case."""
    of_account = lower.str.extract(_AZURE_ID)
    inside = lower.str.extract(_AZURE_PART, 2)
    url = text.str.to_lowercase()
    account = pl.coalesce(of_account, url.str.extract(_AZURE_URL), url.str.extract(_AZURE_FS, 2))
    part = pl.coalesce(inside, url.str.extract(_AZURE_URL, 2), url.str.extract(_AZURE_FS))
    rest = pl.when(lower.str.contains("/subscriptions/", literal=True)).then(
        lower.str.replace(r"^.*?/subscriptions/", "/subscriptions/")
    )
    return pl.coalesce(pl.concat_str(account, pl.lit("/"), part), account, rest)


def account_of(name: str) -> pl.Expr:
    """The account of a normal form ``account/container``; null of any other."""
    return pl.col(name).str.extract(_ACCOUNT)


def store_cloud(column: str) -> pl.Expr:
    """Whose store a spelling names: ``s3``, ``gs`` or ``az``; null if it does not say."""
    lower = pl.col(column).str.to_lowercase()
    return (
        pl.when(lower.str.contains(_S3) | lower.str.contains(_S3_OTHER))
        .then(pl.lit("s3"))
        .when(lower.str.contains(_GOOGLE) | lower.str.contains(_GOOGLE_PATH))
        .then(pl.lit("gs"))
        .when(lower.str.contains(rf"{_AZURE_ID}|{_AZURE_URL}|{_AZURE_FS}"))
        .then(pl.lit("az"))
    )


def provider_cloud() -> pl.Expr:
    """Whose a bill line is, in the words of ``store_cloud``, by the provider of its service."""
    provider = pl.coalesce("ServiceProviderName", "ProviderName").str.to_lowercase()
    clouds = (pl.when(provider.str.contains(p)).then(pl.lit(c)) for c, p in _PROVIDERS.items())
    return pl.coalesce(*clouds, pl.lit(None, dtype=pl.String))


def log_place(column: str) -> pl.Expr:
    """Region and account of a log group's ARN; null if the spelling is none."""
    return pl.col(column).str.extract(_LOG_GROUP, 1)


def agree(left: str, right: str) -> pl.Expr:
    """Whether two columns are equal, or one of them does not say."""
    return (pl.col(left) == pl.col(right)).fill_null(value=True)


def volume_ids(facts: DayFacts) -> pl.DataFrame:
    """The day's volumes with ``own`` (cluster and name) and ``id`` (of the handle, else ``own``).

    What one source does not tell of a volume, another does; of two handles that of the API counts.
    Times are milliseconds.
    """
    volume = ["cluster", "volume"]
    sampled = pl.col("interval_seconds").is_not_null()
    handles = (
        facts.volumes.filter(pl.col("handle") != "")
        .sort(*volume, sampled, "start", "handle")
        .unique(volume, keep="first", maintain_order=True)
        .select(*volume, "handle")
    )
    told = ("namespace", "claim", "storage_class", "labels")
    rows = facts.volumes.drop("handle").join(handles, on=volume, how="left")
    return rows.with_columns(
        pl.concat_str("cluster", pl.lit("/"), "volume").alias("own"),
        *(pl.coalesce(name, pl.col(name).min().over(volume)).alias(name) for name in told),
        pl.coalesce("bytes", pl.col("bytes").max().over(volume)).alias("bytes"),
        milliseconds("start"),
        milliseconds("end"),
    ).with_columns(pl.coalesce(resource_id("handle"), "own").alias("id"))
