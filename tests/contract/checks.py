"""What every algorithm owes: call `check_contract` with a function that builds yours."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import mainstem as ms
from mainstem import random
from mainstem.base import Algorithm, Setting, Stream, flat
from mainstem.engines.simulate import program
from tests.contract.worlds import World, world_for

STEPS, CLIENTS = 18, 6
Build = Callable[[], Algorithm]


def check_contract(build: Build) -> None:
    """Every clause of the contract in turn."""
    for clause in CLAUSES:
        clause(build)


def same_key_same_trace(build: Build) -> None:
    """The trace is a function of the seed, and nothing is compiled twice."""
    algorithm = build()
    world = world_for(algorithm, CLIENTS)
    first = _run(algorithm, world)
    programs = program._compiled.cache_info().misses
    again = _run(algorithm, world)
    assert program._compiled.cache_info().misses == programs
    other = _run(algorithm, world, seed=1)
    for name in first.columns:
        assert np.array_equal(first.trace[name], again.trace[name])
    assert not np.array_equal(first.loss, other.loss)


def fast_path_equals_plain_path(build: Build) -> None:
    """Whatever the traits let the engine do, the result is that of the plain path."""
    algorithm = build()
    world = world_for(algorithm, CLIENTS)
    fast = _run(algorithm, world, measure=["collective", "consensus", "average"])
    plain = _run(algorithm, world, measure=["collective", "consensus", "average"], plain=True)
    _close(fast, plain)
    assert np.allclose(_vector(fast.average_model), _vector(plain.average_model), atol=1e-10)


def chunks_do_not_matter(build: Build) -> None:
    """The same numbers, to the last bit, in one piece or in many."""
    algorithm = build()
    world = world_for(algorithm, CLIENTS)
    whole = _run(algorithm, world, dtype="float32")
    pieces = _run(algorithm, world, dtype="float32", chunk=5)
    for name in whole.columns:
        assert np.array_equal(whole.trace[name], pieces.trace[name]), name


def seeds_are_runs(build: Build) -> None:
    """Many seeds as one program are the runs one by one."""
    algorithm = build()
    world = world_for(algorithm, CLIENTS)
    many = _run(algorithm, world, seeds=[3, 4])
    for n, seed in enumerate((3, 4)):
        one = _run(algorithm, world, seed=seed)
        for name in one.columns:
            assert np.allclose(many.trace[name][n], one.trace[name][0], rtol=1e-12, atol=1e-12)


def nested_params_come_back(build: Build) -> None:
    """The final model has the problem's own shape, in the run's dtype; one client is enough."""
    algorithm = build()
    world = world_for(algorithm, 1)
    run = _run(algorithm._replace(participation=ms.parts.everyone()), world, dtype="float32")
    expected = world.problem.shapes
    if algorithm.personal:  # the server knows the shared part alone
        expected = expected.shared
    assert jax.tree.structure(run.model) == jax.tree.structure(expected)
    for found, wanted in zip(jax.tree.leaves(run.model), jax.tree.leaves(expected), strict=True):
        assert found.shape == wanted.shape
        assert found.dtype == np.float32


def silent_client_moves_nobody(build: Build) -> None:
    """Data of a client that is never heard changes no other client's model."""
    heard = np.ones((STEPS, CLIENTS), bool)
    heard[:, 2] = False
    algorithm = build()._replace(participation=ms.parts.given(heard))
    world = world_for(algorithm, CLIENTS)
    others = [k for k in range(CLIENTS) if k != 2]
    before = _run(algorithm, world)
    after = _run(algorithm, world._replace(stream=_strange(world, client=2)))
    assert np.array_equal(_vector(before.model), _vector(after.model))
    assert np.array_equal(before.client_models[others], after.client_models[others])
    assert not np.array_equal(before.loss, after.loss)


def idle_merge_moves_nothing(build: Build) -> None:
    """When nobody is heard, the server keeps what it has, and nothing is counted."""
    nobody = ms.parts.given(np.zeros((STEPS, CLIENTS), bool))
    algorithm = build()._replace(participation=nobody)
    world = world_for(algorithm, CLIENTS)
    run = _run(algorithm, world)
    with jax.enable_x64(True):
        vectors = flat(world.problem)
        first = vectors.init(random.fold(random.root(0), random.INIT))
        params = vectors.split(first) if algorithm.personal else first
        setting = Setting(CLIENTS, 1, vectors.gradient)
        start = algorithm.model(algorithm.start(params, setting)[1](0))
    known = start.shared if algorithm.personal else start
    assert np.allclose(_vector(run.model), known, rtol=0, atol=1e-15)
    assert run.uplink_bits[-1] == 0


def delays_lose_nothing(build: Build) -> None:
    """On slow links the run stays finite, and every message is counted when it is sent."""
    algorithm = build()
    world = world_for(algorithm, CLIENTS)
    slow = ms.network(up=[0, 1, 2, 3, 4, 5], down=[5, 4, 3, 2, 1, 0])
    late, prompt = _run(algorithm, world, network=slow), _run(algorithm, world, plain=True)
    assert np.isfinite(late.loss).all()
    assert np.array_equal(late.uplink_bits, prompt.uplink_bits)
    assert late.downlink_bits[-1] <= prompt.downlink_bits[-1]


CLAUSES = (
    same_key_same_trace,
    fast_path_equals_plain_path,
    chunks_do_not_matter,
    seeds_are_runs,
    nested_params_come_back,
    silent_client_moves_nobody,
    idle_merge_moves_nothing,
    delays_lose_nothing,
)


def _run(algorithm: Algorithm, world: World, **settings: object) -> ms.Run:
    chosen = {"steps": STEPS, "dtype": "float64", "measure": ()} | settings
    return ms.simulate(algorithm, world.problem, world.stream, **chosen)  # type: ignore[arg-type]


def _close(one: ms.Run, other: ms.Run) -> None:
    for name in one.columns:
        assert np.allclose(one.trace[name], other.trace[name], rtol=0, atol=1e-10), name
    assert np.allclose(_vector(one.model), _vector(other.model), rtol=0, atol=1e-10)
    assert np.allclose(one.client_models, other.client_models, rtol=0, atol=1e-10)


def _vector(model: object) -> np.ndarray:
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(model)])


def _strange(world: World, client: int) -> Stream:
    """The world's stream, with other numbers for one client."""

    def sample(resident, piece, at):
        usual = world.stream.sample(resident, piece, at)

        def changed(x):
            moved = x + 1.5 if jnp.issubdtype(jnp.asarray(x).dtype, jnp.floating) else x
            return jnp.where(at.k == client, moved, x)

        return jax.tree.map(changed, usual)

    return world.stream._replace(sample=sample, rows=lambda: None)
