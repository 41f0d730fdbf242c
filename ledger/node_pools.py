"""The ``node_pools`` block of the settings: which nodes share their price how."""

from __future__ import annotations

from decimal import Decimal
from math import gcd
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

_DIGITS = 12
Weight = Annotated[Decimal, Field(ge=0, le=10**6, max_digits=18, decimal_places=_DIGITS)]
Glob = Annotated[str, Field(min_length=1)]


class _Block(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PoolMatch(_Block):
    """Which nodes a pool holds: those that meet everything that is given; globs are allowed."""

    label: str | None = Field(None, pattern=r"^[^=]+=.*$", description="label, key=value")
    node: Glob | None = Field(None, description="name of the node")
    instance_type: Glob | None = None
    cluster: Glob | None = Field(None, description="name of the cluster in the settings")

    @model_validator(mode="after")
    def _not_empty(self) -> PoolMatch:
        if all(value is None for _, value in self):
            raise ValueError("match needs one of label, node, instance_type and cluster")
        return self


class PoolWeights(_Block):
    """What a card, a vCPU and a GiB weigh against each other; unit prices are weights too."""

    gpu: Weight = Decimal(0)
    vcpu: Weight = Decimal(0)
    gib: Weight = Decimal(0)

    @model_validator(mode="after")
    def _some_weight(self) -> PoolWeights:
        if not any(self.whole()):
            raise ValueError("one of the weights of gpu, vcpu and gib must be above 0")
        return self

    def whole(self) -> tuple[int, int, int]:
        """The smallest whole numbers in the ratio of gpu, vcpu and gib."""
        units = [int(weight.scaleb(_DIGITS)) for weight in (self.gpu, self.vcpu, self.gib)]
        unit = gcd(*units) or 1
        gpu, vcpu, gib = (number // unit for number in units)
        return gpu, vcpu, gib


class NodePool(_Block):
    """How nodes share their price among resources; the first pool that fits a node counts."""

    match: PoolMatch
    split: Literal["gpu-first", "gpu-only", "aws-split", "opencost", "weights"] = Field(
        "gpu-first",
        description="gpu-first: pods without a card pay reference rates, cards the rest; "
        "gpu-only: cards pay all; aws-split, opencost: the weights of those tools; weights: own",
    )
    weights: PoolWeights | None = Field(None, description="for split: weights")

    @model_validator(mode="after")
    def _weights_where_they_count(self) -> NodePool:
        if (self.split == "weights") != (self.weights is not None):
            raise ValueError("own weights and `split: weights` go together: give both or neither")
        return self
