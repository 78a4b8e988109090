"""`merged`, as `download` gets it: a client's newest step that the broadcast contains, and it never falls back."""

from typing import NamedTuple

import numpy as np
import pytest

import mainstem as ms
from mainstem import extend as mx
from mainstem import parts


class Client(NamedTuple):
    params: mx.Params
    merged: mx.Params


@mx.value
class Probe(mx.Algorithm):
    """Its model is the `merged` of the last `download`."""

    participation: mx.Participation = mx.any_participation()
    sync: mx.Sync = mx.any_sync()

    codec = parts.plain()
    collect = parts.total()
    domain = parts.everything()

    def start(self, params, setting):
        return params, lambda k: Client(params, mx.jnp.zeros_like(params))

    def model(self, client):
        return client.merged

    def learn(self, client, gradient, seen, at):
        return client

    def upload(self, client, at):
        return client, client.params, 1.0

    def merge(self, server, got, gradient, t):
        return server, server

    def download(self, client, params, gradient, merged, t):
        return Client(params, mx.jnp.full_like(params, merged))


SAMPLED = np.array([[1, 0, 1], [0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 1, 0], [0, 0, 0]], bool)
NEWEST = [3, 5, 1]


def merged(**settings):
    algorithm = Probe(parts.given(SAMPLED), settings.pop("sync", parts.every(1)))
    problem, stream = ms.problems.quadratic(1), ms.streams.alternating(3)
    run = ms.simulate(algorithm, problem, stream, steps=6, dtype="float64", measure=(), **settings)
    return run.client_models.ravel().tolist()


@pytest.mark.parametrize("plain", [False, True])
def test_it_is_the_newest_step_that_was_merged(plain):
    assert merged(plain=plain) == NEWEST


def test_it_stays_where_it_was_while_nothing_arrives():
    """At step 6 nobody participates, at steps 4 to 6 only client 1."""
    assert merged(sync=parts.after_steps([1, 2, 3, 4, 5, 6])) == NEWEST


def test_on_slow_links_it_is_what_has_arrived_and_come_back():
    # client 0 is 2 steps late up: of its steps 1 and 3 both are in by step 5; client 1's broadcasts
    # come 1 step late: it has that of step 5; client 2 is 5 late: step 1 arrives at step 6
    slow = ms.network(up=[2, 0, 5], down=[0, 1, 0])
    assert merged(network=slow) == [3, 5, 1]
    slower = ms.network(up=[4, 0, 5], down=[0, 2, 1])
    assert merged(network=slower) == [1, 2, 0]
