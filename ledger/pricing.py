"""The ``prices`` block of the settings: unit prices, and a price list with keys and times."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_EVEN, Decimal, localcontext
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)

HOURS_PER_MONTH = 730
"""A month of price lists (savings count 30 days, budgets the calendar)."""

_DIGITS = 60
_UNIT = Decimal("1e-12")
_DISCOUNT = (
    "a discount is '10%' in quotes, or a fraction from 0 to below 1 (0.1 = 10 %); {value!r} is "
    "neither"
)


def _known_currency(code: str) -> str:
    if not (len(code) == 3 and code.isalpha() and code.isupper()):
        raise ValueError(f"{code!r} is not an ISO 4217 currency code, e.g. USD")
    return code


def _fraction(value: object) -> Decimal:
    """A discount as a fraction of 1; ``10`` or ``0.1 %`` of who knows what is refused."""
    text = str(value).strip()
    percent = isinstance(value, str) and text.endswith("%")
    try:
        if isinstance(value, bool):
            raise ArithmeticError
        found = Decimal(text.removesuffix("%")) / (100 if percent else 1)
    except ArithmeticError as error:
        raise ValueError(_DISCOUNT.format(value=value)) from error
    if not (found.is_finite() and 0 <= found < 1):
        raise ValueError(_DISCOUNT.format(value=value))
    return found


def _several(value: object) -> object:
    """One discount is a list of one."""
    return value if isinstance(value, list | tuple) else (value,)


def _moment(value: object) -> object:
    """A day is its midnight; a time without a zone is UTC."""
    if isinstance(value, date) and not isinstance(value, datetime):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value


def _in_utc(value: datetime) -> datetime:
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


Currency = Annotated[str, AfterValidator(_known_currency)]
Price = Annotated[Decimal, Field(ge=0, max_digits=26, decimal_places=12)]
Per = Literal["hour", "month"]
Moment = Annotated[datetime, BeforeValidator(_moment), AfterValidator(_in_utc)]
Discount = Annotated[
    Decimal,
    BeforeValidator(_fraction),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
                {"type": "string", "pattern": r"^\s*(\d+(\.\d+)?\s*%|0?\.\d+|0)\s*$"},
            ]
        }
    ),
]


class PriceBlock(BaseModel):
    """A block of prices: frozen, and unknown keys are errors."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, populate_by_name=True, serialize_by_alias=True
    )


class Upfront(PriceBlock):
    """A fee that was paid for a block of hours in advance: spread over its node-hours."""

    fee: Price | None = Field(description="the fee; null = there was one, and nobody knows it")
    hours: Annotated[Decimal, Field(gt=0, description="length of the block in hours")]
    nodes: int = Field(1, ge=1, description="nodes of the block")


class ListedPrice(PriceBlock):
    """A price of one key; a key that is left out fits any. The most specific entry counts."""

    resource: Literal["node", "gpu", "vcpu", "gib", "storage_gib"] = "node"
    provider: str | None = Field(None, description="aws, gcp, azure, or the scheme of providerID")
    region: str | None = None
    zone: str | None = None
    instance_type: str | None = None
    operating_system: str | None = Field(None, description="linux or windows")
    tenancy: str | None = Field(
        None, description="shared, dedicated or host; nodes count as shared, as nothing says else"
    )
    capacity_type: str | None = Field(None, description="on-demand, spot or reserved")
    gpu_model: str | None = Field(None, description="a whole word of the node's card model")
    currency: Currency | None = Field(None, description="default: the settings' currency")
    price: Price | None = Field(None, description="null = there is a price, and nobody knows it")
    per: Per = Field("hour", description="a month has 730 hours")
    discounts: Annotated[tuple[Discount, ...], BeforeValidator(_several)] = Field(
        (), description="'10%' or a fraction below 1; they compound: 40 % then 20 % leaves 48 %"
    )
    upfront: Upfront | None = Field(None, description="instead of price: a fee paid in advance")
    free: bool = Field(False, description="instead of price: it costs nothing, and that is meant")
    kind: Literal["settings", "contract", "spot", "list"] = Field(
        "settings", description="where it comes from; contract and settings > spot > list"
    )
    since: Moment | None = Field(None, alias="from", description="valid from; UTC without a zone")
    until: Moment | None = Field(None, description="valid until, exclusive")

    @model_validator(mode="after")
    def _one_price(self) -> ListedPrice:
        other = (self.upfront is not None) + self.free
        unknown = self.price is None and "price" in self.model_fields_set and not other
        if (self.price is not None) + other + unknown != 1:
            raise ValueError("name exactly one of price (null = not known), upfront, or free: true")
        if "resource" not in self.model_fields_set and not (self.instance_type or self.upfront):
            raise ValueError(
                "say what it is the price of: resource: node, gpu, vcpu, gib or storage_gib "
                "(node needs no saying beside an instance_type)"
            )
        if self.upfront and self.resource != "node":
            raise ValueError("upfront is the fee of a block of nodes: resource must be node")
        if self.since and self.until and self.since >= self.until:
            raise ValueError("from must be before until")
        if self.since and self.until and self._block and self.until - self.since > self._block:
            raise ValueError("from and until are further apart than the hours of upfront")
        return self

    @property
    def _block(self) -> timedelta | None:
        """How long the block of a fee in advance is."""
        return timedelta(hours=float(self.upfront.hours)) if self.upfront else None

    @property
    def ends(self) -> datetime | None:
        """End, exclusive: that of its block, if only its beginning is said; None = never."""
        if self.since and not self.until and self._block:
            return self.since + self._block
        return self.until

    @property
    def hourly(self) -> Decimal | None:
        """Price of one unit for one hour after all discounts; None = not known."""
        if self.free:
            return Decimal(0)
        if self.upfront:
            upfront = self.upfront
            return per_hour(upfront.fee, upfront.hours * upfront.nodes, self.discounts)
        return per_hour(self.price, hours_of(self.per), self.discounts)

    @property
    def source(self) -> str:
        """``kind`` of the table ``prices``."""
        return "free" if self.free else "upfront" if self.upfront else self.kind


class Prices(PriceBlock):
    """What an hour costs where no bill says so, in the settings' currency."""

    gpu: dict[str, Price] = Field(
        default_factory=dict,
        description="card model (matched as a whole word of the node's model) to price per "
        "card-hour; 'default' for any model",
    )
    vcpu: Price = Field(Decimal("0.031611"), description="price per vCPU")
    gib: Price = Field(Decimal("0.004237"), description="price per GiB (2^30 bytes) of memory")
    storage_gib: Price | None = Field(None, description="price per GiB of a persistent volume")
    per: Per = Field(
        "hour", description="unit of gpu, vcpu, gib and storage_gib; a month has 730 hours"
    )
    host: Literal["included", "apart"] = Field(
        "included",
        description="included: the price of a card holds its part of the node; apart: the node's "
        "CPU and memory are added at their own prices",
    )
    list: tuple[ListedPrice, ...] = Field((), description="prices by key and time")

    @property
    def built_in(self) -> frozenset[str]:
        """Which of ``vcpu`` and ``gib`` are the reference rates that nobody set."""
        return frozenset({"vcpu", "gib"} - self.model_fields_set)

    def hourly(self, name: str) -> Decimal:
        """``vcpu`` or ``gib`` per hour; the reference rates always are."""
        price: Decimal = getattr(self, name)
        return price if name in self.built_in else self.each_hour(price)

    def each_hour(self, price: Decimal) -> Decimal:
        """A price of this block per hour."""
        found = per_hour(price, hours_of(self.per))
        return price if found is None else found


def hours_of(per: Per) -> Decimal:
    """Hours of the unit that a price counts."""
    return Decimal(HOURS_PER_MONTH if per == "month" else 1)


def per_hour(
    price: Decimal | None, hours: Decimal, discounts: Iterable[Decimal] = ()
) -> Decimal | None:
    """``price / hours`` less compounding discounts, rounded once, half-even to 1e-12.

    Args:
        price: Price of all the hours; None is not known.
        hours: How many.
        discounts: Fractions from 0 to below 1.
    """
    if price is None:
        return None
    with localcontext() as context:
        context.prec = _DIGITS
        left: Any = price
        for discount in discounts:
            left *= 1 - discount
        return Decimal(left / hours).quantize(_UNIT, rounding=ROUND_HALF_EVEN)
