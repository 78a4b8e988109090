"""Break an algorithm on purpose: the claims must notice."""

from functools import partial
from importlib import import_module
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

import mainstem as ms
from mainstem import parts
from mainstem.base import Domain
from mainstem.papers import reproduce as papers
from mainstem.papers import rizk
from mainstem.papers.results import fedsea_rates
from mainstem.value import positive, value


def rounded_down(monkeypatch):
    """A quantiser that never rounds up: small entries vanish."""
    down = SimpleNamespace(uniform=lambda key, shape, dtype: jnp.zeros(shape, dtype))
    monkeypatch.setattr(import_module("mainstem.parts.quantiser"), "random", down)


def unweighted(monkeypatch):
    """Sums without 1 / p_k: rare uploads are not weighted up."""
    monkeypatch.setattr(parts.bernoulli, "weight", lambda self, k: 1.0)


@value
class leaky_ball(Domain):
    """A ball without its projection."""

    radius: float = positive()

    def project(self, params):
        return params

    def support(self, gradient):
        return parts.l2_ball(self.radius).support(gradient)


def unprojected(monkeypatch):
    """A step that leaves the domain."""
    monkeypatch.setattr(fedsea_rates, "parts", SimpleNamespace(l2_ball=leaky_ball))


def unnormalised(monkeypatch):
    """Epochs that add up instead of sharing a step."""
    monkeypatch.setattr(
        rizk, "ms", Overlaid(dynamic_fedavg=partial(ms.dynamic_fedavg, normalised=False))
    )


class Overlaid:
    """mainstem, but for some names."""

    def __init__(self, **names):
        self.__dict__.update(names)

    def __getattr__(self, name):
        return getattr(ms, name)


BROKEN = [
    pytest.param(unprojected, "fedsea-rates", False, id="Bregman step without projection"),
    pytest.param(unnormalised, "dynfedavg-fig1a", False, id="epochs not normalised"),
    pytest.param(rounded_down, "ofediq-fig4-occupancy", True, id="quantiser biased"),
    pytest.param(unweighted, "ofediq-fig4-occupancy", True, id="sum without 1/p_k"),
]


@pytest.fixture
def _nothing_compiled():
    """Clears compiled programs: one from before lacks the fault, one from this test has it afterwards."""
    jax.clear_caches()
    yield
    jax.clear_caches()


@pytest.mark.slow
@pytest.mark.usefixtures("_nothing_compiled")
@pytest.mark.parametrize(("fault", "name", "data"), BROKEN)
def test_a_fault_changes_a_verdict(fault, name, data, monkeypatch, tmp_path, request):
    if data:
        request.getfixturevalue("filled")
    fault(monkeypatch)
    outcome = papers.reproduce(papers.catalogue()[name], "quick", folder=tmp_path)
    assert not outcome.passed
