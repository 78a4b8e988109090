"""The guard, in numbers: `python -m benchmarks.guard`, what it costs and what one bad site of four does.

First the mean loss with the guard over that without it, where nobody is faulty. Then the loss of three honest
sites in the second half of a run, over what it is without the fourth one, whose features have a wrong unit, whose
labels are flipped or whose messages are lies: with the guard, with the guard and a median in the place of the
mean, and with the guard and centred clipping.
"""

import dataclasses
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import mainstem as ms
from mainstem import extend as mx
from mainstem.base import Algorithm, Problem, Stream
from mainstem.errors import DataUnavailable, Diverged

CLIENTS, STEPS, FEATURES = 4, 400, 5
DATASETS, SITES, LONGEST = ("letter", "elec2", "usps"), 8, 1500
UNITS = (8.0, 50.0, 1e3, 1e15)
ALGORITHMS = {
    "fedogd": ms.fedogd(step=0.05),
    "ofediq": ms.ofediq(step=0.05, rate=0.5, levels=8, blocks=1),
    "fedomd": ms.fedomd(step=0.05, sync=ms.parts.every(5)),
    "fedsea": ms.fedsea(step=0.05, period=5),
}
LIES: dict[str, Callable[[Any, Any], Any]] = {
    "flipped sign": lambda body, key: -body,
    "constant": lambda body, key: mx.jnp.ones_like(body),
    "random": lambda body, key: mx.jax.random.normal(key, body.shape, body.dtype),
    "1e30": lambda body, key: mx.jnp.full_like(body, 1e30),
    "largest": lambda body, key: mx.jnp.full_like(body, mx.jnp.finfo(body.dtype).max),
    "not a number": lambda body, key: mx.jnp.full_like(body, mx.jnp.nan),
}


@mx.value
class lying(mx.Wrapper):
    """`of`, with lies of the last client in the place of its messages."""

    of: mx.Algorithm = mx.part(mx.Algorithm, "fedogd(step=0.1)")
    lie: str = mx.static()

    traits = mx.Traits()

    def upload(self, client: Any, at: mx.At) -> tuple[Any, mx.Params, Any]:
        client, body, weight = self.of.upload(client, at)
        lie = LIES[self.lie](body, at.key)
        return client, mx.jnp.where(at.k == CLIENTS - 1, lie, body), weight


def _median(algorithm: Algorithm) -> Algorithm:
    if isinstance(algorithm, lying):
        return dataclasses.replace(algorithm, of=_median(algorithm.of))
    return dataclasses.replace(algorithm, collect=ms.parts.median())


Defence = Callable[[Algorithm], Algorithm]
DEFENCES: dict[str, Defence] = {
    "guard": ms.guarded,
    "guard and median": lambda algorithm: ms.guarded(_median(algorithm)),
    "guard and centred clipping": lambda algorithm: ms.guarded(ms.centred_clipping(algorithm)),
}


def rows(seed: int, unit: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Features and targets [steps, clients]; the last client's features are `unit` times too large."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(STEPS, CLIENTS, FEATURES))
    y = x @ rng.normal(size=FEATURES) + 0.1 * rng.normal(size=(STEPS, CLIENTS))
    x[:, -1] *= unit
    return x, y


def stream(x: np.ndarray, y: np.ndarray) -> Stream:
    """The rows as a stream: client k has the rows of column k."""
    steps, clients, features = x.shape
    keys = np.repeat(np.arange(clients), steps)
    flat = x.swapaxes(0, 1).reshape(-1, features), y.swapaxes(0, 1).reshape(-1)
    return ms.streams.arrays(*flat, keys=keys)


def honest_loss(algorithm: Algorithm, x: np.ndarray, y: np.ndarray) -> float:
    """The mean loss of the first three clients in the second half of the run."""
    problem, asked = ms.problems.linear(FEATURES), ["loss per client"]
    run = ms.simulate(algorithm, problem, stream(x, y), steps=len(x), measure=asked)
    return float(np.mean(run.column("loss_per_client")[len(x) // 2 :, : CLIENTS - 1]))


def faults(algorithm: Algorithm, defended: Defence, alone: float) -> dict[str, float]:
    """The honest sites' loss under each fault, over `alone`, that without the fourth site."""
    x, y = rows(1)
    honest = defended(algorithm)
    found = {f"x {unit:g}": honest_loss(honest, *rows(1, unit)) for unit in UNITS}
    found["flipped labels"] = honest_loss(honest, x, np.where(np.arange(CLIENTS) == 3, -y, y))
    found |= {lie: honest_loss(defended(lying(algorithm, lie)), x, y) for lie in LIES}
    return {name: loss / alone for name, loss in found.items()}


def cost(algorithm: Algorithm, problem: Problem, given: Stream) -> float:
    """The mean loss with the guard over that without it, less 1."""
    steps = min(given.steps or LONGEST, LONGEST)
    each = (ms.guarded(algorithm), algorithm)
    runs = [ms.simulate(it, problem, given, steps=steps, measure=()) for it in each]
    guarded, plain = (float(np.mean(run.loss)) for run in runs)
    return guarded / plain - 1


def worlds() -> Iterator[tuple[str, Problem, Stream]]:
    """Real data at eight or ten sites, dealt evenly and by label."""
    digits = ms.problems.softmax(features=64, classes=10)
    yield "digits, evenly", digits, ms.streams.digits(clients=10)
    yield "digits, by label", digits, ms.streams.digits(clients=10, deal=ms.streams.by_label(2))
    for name in DATASETS:
        try:
            table = ms.datasets.load(name)
        except DataUnavailable as error:
            print(f"{name}: left out, {error}")
            continue
        x, y = np.asarray(table.features, float), np.asarray(table.target)
        x = ((x - x.mean(axis=0)) / (x.std(axis=0) + 1e-9)).astype(np.float32)
        problem = ms.problems.softmax(features=x.shape[1], classes=int(y.max()) + 1)
        order = np.arange(len(y))
        labels = y % SITES if y.max() >= SITES else y * (SITES // 2) + order % (SITES // 2)
        for deal, keys in (("evenly", order % SITES), ("by label", labels)):
            yield f"{name}, {deal}", problem, ms.streams.arrays(x, y, keys=keys)


def main() -> None:
    """Prints both tables."""
    warnings.simplefilter("ignore", Diverged)  # of the faulty site's own loss
    print("change of the mean loss by the guard, nobody is faulty")
    for name, problem, given in worlds():
        found = {n: cost(_with_step(it, 0.1), problem, given) for n, it in ALGORITHMS.items()}
        print(f"{name:<20}" + "  ".join(f"{n} {100 * it:+.2f} %" for n, it in found.items()))
    print(f"\nloss of three honest sites over that without the faulty one: {', '.join(DEFENCES)}")
    x, y = rows(1)
    for name, algorithm in ALGORITHMS.items():
        alone = honest_loss(algorithm, x[:, :-1], y[:, :-1])
        found = [faults(algorithm, defended, alone) for defended in DEFENCES.values()]
        lines = (f"{n}: " + ", ".join(f"{it[n]:.3g}" for it in found) for n in found[0])
        print(name, *lines, sep="\n  ")


def _with_step(algorithm: Algorithm, step: float) -> Algorithm:
    return dataclasses.replace(algorithm, step=step)


if __name__ == "__main__":
    main()
