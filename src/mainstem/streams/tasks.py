"""Related tasks for many clients out of one multiclass dataset (Agarwal et al. 2020, Section 6.1)."""

import functools
from typing import Any, NamedTuple

import numpy as np

from mainstem import check, datasets
from mainstem.base import At, Drawn, Exam, Sample, Stream
from mainstem.errors import BadData
from mainstem.spec import recorded

MERGED = 0.3  # of the classes become C0
TRIES = 100  # draws of them, where some leave too few samples
CACHE = 2**26  # bytes of draws to keep for the next run
SPARED = 0.3  # of the rows are held out, where the source has no test part of its own
ASKED = 500  # of the held-out rows of each class are asked, if there are more


class Tasks(NamedTuple):
    """Each client's samples, [2 most, ...]."""

    shared: Any  # global features
    own: Any  # local features
    labels: Any  # 0 for C0 and 1 for the client's class


class Deal(NamedTuple):
    """Who gets which rows."""

    order: np.ndarray  # [features], the global ones first
    rows: np.ndarray  # [clients, 2 most]
    labels: np.ndarray  # [clients, 2 most]
    real: int  # how many of them are samples
    spared: np.ndarray  # rows that no client has
    merged: np.ndarray  # the classes of C0
    others: np.ndarray  # [clients], each client's class


@recorded
def tasks(source: str, clients: int, most: int = 30, shared: int | None = None) -> Stream:
    r"""Each client tells C0 from a class of its own; for `problems.personal(..., classes=2)`.

    Out of K classes floor(0.3 K) at random are merged into C0 (drawn again if there are too few samples
    in them, or too few left, for that many clients). Each client gets N samples of C0 and N
    of one other class, N at most `most`, all disjoint, and goes through them again and again. A random
    half of the features (or `shared` of them) are global, the rest local. All of it comes from the
    run's seed, so that `seeds=50` are fifty rollouts. Held out are the source's test rows, or 30 % of
    all: `run.held_out()` gives each client's balanced accuracy in its own task, from up to 500 of them
    for each class, weighted so that its expectation is that of all.
    """
    clients = check.integer("tasks", "clients", clients, least=1)
    most = check.integer("tasks", "most", most, least=1)
    table = datasets.load(source)
    if table.classes is None or table.classes < 4:
        raise BadData(f"tasks: {source} must have at least 4 classes, to merge some of them")
    features = table.features.reshape(len(table.features), -1)
    width = features.shape[1]
    common = width // 2 if shared is None else shared
    common = check.integer("tasks", "shared", common, least=1, most=width - 1)
    target, classes, tested = table.target, table.classes, table.held_out

    fewest = np.sort(np.bincount(target[: len(target) - tested], minlength=classes))
    least = fewest[: int(MERGED * classes)].sum() * (1 if tested else 1 - 2 * SPARED)
    full = int(least) // clients >= most  # every draw has as many samples as are asked for

    @functools.lru_cache(maxsize=256)
    def draw(seed: int) -> Deal:
        return _draw(
            np.random.default_rng([seed, 30]), target, classes, tested, width, clients, most
        )

    size = 4 * clients * 2 * most * (width + 1)

    @functools.lru_cache(maxsize=max(1, CACHE // size))
    def drawn(seed: int) -> Drawn:
        found = draw(seed)
        if full and found.real < 2 * most:
            raise BadData(
                f"tasks: seed {seed} leaves {found.real // 2} samples of C0 for each client, not "
                f"{most}: take a smaller most"
            )
        held = features[found.rows.T if full else found.rows]
        parts = held.take(found.order[:common], axis=-1), held.take(found.order[common:], axis=-1)
        if full:
            return Drawn(cycle=Tasks(*parts, found.labels.T))
        return Drawn(common=np.int32(found.real), each=Tasks(*parts, found.labels))

    def sample(resident: Any, piece: Any, at: At) -> Sample:
        run = resident[1]
        if full:
            x, local, label = run.cycle
        else:
            x, local, label = (part[(at.t - 1) % run.common] for part in run.each)
        return Sample((x, local), label)

    def exam(seed: int) -> Exam:
        drawn = draw(seed)
        asked, mass = _asked(np.random.default_rng([seed, 31]), drawn.spared, target)
        rows = features[asked][:, drawn.order]
        found = target[asked]
        negative = np.isin(found, drawn.merged)[None].repeat(clients, axis=0)
        positive = found[None] == drawn.others[:, None]
        for name, each in (("C0", negative), ("its class", positive)):
            for k in np.flatnonzero(~each.any(axis=1)):
                raise BadData(f"tasks: no sample of {name} is held out for client {k}, seed {seed}")
        masses = (mass * negative, mass * positive)
        weights = sum(0.5 * each / each.sum(axis=1, keepdims=True) for each in masses)
        return Exam((rows[:, :common], rows[:, common:]), positive.astype(np.int32), weights)

    return Stream(
        clients,
        None,
        resident=(),
        chunk=lambda seed, first, last: (),
        sample=sample,
        rows=lambda: None,
        drawn=drawn,
        exam=exam,
    )


def _asked(
    draw: np.random.Generator, spared: np.ndarray, target: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Up to so many held-out rows of each class, and how many each of them stands for."""
    rows, masses = [], []
    for label in np.unique(target[spared]):
        all_of = spared[target[spared] == label]
        some = all_of if len(all_of) <= ASKED else draw.choice(all_of, ASKED, replace=False)
        rows.append(some)
        masses.append(np.full(len(some), len(all_of) / len(some)))
    found = np.concatenate(rows)
    order = np.argsort(found)
    return found[order], np.concatenate(masses)[order]


def _draw(
    draw: np.random.Generator,
    target: np.ndarray,
    classes: int,
    tested: int,
    width: int,
    clients: int,
    most: int,
) -> Deal:
    """Who gets which rows."""
    if tested:
        used, spared = np.arange(len(target) - tested), np.arange(len(target) - tested, len(target))
    else:
        mixed = draw.permutation(len(target))
        cut = int(SPARED * len(target))
        used, spared = mixed[cut:], mixed[:cut]
    merged, zero, each, buckets = _merged(draw, target, used, classes, clients, most)
    chosen = draw.permutation(len(buckets))[:clients]
    table = np.zeros((clients, 2 * most), np.int32)
    labels = np.zeros((clients, 2 * most), np.int32)
    for k, bucket in enumerate(chosen):
        rows = np.concatenate([zero[k * each : (k + 1) * each], buckets[bucket]])
        mixed = draw.permutation(2 * each)
        table[k, : 2 * each] = rows[mixed]
        labels[k, : 2 * each] = mixed >= each
    order = draw.permutation(width).astype(np.int32)
    others = np.array([target[buckets[bucket][0]] for bucket in chosen])
    return Deal(order, table, labels, 2 * each, spared, merged, others)


def _merged(
    draw: np.random.Generator,
    target: np.ndarray,
    used: np.ndarray,
    classes: int,
    clients: int,
    most: int,
) -> tuple[np.ndarray, np.ndarray, int, list[np.ndarray]]:
    """(classes of C0, their rows, how many for each client, buckets of other rows), enough for all."""
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
