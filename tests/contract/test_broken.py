"""Algorithms that break the contract: the error says which promise, and gives the two numbers."""

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from mainstem import extend as mx
from mainstem.testing import algorithms as contract
from mainstem.testing import check_algorithm
from mainstem.testing.algorithms import fast_path_is_the_reference, idle_merge_moves_nothing
from mainstem.testing.comparisons import another, same
from tests.contract.attentive import Attentive


@mx.value
class Restless(mx.Algorithm):
    """Its server moves when nothing arrives."""

    step: mx.Step = mx.step_size(0.1)
    sync: mx.Sync = mx.any_sync()
    participation: mx.Participation = mx.any_participation()
    codec: mx.Codec = mx.any_codec()
    collect: mx.Collect = mx.any_sum()

    domain = mx.parts.everything()
    start, model, learn = Attentive.start, Attentive.model, Attentive.learn
    upload, download = Attentive.upload, Attentive.download

    def merge(self, server: Any, got: mx.Collected, gradient: mx.Gradient, t: Any) -> Any:
        moved = server - 0.1 * got.sum / got.clients + 0.25
        return moved, moved


@mx.value
class Boastful(mx.Algorithm):
    """It declares a trait that it does not have."""

    step: mx.Step = mx.step_size(0.1)
    sync: mx.Sync = mx.any_sync()
    participation: mx.Participation = mx.any_participation()
    codec: mx.Codec = mx.any_codec()
    collect: mx.Collect = mx.any_sum()

    domain = mx.parts.everything()
    start, model, learn = Attentive.start, Attentive.model, Attentive.learn
    upload, download, merge = Attentive.upload, Attentive.download, Attentive.merge

    @property
    def traits(self) -> mx.Traits:
        return mx.Traits(decides_with_broadcast=True, forgets_unheard=True)


@pytest.mark.parametrize(
    ("algorithm", "clause", "message"),
    [
        (Restless(), idle_merge_moves_nothing,
         r"Restless.* breaks idle_merge_moves_nothing \(If no client is sampled, .*"
         r"the server's model, at the start and after idle merges: -?\d.* and -?\d.* differ at \["),
        (Boastful(), fast_path_is_the_reference,
         r"Boastful.* breaks fast_path_is_the_reference \(With the shortcuts .*"
         r"collective, fast and reference: nan and \d.* differ at \["),
    ],
    ids=["moves", "trait"],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore::mainstem.errors.Diverged")
def test_the_error_names_the_promise_and_the_numbers(algorithm, clause, message, monkeypatch):
    monkeypatch.setattr(contract, "CLAUSES", (clause,))
    with pytest.raises(AssertionError, match=message):
        check_algorithm(algorithm)


def test_comparisons():
    same(np.array([True]), np.array([True]), "it")
    same(np.array([1.0, np.nan]), np.array([1.0, np.nan]), "it")
    same(1e9, 1e9 + 0.1, "it", tolerance=1e-9)
    with pytest.raises(AssertionError, match=r"it: .*2\.0.* and .*2\.5.* differ at \[1\]"):
        same(jnp.array([1.0, 2.0]), np.array([1.0, 2.5]), "it")
    with pytest.raises(AssertionError, match=r"it: .*nan.* and .*1\.0.* differ at \[0\]"):
        same(np.array([np.nan]), np.array([1.0]), "it", tolerance=1e-3)
    with pytest.raises(AssertionError, match=r"it: shapes: \(2,\), not \(3,\)"):
        same(np.zeros(2), np.zeros(3), "it")
    with pytest.raises(AssertionError, match="it: must change, but all 2 numbers are the same"):
        another(np.zeros(2), np.zeros(2), "it")
