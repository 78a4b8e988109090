"""Related tasks for many clients from one multiclass dataset (Agarwal et al. 2020, Section 6.1)."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mainstem import check, datasets
from mainstem.base import At, Drawn, Exam, Sample, Sampler
from mainstem.errors import BadData
from mainstem.streams.hosted import Hosted
from mainstem.value import flag, integer, static, value

MERGED = 0.3  # share of the classes that are merged into C0
TRIES = 100  # draws of these classes, since some draws leave too few samples
CACHE = 2**26  # bytes of draws that are cached for later runs
SPARED = 0.3  # share of the rows that are held out, if the source has no test set
ASKED = 500  # largest number of held-out rows per class that are evaluated


class Tasks(NamedTuple):
    """The samples of each client's task, [2 most, ...] per client."""

    shared: Any  # global features
    own: Any  # local features
    labels: Any  # 0 for C0 and 1 for the client's class


class Shares(NamedTuple):
    """The assignment of rows to clients."""

    order: np.ndarray  # [features], the global ones first
    rows: np.ndarray  # [clients, 2 most]
    labels: np.ndarray  # [clients, 2 most]
    real: int  # number of samples per client; the rest is padding
    spared: np.ndarray  # held-out rows
    merged: np.ndarray  # the classes of C0
    others: np.ndarray  # [clients], each client's class


class World(NamedTuple):
    """A dataset, and the sizes of what is drawn from it."""

    features: np.ndarray  # [rows, width]
    target: np.ndarray
    classes: int
    tested: int  # number of rows at the end that are held out
    clients: int
    most: int
    common: int  # number of global features
    full: bool  # every draw gives each client 2 most samples


@value
class turns(Sampler):
    """Sampler that returns the drawn samples of a client's task in turn.

    >>> drawn = Drawn(cycle=Tasks(np.ones(3), np.zeros(2), 1))
    >>> turns(full=True).sample((), None, drawn).hidden
    1
    """

    full: bool = flag()

    def sample(self, piece: Any, at: At, drawn: Any) -> Sample:
        if self.full:
            x, local, label = drawn.cycle
        else:
            x, local, label = (part[(at.t - 1) % drawn.common] for part in drawn.each)
        return Sample((x, local), label)


@value
class tasks(Hosted):
    r"""Each client separates C0 from one other class; for `problems.personal(..., classes=2)`.

    Of K classes, floor(0.3 K) random ones are merged into C0 (drawn again if they contain, or leave, too
    few samples for the number of clients). Each client gets N samples of C0 and N of one other class, N
    at most `most`, all disjoint, and repeats them without end. A random half of the features (or `shared`
    of them) is global, the rest local. Everything is drawn from the run's seed, so `seeds=50` gives fifty
    rollouts. The source's test rows are held out, or 30 % of all rows if it has none.
    `measure.held_out(run)` returns each client's balanced accuracy in its own task, from up to 500
    held-out rows per class, weighted so that its expectation is that over all held-out rows.

    >>> tasks("letter", clients=0)
    Traceback (most recent call last):
    mainstem.errors.BadParameter: tasks: clients must be an integer of at least 1, got 0
    """

    source: str = static()
    clients: int = integer(least=1)
    most: int = integer(default=30, least=1)
    shared: Any = static(default=None)

    def admit(self) -> None:
        common = self.world.common
        if self.shared is not None:
            object.__setattr__(self, "shared", common)

    @functools.cached_property
    def world(self) -> World:
        """The dataset, loaded once, and the sizes of what is drawn from it."""
        table = datasets.load(self.source)
        target, classes, tested = table.target, table.classes, table.held_out
        if classes is None or classes < 4:
            raise BadData(
                f"tasks: {self.source} must have at least 4 classes, to merge some of them"
            )
        features = table.features.reshape(len(table.features), -1)
        width = features.shape[1]
        common = width // 2 if self.shared is None else self.shared
        common = check.integer("tasks", "shared", common, least=1, most=width - 1)
        fewest = np.sort(np.bincount(target[: len(target) - tested], minlength=classes))
        least = fewest[: int(MERGED * classes)].sum() * (1 if tested else 1 - 2 * SPARED)
        full = int(least) // self.clients >= self.most
        return World(features, target, classes, tested, self.clients, self.most, common, full)

    @functools.cached_property
    def _shares(self) -> Callable[[int], Shares]:
        """seed -> the assignment of rows to clients; the latest are cached."""
        return functools.lru_cache(maxsize=256)(functools.partial(_draw, self.world))

    @functools.cached_property
    def _runs(self) -> Callable[[int], Drawn]:
        """seed -> what is drawn; as many draws are cached as fit into `CACHE` bytes."""
        size = 4 * self.clients * 2 * self.most * (self.world.features.shape[1] + 1)
        make = functools.partial(_dealt, self.world, self._shares)
        return functools.lru_cache(maxsize=max(1, CACHE // size))(make)

    @property
    def device(self) -> Sampler:
        return turns(self.world.full)

    def drawn(self, seed: int) -> Drawn:
        return self._runs(seed)

    def exam(self, seed: int) -> Exam:
        """The held-out rows, with the labels of each client's own task."""
        world, shares = self.world, self._shares(seed)
        features, target, common = world.features, world.target, world.common
        asked, mass = _asked(np.random.default_rng([seed, 31]), shares.spared, target)
        rows = features[asked][:, shares.order]
        found = target[asked]
        negative = np.isin(found, shares.merged)[None].repeat(self.clients, axis=0)
        positive = found[None] == shares.others[:, None]
        for name, each in (("C0", negative), ("its class", positive)):
            for k in np.flatnonzero(~each.any(axis=1)):
                raise BadData(f"tasks: no sample of {name} is held out for client {k}, seed {seed}")
        masses = (mass * negative, mass * positive)
        weights = sum(0.5 * each / each.sum(axis=1, keepdims=True) for each in masses)
        return Exam((rows[:, :common], rows[:, common:]), positive.astype(np.int32), weights)


def _dealt(world: World, shares: Callable[[int], Shares], seed: int) -> Drawn:
    """The samples of each client for a seed."""
    found = shares(seed)
    if world.full and found.real < 2 * world.most:
        raise BadData(
            f"tasks: seed {seed} leaves {found.real // 2} samples of C0 for each client, not "
            f"{world.most}: take a smaller most"
        )
    held = world.features[found.rows.T if world.full else found.rows]
    first, rest = found.order[: world.common], found.order[world.common :]
    parts = held.take(first, axis=-1), held.take(rest, axis=-1)
    if world.full:
        return Drawn(cycle=Tasks(*parts, found.labels.T))
    return Drawn(common=np.int32(found.real), each=Tasks(*parts, found.labels))


def _asked(
    draw: np.random.Generator, spared: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Up to `ASKED` held-out rows of each class, and the number of rows that each of them represents."""
    rows, masses = [], []
    for label in np.unique(target[spared]):
        all_of = spared[target[spared] == label]
        some = all_of if len(all_of) <= ASKED else draw.choice(all_of, ASKED, replace=False)
        rows.append(some)
        masses.append(np.full(len(some), len(all_of) / len(some)))
    found = np.concatenate(rows)
    order = np.argsort(found)
    return found[order], np.concatenate(masses)[order]


def _draw(world: World, seed: int) -> Shares:
    """The assignment of rows to clients for a seed."""
    draw = np.random.default_rng([seed, 30])
    target, tested, clients, most = world.target, world.tested, world.clients, world.most
    if tested:
        used, spared = np.arange(len(target) - tested), np.arange(len(target) - tested, len(target))
    else:
        mixed = draw.permutation(len(target))
        cut = int(SPARED * len(target))
        used, spared = mixed[cut:], mixed[:cut]
    merged, zero, each, buckets = _merged(draw, world, used)
    chosen = draw.permutation(len(buckets))[:clients]
    table = np.zeros((clients, 2 * most), np.int32)
    labels = np.zeros((clients, 2 * most), np.int32)
    for k, bucket in enumerate(chosen):
        rows = np.concatenate([zero[k * each : (k + 1) * each], buckets[bucket]])
        mixed = draw.permutation(2 * each)
        table[k, : 2 * each] = rows[mixed]
        labels[k, : 2 * each] = mixed >= each
    order = draw.permutation(world.features.shape[1]).astype(np.int32)
    others = np.array([target[buckets[bucket][0]] for bucket in chosen])
    return Shares(order, table, labels, 2 * each, spared, merged, others)


def _merged(
    draw: np.random.Generator, world: World, used: np.ndarray
) -> tuple[np.ndarray, np.ndarray, int, list[np.ndarray]]:
    """(classes of C0, their rows, rows per client, buckets of other rows), enough for all clients."""
    target, classes, clients, most = world.target, world.classes, world.clients, world.most
    for _ in range(TRIES):
        merged = draw.choice(classes, int(MERGED * classes), replace=False)
        zero = draw.permutation(used[np.isin(target[used], merged)])
        each = min(most, len(zero) // clients)
        why = f"{len(zero)} samples of the merged classes are too few"
        if each == 0:
            continue
        buckets = []
        for label in np.setdiff1d(np.arange(classes), merged):
            rows = draw.permutation(used[target[used] == label])
            buckets += [rows[n : n + each] for n in range(0, len(rows) - each + 1, each)]
        why = f"{len(buckets)} buckets of {each} samples are too few"
        if len(buckets) >= clients:
            return merged, zero, each, buckets
    raise BadData(f"tasks: {why} for {clients} clients")
