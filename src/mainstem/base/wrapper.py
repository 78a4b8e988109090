"""Wrapper: an algorithm that changes some functions of another and leaves the rest."""

from collections.abc import Callable
from typing import Any

from mainstem.base.algorithm import Algorithm, Setting, Traits
from mainstem.base.domain import Domain
from mainstem.base.parts import Codec, Collect, Collected, Mirror, Participation, Sync
from mainstem.base.problem import Gradient, Problem
from mainstem.base.types import At, Params, Sample


class Wrapper(Algorithm):
    """The algorithm `of`, until a subclass changes something. It has no theorem of its own."""

    of: Algorithm

    @property
    def personal(self) -> bool:  # type: ignore[override]
        return self.of.personal

    @property
    def guards(self) -> bool:  # type: ignore[override]
        return self.of.guards

    @property
    def sync(self) -> Sync:
        return self.of.sync

    @property
    def participation(self) -> Participation:
        return self.of.participation

    @property
    def codec(self) -> Codec:
        return self.of.codec

    @property
    def collect(self) -> Collect:
        return self.of.collect

    @property
    def downlink(self) -> Codec | None:
        return self.of.downlink

    @property
    def sends(self) -> str | None:
        return self.of.sends

    @property
    def corrects_bias(self) -> bool:
        return self.of.corrects_bias

    @property
    def domain(self) -> Domain:
        return self.of.domain

    @property
    def mirror(self) -> Mirror | None:
        return self.of.mirror

    @property
    def traits(self) -> Traits:
        return self.of.traits

    @property
    def checks_samples(self) -> bool:
        return self.of.checks_samples

    def check(self, problem: Problem, samples: Sample, steps: int) -> None:
        self.of.check(problem, samples, steps)

    def start(self, params: Any, setting: Setting) -> tuple[Any, Callable[[Any], Any]]:
        return self.of.start(params, setting)

    def model(self, client: Any) -> Any:
        return self.of.model(client)

    def learn(self, client: Any, gradient: Gradient, seen: Any, at: At) -> Any:
        return self.of.learn(client, gradient, seen, at)

    def upload(self, client: Any, at: At) -> tuple[Any, Params, Any]:
        return self.of.upload(client, at)

    def most_weight(self, k: Any) -> Any:
        return self.of.most_weight(k)

    def sent(self, client: Any, message: Params, decoded: Params, heard: Any) -> Any:
        return self.of.sent(client, message, decoded, heard)

    def merge(self, server: Any, got: Collected, gradient: Gradient, t: Any) -> tuple[Any, Params]:
        return self.of.merge(server, got, gradient, t)

    def download(self, client: Any, params: Params, gradient: Gradient, merged: Any, t: Any) -> Any:
        return self.of.download(client, params, gradient, merged, t)
