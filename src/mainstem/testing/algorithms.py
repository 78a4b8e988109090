"""What every algorithm owes, clause by clause."""

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
SPECIAL = 2  # the client that is not heard, or sees nothing


def check_algorithm(algorithm: Algorithm, world: World | None = None) -> None:
    """Every clause of the contract in turn; `world` is a problem and a stream of 6 clients to try it on.

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
    """Whatever the traits let the engine do, the result is that of the reference path."""
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
    """The same numbers, to the last bit, in one piece or in many."""
    whole = _run(algorithm, world, dtype="float32")
    pieces = _run(algorithm, world, dtype="float32", chunk=5)
    for name in whole.columns:
        assert np.array_equal(whole.trace[name], pieces.trace[name]), name


def seeds_are_runs(algorithm: Algorithm, world: World) -> None:
    """Many seeds as one program are the runs one by one."""
    many = _run(algorithm, world, seeds=[3, 4])
    for n, seed in enumerate((3, 4)):
        one = _run(algorithm, world, seed=seed)
        for name in one.columns:
            assert np.allclose(many.trace[name][n], one.trace[name][0], rtol=1e-12, atol=1e-12)


def nested_params_come_back(algorithm: Algorithm, world: World) -> None:
    """The final model has the problem's own shape, in the run's dtype."""
    run = _run(algorithm, world, dtype="float32")
    expected = world.problem.shapes
    if algorithm.personal:  # the server knows the shared part alone
        expected = expected.shared
    found_tree, wanted_tree = jax.tree.structure(run.model), jax.tree.structure(expected)
    assert str(found_tree) == str(wanted_tree)
    for found, wanted in zip(jax.tree.leaves(run.model), jax.tree.leaves(expected), strict=True):
        assert found.shape == wanted.shape
        assert found.dtype == np.float32


def one_client_is_enough(algorithm: Algorithm, world: World) -> None:
    """A run with a single client works; tried where the world can be made for one."""
    alone = world_for(algorithm, 1)
    if type(alone.problem) is type(world.problem):
        heard = with_participation(algorithm, everyone()) or algorithm
        run = _run(heard, alone, dtype="float32")
        assert np.isfinite(run.loss).all()


def silent_client_moves_nobody(algorithm: Algorithm, world: World) -> None:
    """Data of a client that is never heard, or sees nothing, changes no other client's model."""
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
    """When nobody is heard, the server keeps what it has, and nothing is counted."""
    nobody = with_participation(algorithm, given(np.zeros((STEPS, CLIENTS), bool)))
    blind = range(CLIENTS) if nobody is None else ()  # it hears everyone: then nobody sees anything
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
    """On slow links every message is counted when it is sent, and what a late client says still matters."""
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
    """Three values that differ in a number are one program."""
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
    """The algorithm with another participation, unless it has none to choose."""
    try:
        return algorithm.replace(participation=participation)
    except (BadParameter, TypeError):
        return None


def vector(model: Any) -> np.ndarray:
    """A nested model as one vector."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(model)])


def _with(world: World, blind: Iterable[int] = (), strange: Iterable[int] = ()) -> World:
    """The world with clients that see nothing, and clients that see other numbers."""
    shift = np.where(np.isin(np.arange(CLIENTS), [*strange]), 1.5, 0.0)
    sees = ~np.isin(np.arange(CLIENTS), [*blind])
    return world._replace(stream=altered(world.stream, shift, sees))


def _run(algorithm: Algorithm, world: World, **settings: Any) -> Run:
    chosen: dict[str, Any] = {"steps": STEPS, "dtype": "float64", "measure": EVERYTHING} | settings
    return simulate(algorithm, world.problem, world.stream, **chosen)
