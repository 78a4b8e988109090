"""Contract of algorithms: one function for each clause."""

from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np

from mainstem import random, replay
from mainstem.base import Algorithm, Flat, Participation, Setting
from mainstem.engines.simulate import simulate
from mainstem.errors import BadParameter
from mainstem.parts import everyone, given, network
from mainstem.run import Run
from mainstem.testing.comparisons import another, promised, same
from mainstem.testing.compilations import counted
from mainstem.testing.values import check_value
from mainstem.testing.worlds import World, altered, world_for

STEPS, CLIENTS = 18, 6
EVERYTHING = ("collective", "consensus", "average")
SPECIAL = 2  # the client that is not sampled, or gets no samples


def check_algorithm(algorithm: Algorithm, world: World | None = None) -> None:
    """Checks every clause of the contract; `world` is a problem and a stream of 6 clients for the test runs.

    >>> [clause.__name__ for clause in CLAUSES][:2]
    ['same_key_same_trace', 'fast_path_is_the_reference']
    """
    check_value(algorithm)
    for clause in CLAUSES:
        try:
            clause(algorithm, world or world_for(algorithm, CLIENTS))
        except AssertionError as error:
            promise = f"{clause.__name__} ({clause.__doc__})"
            raise AssertionError(f"{algorithm} breaks {promise}: {error}") from error


def same_key_same_trace(algorithm: Algorithm, world: World) -> None:
    """The trace is a function of the seed, and nothing is compiled twice."""
    first = _run(algorithm, world)
    with counted() as second_time:
        again = _run(algorithm, world)
    promised(second_time.compiled == 0, "programs compiled again", second_time.compiled, 0)
    other = _run(algorithm, world, seed=1)
    for name in first.columns:
        same(first.trace[name], again.trace[name], f"{name}, in two runs with one seed")
    another(first.loss, other.loss, "loss, with another seed")


def fast_path_is_the_reference(algorithm: Algorithm, world: World) -> None:
    """With the shortcuts that the traits allow, the result is that of the reference path."""
    fast = _run(algorithm, world)
    plain = _run(algorithm, world, plain=True)
    for name in fast.columns:
        same(fast.trace[name], plain.trace[name], f"{name}, fast and reference", 1e-10)
    for name, one, other in (
        ("the server's model", vector(fast.model), vector(plain.model)),
        ("the clients' models", fast.client_models, plain.client_models),
        ("the average model", fast.models["average"], plain.models["average"]),
    ):
        same(one, other, f"{name}, fast and reference", 1e-10)


def chunks_do_not_matter(algorithm: Algorithm, world: World) -> None:
    """A run in one chunk or in many gives the same numbers, to the last bit."""
    whole = _run(algorithm, world, dtype="float32")
    pieces = _run(algorithm, world, dtype="float32", chunk=5)
    for name in whole.columns:
        same(whole.trace[name], pieces.trace[name], f"{name}, in one chunk and in chunks of 5")


def seeds_are_runs(algorithm: Algorithm, world: World) -> None:
    """Many seeds in one program give the same runs as one by one."""
    many = _run(algorithm, world, seeds=[3, 4])
    for n, seed in enumerate((3, 4)):
        one = _run(algorithm, world, seed=seed)
        for name in one.columns:
            what = f"{name}, seed {seed} among others and alone"
            same(many.trace[name][n], one.trace[name][0], what, 1e-12)


def nested_params_come_back(algorithm: Algorithm, world: World) -> None:
    """The final model has the nested shape of the problem and the dtype of the run."""
    run = _run(algorithm, world, dtype="float32")
    expected = world.problem.shapes
    if algorithm.personal:  # the server has only the shared part
        expected = expected.shared
    found_tree, wanted_tree = jax.tree.structure(run.model), jax.tree.structure(expected)
    promised(str(found_tree) == str(wanted_tree), "the model's structure", found_tree, wanted_tree)
    for found, wanted in zip(jax.tree.leaves(run.model), jax.tree.leaves(expected), strict=True):
        promised(found.shape == wanted.shape, "the model's shape", found.shape, wanted.shape)
        promised(found.dtype == np.float32, "the model's dtype", found.dtype, np.float32)


def one_client_is_enough(algorithm: Algorithm, world: World) -> None:
    """A run with a single client works; checked if such a world can be made."""
    alone = world_for(algorithm, 1)
    if type(alone.problem) is type(world.problem):
        heard = with_participation(algorithm, everyone()) or algorithm
        run = _run(heard, alone, dtype="float32")
        finite(run)


def silent_client_moves_nobody(algorithm: Algorithm, world: World) -> None:
    """The data of a client that is never sampled, or gets no samples, changes no other client's model."""
    heard = np.ones((STEPS, CLIENTS), bool)
    heard[:, SPECIAL] = False
    silent = with_participation(algorithm, given(heard))
    tried, others = silent or algorithm, [k for k in range(CLIENTS) if k != SPECIAL]
    blind = () if silent else (SPECIAL,)
    before = _run(tried, _with(world, blind=blind))
    after = _run(tried, _with(world, blind=blind, strange=(SPECIAL,)))
    what = f"when only the data of client {SPECIAL} changes"
    same(vector(before.model), vector(after.model), f"the server's model, {what}")
    theirs = before.client_models[others], after.client_models[others]
    same(*theirs, f"the other clients' models, {what}")
    if silent:
        another(before.loss, after.loss, f"loss, {what}")


def idle_merge_moves_nothing(algorithm: Algorithm, world: World) -> None:
    """If no client is sampled, the model of the server does not change, and no bits are counted."""
    nobody = with_participation(algorithm, given(np.zeros((STEPS, CLIENTS), bool)))
    blind = range(CLIENTS) if nobody is None else ()  # fixed participation: nobody gets samples
    run = _run(nobody or algorithm, _with(world, blind=blind))

    @jax.jit
    def started() -> Any:
        vectors = Flat(world.problem)
        params = replay.first_model(vectors, random.root(0), personal=algorithm.personal)
        setting = Setting(CLIENTS, 1, vectors.gradient)
        return algorithm.model(algorithm.start(params, setting)[1](0))

    with jax.enable_x64(True):
        start = started()
    known = start.shared if algorithm.personal else start
    same(vector(run.model), known, "the server's model, at the start and after idle merges", 1e-15)
    if nobody is not None:
        promised(run.uplink_bits[-1] == 0, "uplink bits of nobody", run.uplink_bits[-1], 0)


def delays_lose_nothing(algorithm: Algorithm, world: World) -> None:
    """With delays, every message is counted when it is sent, and late messages still change the model."""
    slow = network(up=[0, 1, 2, 3, 4, 5], down=[5, 4, 3, 2, 1, 0])
    prompt, late = _run(algorithm, world), _run(algorithm, _with(world), network=slow)
    finite(late)
    same(late.uplink_bits, prompt.uplink_bits, "uplink bits, with and without delays")
    down = late.downlink_bits[-1], prompt.downlink_bits[-1]
    promised(down[0] <= down[1], "downlink bits with delays, at most those without", *down)
    if not algorithm.sync.silent:
        heard = with_participation(algorithm, everyone()) or algorithm
        usual = _run(heard, _with(world), network=slow)
        for late_client in np.flatnonzero(slow.up):
            other = _run(heard, _with(world, strange=(int(late_client),)), network=slow)
            what = f"the server's model, with other data at the client {slow.up[late_client]} steps late"
            another(vector(usual.model), vector(other.model), what)


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
    promised(more.compiled == 0, "programs compiled for another number", more.compiled, 0)


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


def finite(run: Run) -> None:
    """Raises an AssertionError with the first loss that is not finite."""
    bad = ~np.isfinite(run.loss)
    if bad.any():
        t = int(np.argmax(bad))
        raise AssertionError(f"the loss of step {t + 1}: {run.loss[t]}, not finite")


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
