"""The words in which the table speaks of a training system."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from collector.labels import sanitised


@dataclass(frozen=True)
class Key:
    """A label or annotation of a pod.

    Args:
        name: Its original key.
        annotation: Whether it is an annotation.
    """

    name: str
    annotation: bool = False
    sanitised: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Derive the spelling of kube-state-metrics, as ``label_…`` or ``annotation_…``."""
        plain = sanitised(self.name)
        if self.annotation:
            plain = "annotation_" + plain.removeprefix("label_")
        object.__setattr__(self, "sanitised", plain)

    @property
    def spellings(self) -> tuple[str, str]:
        """As the API spells it, and as kube-state-metrics does."""
        return self.name, self.sanitised


def label(name: str) -> Key:
    """A label by its original key."""
    return Key(name)


def annotation(name: str) -> Key:
    """An annotation by its original key."""
    return Key(name, annotation=True)


@dataclass(frozen=True)
class Link:
    """One owner of a pod.

    Args:
        kind: Kind of the object, or of what stands for one.
        name: Its name.
        group: API group, where it is known; two links are the same without it.
    """

    kind: str
    name: str
    group: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ObjectKind:
    """A kind of object that owns others.

    Args:
        kind: E.g. ``RayJob``.
        group: API group.
        plural: Name of the resource; None = the kind in lower case, with an s.
    """

    kind: str
    group: str
    plural: str | None = None

    @property
    def resource(self) -> str:
        """Name of the resource in the API."""
        return self.plural or f"{self.kind.lower()}s"


@dataclass(frozen=True)
class Owner:
    """An owner that labels or annotations name.

    Args:
        kind: Its kind, unless ``told`` says another one.
        names: Keys that hold its name; the first that is there wins.
        group: API group; None for what is no object of the API, such as a SkyPilot cluster.
        told: Key that holds the kind.
        kinds: What a value of ``told``, in lower case, stands for; others are kinds as they are,
            unless there is a table and they are not in it.
        shape: The name is the first group of this pattern; a value without it names nobody.
        given: Keys that must be there too.
    """

    kind: str
    names: tuple[Key, ...]
    group: str | None = None
    told: Key | None = None
    kinds: Mapping[str, str] = field(default_factory=dict)
    shape: re.Pattern[str] | None = None
    given: tuple[Key, ...] = ()


@dataclass(frozen=True)
class Role:
    """How a pod's labels or annotations say its role: ``FORM:VALUE``.

    Args:
        form: Form of the role, e.g. ``ray-group``.
        keys: Keys that hold the value; the first that is there wins.
        values: Value in lower case to what it is called; others say nothing. Empty = as it is.
        other: What any value is called that ``values`` does not have.
        lower: Whether the value is written in lower case, as operators differ in theirs.
        shape: The value is the first group of this pattern; one without it says nothing.
        unless: Values that say nothing.
    """

    form: str
    keys: tuple[Key, ...]
    values: Mapping[str, str] = field(default_factory=dict)
    other: str | None = None
    lower: bool = False
    shape: re.Pattern[str] | None = None
    unless: tuple[str, ...] = ()


@dataclass(frozen=True)
class Sign:
    """A key by which pods of a system are recognised.

    Args:
        key: The key.
        value: Its value, in any case; None = any but the empty one.
    """

    key: Key
    value: str | None = None


@dataclass(frozen=True)
class System:
    """A training system.

    Args:
        name: As people call it.
        signs: Any of these marks a pod of it.
        needs: Keys that must be there too; for systems whose keys are plain words.
        objects: Kinds of its objects that own pods, or own what owns them; top last. A pod with
            one of them in its chain is of the system, whatever its labels.
        chain: Owners that labels name, nearest first.
        under: Kinds between a pod and the first of ``chain`` that labels do not name.
        virtual: Whether the end of ``chain`` is no object of the API; it then stands above all
            objects.
        roles: How the role is told; the first that says something wins.
        by_owners: Kinds of the nearest owners that tell a role which no label says, and the role.
        user: Keys that hold who the pod belongs to.
        note: What else a reader should know.
    """

    name: str
    signs: tuple[Sign, ...] = ()
    needs: tuple[Key, ...] = ()
    objects: tuple[ObjectKind, ...] = ()
    chain: tuple[Owner, ...] = ()
    under: tuple[str, ...] = ()
    virtual: bool = False
    roles: tuple[Role, ...] = ()
    by_owners: Mapping[tuple[str, ...], str] = field(default_factory=dict)
    user: tuple[Key, ...] = ()
    note: str = ""

    @property
    def keys(self) -> tuple[Key, ...]:
        """All keys that are looked at, once each."""
        owners = [(*owner.names, *([owner.told] if owner.told else [])) for owner in self.chain]
        every = [sign.key for sign in self.signs] + [*self.needs, *self.user]
        every += [key for keys in owners for key in keys]
        every += [key for owner in self.chain for key in owner.given]
        every += [key for role in self.roles for key in role.keys]
        return tuple(dict.fromkeys(every))
