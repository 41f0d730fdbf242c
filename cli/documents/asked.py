"""What the flags of ``query`` say, as one object; and the question that it stands for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ledger.errors import UsageError

if TYPE_CHECKING:
    from attribution.query.question import Query, Share, Sharing
    from ledger.settings import Settings
    from ledger.window import Window

_SPLITS = ("even", "weighted", "none")


@dataclass(frozen=True)
class Asked:
    """The flags of ``query``, under the names of its options; see ``runbill query --help``."""

    by: Sequence[str] = ()
    tags: Sequence[tuple[str, str]] = ()
    filters: Sequence[tuple[str, str]] = ()
    window: str | None = None
    cost: str = "effective"
    currency: str | None = None
    compare: str | None = None
    top: int | None = None
    share_idle: str | None = None
    idle: str = "separate"
    idle_pool: str = "node"
    idle_rows: str = "keys"
    quota: bool = False
    share: Sequence[tuple[str, str]] = ()
    share_split: str = "weighted"
    overhead: str | None = None
    overhead_split: str = "weighted"
    no_sharing: bool = False

    def question(self, window: Window, currency: str | None, settings: Settings) -> Query:
        """The question that the flags ask.

        Args:
            window: What ``--window`` stands for.
            currency: What ``--currency`` stands for.
            settings: Where ``sharing`` stands if no flag says otherwise.

        Raises:
            UsageError: An amount cannot be read.
        """
        from attribution.query.question import Query, matches

        given: dict[str, Any] = {"cost": self.cost, "idle_rows": self.idle_rows, "top": self.top}
        return Query(
            window,
            tuple(self.by) or ("experiment",),
            tags=matches(self.tags),
            filters=matches(self.filters),
            currency=currency,
            sharing=self._sharing(settings),
            quota=self.quota,
            **given,
        )

    def _sharing(self, settings: Settings) -> Sharing:
        from decimal import Decimal, InvalidOperation

        from attribution.query.question import Sharing

        try:
            overhead = Decimal(0 if self.overhead is None else self.overhead)
        except InvalidOperation as error:
            raise UsageError(
                f"--overhead {self.overhead!r} is no amount", "write --overhead 12.50"
            ) from error
        chosen: dict[str, Any] = {
            "pool": self.share_idle or self.idle_pool,
            "overhead_split": self.overhead_split,
        }
        shares = self.share_idle is not None or self.idle == "share"
        return Sharing(idle=shares, policies=self._policies(settings), overhead=overhead, **chosen)

    def _policies(self, settings: Settings) -> tuple[Share, ...]:
        """The policies of the flags, or else those of the settings."""
        from attribution.query.question import Share, matches

        if self.share:
            found = []
            for key, glob in self.share:
                value, split = _cut(glob)
                found.append(_share(Share, matches({key: value}), split or self.share_split))
            return tuple(found)
        if self.no_sharing:
            return ()
        return tuple(
            _share(Share, matches(policy.match), policy.split) for policy in settings.sharing
        )


def _share(make: type[Share], match: Any, split: Any) -> Share:  # noqa: ANN401
    return make(match, split)


def _cut(glob: str) -> tuple[str, str | None]:
    """A value and the split behind its last colon, if there is one."""
    value, colon, split = glob.rpartition(":")
    return (value, split) if colon and split in _SPLITS else (glob, None)


def told(pairs: Mapping[str, str]) -> str:
    """Conditions for people."""
    return ", ".join(f"{key}={value}" for key, value in pairs.items())
