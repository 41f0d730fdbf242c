"""How servers say that a query is too much, so that a shorter range may do.

Sources of the texts: Prometheus ``promql/engine.go``; VictoriaMetrics ``app/vmselect`` and
``lib/storage/search.go``; Mimir and Amazon Managed Prometheus ``pkg/util/validation``; Thanos
``pkg/store/limiter.go``.
"""

from __future__ import annotations

import re

import msgspec

from collector.prometheus.sources.source import TooMuchError

_AT_ANY_STATUS = re.compile("too many samples|timed out|timeout exceeded", re.IGNORECASE)
_OF_A_QUERY = re.compile(
    "cannot (select|process) more than|matching timeseries exceeds|not enough memory|"
    "exceed(s|ed)? .*(limit|maximum|points)|limit .*(exceed|reach|hit|violat)|hit the max",
    re.IGNORECASE | re.DOTALL,
)
_REFUSALS = frozenset({400, 413, 422})  # 429 is a rate: it passes
_TAIL = 1 << 16  # the text repeats the query
_LATE = b'{"status":"error"'


class _Error(msgspec.Struct):
    error: str = ""


def is_limit(status: int, told: str) -> bool:
    """Whether an error says that the query is too large or too slow.

    Args:
        status: HTTP status.
        told: The error's text.
    """
    if status == 413 or _AT_ANY_STATUS.search(told):
        return True
    return status in _REFUSALS and bool(_OF_A_QUERY.search(told))


def refuse_late_error(body: bytes, place: str) -> None:
    """Raise what stands behind an answer that a server had begun before it ran into its limit.

    VictoriaMetrics sends raw samples as it reads them: the status is 200 by then, so that the error
    follows as a second document.

    Raises:
        TooMuchError: There is such an error.
    """
    found = body.rfind(_LATE, -_TAIL)
    if found > 0:
        try:
            told = msgspec.json.decode(body[found:], type=_Error).error
        except (msgspec.DecodeError, UnicodeError):
            return
        raise TooMuchError(f"{place} broke off with an error: {' '.join(told.split())[-300:]}")
