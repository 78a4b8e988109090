"""The fields that most algorithms have: which part, and what stands there if nothing is said."""

from typing import Any

from mainstem import check
from mainstem.base import Codec, Collect, Participation, Sync
from mainstem.parts.codec import plain
from mainstem.parts.collect import total
from mainstem.parts.participation import everyone
from mainstem.parts.sync import every
from mainstem.value import leaf, part


def any_sync() -> Any:
    """After which steps; every step."""
    return part(Sync, "every(5)", default=every(1))


def any_participation() -> Any:
    """Who is heard; everyone."""
    return part(Participation, "exactly(5)", default=everyone())


def any_codec() -> Any:
    """How a message travels; as it is."""
    return part(Codec, "plain()", default=plain())


def any_sum() -> Any:
    """What the server makes of messages, where it needs no more than a sum or a mean; the total."""
    return leaf(default=total(), checked=_summing)


def _summing(owner: str, name: str, given: Any) -> Collect:
    collect: Collect = check.instance(owner, name, given, Collect, "median()")
    if collect.based:
        wanted = "give a sum: total(), median(), trimmed_mean(0.1) or clipped(1)"
        raise check.refuse(owner, name, wanted, collect)
    return collect
