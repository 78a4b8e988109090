"""Fields that most algorithms have: the kind of part, and its default."""

from typing import Any

from mainstem import check
from mainstem.base import Codec, Collect, Participation, Sync
from mainstem.parts.codec import plain
from mainstem.parts.collect import total
from mainstem.parts.participation import everyone
from mainstem.parts.sync import every
from mainstem.value import leaf, part


def any_sync() -> Any:
    """A field for a sync; the default is every step."""
    return part(Sync, "every(5)", default=every(1))


def any_participation() -> Any:
    """A field for a participation; the default is everyone."""
    return part(Participation, "exactly(5)", default=everyone())


def any_codec() -> Any:
    """A field for a codec; the default is plain."""
    return part(Codec, "plain()", default=plain())


def any_downlink() -> Any:
    """A field for the codec of broadcasts; the default is None, plain."""
    return leaf(default=None, checked=_forgetful)


def _forgetful(owner: str, name: str, given: Any) -> Codec | None:
    if given is None:
        return None
    codec: Codec = check.instance(owner, name, given, Codec, "half()")
    if codec.remembers:
        wanted = "be without error feedback: broadcasts are models, whose errors do not add up"
        raise check.refuse(owner, name, wanted, codec)
    return None if codec == plain() else codec


def any_sum() -> Any:
    """A field for a collect that gives a sum or a mean; the default is the total."""
    return leaf(default=total(), checked=_summing)


def _summing(owner: str, name: str, given: Any) -> Collect:
    collect: Collect = check.instance(owner, name, given, Collect, "median()")
    if collect.based:
        wanted = "give a sum: total(), median(), trimmed_mean(0.1) or clipped(1)"
        raise check.refuse(owner, name, wanted, collect)
    return collect
