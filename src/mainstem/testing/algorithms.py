"""Contract of algorithms: one function for each clause."""

from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np

from mainstem import random
from mainstem.base import Algorithm, Flat, Participation, Setting
from mainstem.engines.simulate import simulate
from mainstem.errors import BadParameter
from mainstem.parts import everyone, given, network
from mainstem.run import Run
from mainstem.testing.compilations import counted
from mainstem.testing.values import check_value
from mainstem.testing.worlds import World, altered, world_for

STEPS, CLIENTS = 18, 6
EVERYTHING = ("collective", "consensus", "average")
SPECIAL = 2  # the client that is not sampled, or gets no samples


def check_algorithm(algorithm: Algorithm, world: World | None = None) -> None:
    """Checks every clause of the contract; `world` is a problem and a stream of 6 clients for the test runs.

    >>> import mainstem as ms
    >>> check_algorithm(ms.ofediq(step=0.1, rate=0.5, levels=3))
    """
    check_value(algorithm)
    for clause in CLAUSES:
        try:
            clause(algorithm, world or world_for(algorithm, CLIENTS))
        except AssertionError as error:
            error.add_note(f"{algorithm}: {clause.__name__}: {clause.__doc__}")
            raise


def same_key_same_trace(algorithm: Algorithm, world: World) -> None:
    """The trace is a function of the seed, and nothing is compiled twice."""
    first = _run(algorithm, world)
    with counted() as second_time:
        again = _run(algorithm, world)
    assert second_time.compiled == 0, f"a second run compiled {second_time.compiled} programs"
    other = _run(algorithm, world, seed=1)
    for name in first.columns:
        assert np.array_equal(first.trace[name], again.trace[name]), name
    assert not np.array_equal(first.loss, other.loss)


def fast_path_is_the_reference(algorithm: Algorithm, world: World) -> None:
    """With the shortcuts that the traits allow, the result is that of the reference path."""
    fast = _run(algorithm, world)
    plain = _run(algorithm, world, plain=True)
    for name in fast.columns:
        apart = np.max(np.abs(fast.trace[name] - plain.trace[name]))
        assert apart <= 1e-10, f"{name} is off by {apart}"
    for one, other in (
        (vector(fast.model), vector(plain.model)),
        (fast.client_models, plain.client_models),
        (fast.models["average"], plain.models["average"]),
    ):
        assert np.allclose(one, other, rtol=0, atol=1e-10)


def chunks_do_not_matter(algorithm: Algorithm, world: World) -> None:
    """A run in one chunk or in many gives the same numbers, to the last bit."""
    whole = _run(algorithm, world, dtype="float32")
    pieces = _run(algorithm, world, dtype="float32", chunk=5)
    for name in whole.columns:
        assert np.array_equal(whole.trace[name], pieces.trace[name]), name


def seeds_are_runs(algorithm: Algorithm, world: World) -> None:
    """Many seeds in one program give the same runs as one by one."""
    many = _run(algorithm, world, seeds=[3, 4])
    for n, seed in enumerate((3, 4)):
        one = _run(algorithm, world, seed=seed)
        for name in one.columns:
            assert np.allclose(many.trace[name][n], one.trace[name][0], rtol=1e-12, atol=1e-12)


def nested_params_come_back(algorithm: Algorithm, world: World) -> None:
    """The final model has the nested shape of the problem and the dtype of the run."""
    run = _run(algorithm, world, dtype="float32")
    expected = world.problem.shapes
    if algorithm.personal:  # the server has only the shared part
        expected = expected.shared
    found_tree, wanted_tree = jax.tree.structure(run.model), jax.tree.structure(expected)
    assert str(found_tree) == str(wanted_tree)
    for found, wanted in zip(jax.tree.leaves(run.model), jax.tree.leaves(expected), strict=True):
        assert found.shape == wanted.shape
        assert found.dtype == np.float32


def one_client_is_enough(algorithm: Algorithm, world: World) -> None:
    """A run with a single client works; checked if such a world can be made."""
    alone = world_for(algorithm, 1)
    if type(alone.problem) is type(world.problem):
        heard = with_participation(algorithm, everyone()) or algorithm
        run = _run(heard, alone, dtype="float32")
        assert np.isfinite(run.loss).all()


def silent_client_moves_nobody(algorithm: Algorithm, world: World) -> None:
    """The data of a client that is never sampled, or gets no samples, changes no other client's model."""
    heard = np.ones((STEPS, CLIENTS), bool)
    heard[:, SPECIAL] = False
    silent = with_participation(algorithm, given(heard))
    tried, others = silent or algorithm, [k for k in range(CLIENTS) if k != SPECIAL]
    blind = () if silent else (SPECIAL,)
    before = _run(tried, _with(world, blind=blind))
    after = _run(tried, _with(world, blind=blind, strange=(SPECIAL,)))
    assert np.array_equal(vector(before.model), vector(after.model))
    assert np.array_equal(before.client_models[others], after.client_models[others])
    if silent:
        assert not np.array_equal(before.loss, after.loss)


def idle_merge_moves_nothing(algorithm: Algorithm, world: World) -> None:
    """If no client is sampled, the model of the server does not change, and no bits are counted."""
    nobody = with_participation(algorithm, given(np.zeros((STEPS, CLIENTS), bool)))
    blind = range(CLIENTS) if nobody is None else ()  # fixed participation: nobody gets samples
    run = _run(nobody or algorithm, _with(world, blind=blind))

    @jax.jit
    def started() -> Any:
        vectors = Flat(world.problem)
        first = vectors.init(random.fold(random.root(0), random.INIT))
        params = vectors.split(first) if algorithm.personal else first
        setting = Setting(CLIENTS, 1, vectors.gradient)
        return algorithm.model(algorithm.start(params, setting)[1](0))

    with jax.enable_x64(True):
        start = started()
    known = start.shared if algorithm.personal else start
    assert np.allclose(vector(run.model), known, rtol=0, atol=1e-15)
    assert nobody is None or run.uplink_bits[-1] == 0


def delays_lose_nothing(algorithm: Algorithm, world: World) -> None:
    """With delays, every message is counted when it is sent, and late messages still change the model."""
    slow = network(up=[0, 1, 2, 3, 4, 5], down=[5, 4, 3, 2, 1, 0])
    prompt, late = _run(algorithm, world), _run(algorithm, _with(world), network=slow)
    assert np.isfinite(late.loss).all()
    assert np.array_equal(late.uplink_bits, prompt.uplink_bits)
    assert late.downlink_bits[-1] <= prompt.downlink_bits[-1]
    if not algorithm.sync.silent:
        heard = with_participation(algorithm, everyone()) or algorithm
        usual = _run(heard, _with(world), network=slow)
        other = _run(heard, _with(world, strange=(int(np.argmax(slow.up)),)), network=slow)
        assert not np.array_equal(vector(usual.model), vector(other.model)), "they were lost"


def numbers_are_traced(algorithm: Algorithm, world: World) -> None:
    """Three values that differ in a number use one compiled program."""
    leaves, tree = jax.tree.flatten(algorithm)
    smooth = [n for n, leaf in enumerate(leaves) if np.issubdtype(np.asarray(leaf).dtype, float)]
    if not smooth:
        return
    _run(algorithm, world)
    with counted() as more:
        for factor in (0.99, 0.98):
            n = smooth[0]
            other = [leaf * factor if m == n else leaf for m, leaf in enumerate(leaves)]
            _run(jax.tree.unflatten(tree, other), world)
    assert more.compiled == 0, f"another number compiled {more.compiled} programs"


CLAUSES: tuple[Callable[[Algorithm, World], None], ...] = (
    same_key_same_trace,
    fast_path_is_the_reference,
    chunks_do_not_matter,
    seeds_are_runs,
    nested_params_come_back,
    one_client_is_enough,
    silent_client_moves_nobody,
    idle_merge_moves_nothing,
    delays_lose_nothing,
    numbers_are_traced,
)


def with_participation(algorithm: Algorithm, participation: Participation) -> Algorithm | None:
    """The algorithm with another participation; None: its participation is fixed."""
    try:
        return algorithm.replace(participation=participation)
    except (BadParameter, TypeError):
        return None


def vector(model: Any) -> np.ndarray:
    """A nested model as one vector."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(model)])


def _with(world: World, blind: Iterable[int] = (), strange: Iterable[int] = ()) -> World:
    """The world with clients that get no samples (`blind`), and clients that get other numbers (`strange`)."""
    shift = np.where(np.isin(np.arange(CLIENTS), [*strange]), 1.5, 0.0)
    sees = ~np.isin(np.arange(CLIENTS), [*blind])
    return world._replace(stream=altered(world.stream, shift, sees))


def _run(algorithm: Algorithm, world: World, **settings: Any) -> Run:
    chosen: dict[str, Any] = {"steps": STEPS, "dtype": "float64", "measure": EVERYTHING} | settings
    return simulate(algorithm, world.problem, world.stream, **chosen)
