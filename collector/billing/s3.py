"""Bills in an S3 bucket, through boto3: listing, matching and downloading.

Credentials, region and endpoint (``AWS_ENDPOINT_URL``) come from the environment, as for every AWS
tool. Needs ``s3:ListBucket`` and ``s3:GetObject``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ledger.errors import AccessError, SourceError

SCHEME = "s3://"
_DENIED = frozenset({
    "403", "AccessDenied", "AllAccessDisabled", "ExpiredToken", "Forbidden",
    "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch",
})  # fmt: skip


def is_s3(path: str) -> bool:
    """Whether a path is an S3 URL."""
    return path.startswith(SCHEME)


def matches(key: str, pattern: str) -> bool:
    """Whether an object key fits a glob; ``*`` stays within a folder, ``**`` spans folders."""
    return _segments_match(key.split("/"), pattern.split("/"))


def _segments_match(key: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not key
    if pattern[0] == "**":
        return any(_segments_match(key[skip:], pattern[1:]) for skip in range(len(key) + 1))
    return bool(key) and fnmatchcase(key[0], pattern[0]) and _segments_match(key[1:], pattern[1:])


def _fits(key: str, pattern: str, folders: tuple[str, ...]) -> bool:
    """Whether a key, or a folder above it with one of the endings, fits a glob."""
    if matches(key, pattern):
        return True
    parts = key.split("/")
    return any(
        parts[depth - 1].lower().endswith(folders) and matches("/".join(parts[:depth]), pattern)
        for depth in range(1, len(parts))
    )


class Bucket:
    """The bucket that an URL names."""

    def __init__(self, url: str) -> None:
        self.name = urlsplit(url).netloc

    @cached_property
    def _client(self) -> Any:  # noqa: ANN401 - boto3 builds its clients at run time, untyped
        import boto3  # slow to import, and only needed for S3

        # A session of our own: the default one keeps the credentials it saw first.
        return boto3.session.Session().client("s3")

    def find(self, url: str, folders: tuple[str, ...] = ()) -> tuple[list[str], bool]:
        """URLs of the objects at a key, below a folder, or matching a glob.

        Args:
            url: Key, folder or glob.
            folders: Endings of folders that a glob takes whole, as Spark writes them.

        Returns:
            The URLs, and whether the URL names one single object.
        """
        wanted = url.removeprefix(f"{SCHEME}{self.name}").lstrip("/")
        literal = wanted[: min((wanted.find(c) for c in "*?[" if c in wanted), default=None)]
        keys = list(self._keys(literal))
        if literal != wanted:
            fitting = (key for key in keys if _fits(key, wanted, folders))
            return [self._url(key) for key in fitting], False
        if wanted in keys and not wanted.endswith("/"):
            return [url], True
        folder = f"{wanted.rstrip('/')}/" if wanted else ""
        inside = (key for key in keys if key.startswith(folder) and not key.endswith("/"))
        return [self._url(key) for key in inside], False

    def download(self, url: str, target: Path) -> None:
        """Copy an object to a local file, in pieces."""
        key = url.removeprefix(f"{SCHEME}{self.name}/")
        with _readable_errors(url):
            self._client.download_file(self.name, key, str(target))

    def _url(self, key: str) -> str:
        return f"{SCHEME}{self.name}/{key}"

    def _keys(self, prefix: str) -> Iterator[str]:
        with _readable_errors(self._url(prefix)):
            pages = self._client.get_paginator("list_objects_v2")
            for page in pages.paginate(Bucket=self.name, Prefix=prefix):
                yield from (entry["Key"] for entry in page.get("Contents", ()))


@contextmanager
def _readable_errors(url: str) -> Iterator[None]:
    """Turn what boto3 raises into our errors."""
    from boto3.exceptions import Boto3Error
    from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError

    try:
        yield
    except NoCredentialsError as error:
        raise AccessError(f"no AWS credentials to read {url}") from error
    except ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in _DENIED:
            raise AccessError(
                f"may not read {url}: {code}", "it needs s3:ListBucket and s3:GetObject"
            ) from error
        raise SourceError(f"cannot read {url}: {code}") from error
    except (BotoCoreError, Boto3Error) as error:
        raise SourceError(f"cannot read {url}: {error}") from error
