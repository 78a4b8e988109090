"""Random runs: an algorithm, a problem and a stream of the package, and the same run for the loops."""

from typing import Any, NamedTuple

import jax
import numpy as np

import mainstem as ms
from mainstem import parts, random
from mainstem.base import Algorithm, Problem, Stream
from mainstem.replay import samples_at
from mainstem.streams import deal
from tests.algorithms.table import tabled

D, CLASSES = 3, 3


class Drawn(NamedTuple):
    """A run, for both sides."""

    algorithm: Algorithm
    problem: Problem
    stream: Stream
    network: parts.network
    steps: int
    seed: int
    loop: dict[str, Any]  # the algorithm, its parts and the problem, as the loops take them

    @property
    def clients(self) -> int:
        """The number of clients."""
        return self.stream.clients

    def instance(self) -> dict[str, Any]:
        """The run with its samples and its draws, as the loops take it."""
        every, key = np.arange(self.clients), random.root(self.seed)
        algorithm, steps = self.algorithm, range(1, self.steps + 1)
        with jax.enable_x64(True):
            heard = [algorithm.participation.heard(key, t, self.clients) for t in steps]
            weight = np.broadcast_to([algorithm.participation.weight(k) for k in every], every.size)
            scale = algorithm.participation.scale(self.clients)
        if self.loop["algorithm"]["name"] != "send_gradients":
            weight = np.ones(self.clients)  # models are averaged over those sampled
        wires = self.network.fitted(self.clients, self.steps)
        return {
            "steps": self.steps,
            "clients": self.clients,
            "data": self._data(),
            "start": self._start(),
            "sync": algorithm.sync.after(np.arange(1, self.steps + 1)),
            "heard": np.array(heard),
            "weight": np.array(weight, float),
            "scale": float(scale),
            "up": wires.up,
            "down": wires.down,
        } | self._with_noise()

    def _data(self) -> dict[str, Any]:
        each = [
            list(samples_at(self.stream, self.seed, k, 1, self.steps, "float64"))
            for k in range(self.clients)
        ]
        stacked = jax.tree.map(lambda *x: np.stack(x), *(row for mine in each for row in mine))
        shown, hidden, count = jax.tree.map(
            lambda x: np.swapaxes(x.reshape(self.clients, self.steps, *x.shape[1:]), 0, 1), stacked
        )
        present = np.ones((self.steps, self.clients), bool) if count is None else count > 0
        if self.loop["problem"]["name"] == "personal":
            return {"xg": shown[0], "xl": shown[1], "y": hidden, "present": present}
        return {"x": shown, "y": hidden, "present": present}

    def _start(self) -> Any:
        if self.loop["problem"]["name"] == "personal":
            return {"shared": np.zeros(D), "own": np.zeros(2)}
        start = np.zeros(self.problem.parameters)
        mirror = self.algorithm.mirror
        if mirror is None:
            return start
        with jax.enable_x64(True):
            return np.asarray(mirror.start(start))

    def _with_noise(self) -> dict[str, Any]:
        """The quantiser's random numbers."""
        if self.loop.get("codec", {}).get("name") != "quantiser":
            return self.loop
        key, size = random.root(self.seed), self.problem.parameters
        with jax.enable_x64(True):
            uniform = [
                [
                    random.uniform(random.fold(key, random.CODEC, t, k), (size,))
                    for k in range(self.clients)
                ]
                for t in range(1, self.steps + 1)
            ]
        return self.loop | {"codec": self.loop["codec"] | {"uniform": np.array(uniform, float)}}


def drawn(seed: int) -> Drawn:
    """The run of a seed."""
    draw = np.random.default_rng([17, seed])
    steps, clients = int(draw.integers(12, 25)), int(draw.integers(2, 6))
    family = ["gradients", "gradients", "models", "models", "epochs", "residuals", "solved"][
        draw.integers(7)
    ]
    late = draw.uniform() < 0.3
    up, down = draw.integers(0, 4, (2, clients)) * late
    network = ms.network(up=up.tolist(), down=down.tolist()) if late else ms.network()
    if family in ("residuals", "solved"):
        algorithm, loop = _two_models(draw, family)
        problem = ms.problems.personal(D, 2)
        stream = ms.streams.residuals(clients, shared=D, own=2)
        if draw.uniform() < 0.5:
            stream = ms.streams.sometimes(stream, 0.7)
        loop = {"algorithm": loop, "problem": {"name": "personal"}}
        return Drawn(algorithm, problem, stream, network, steps, seed, loop)
    codec, code = _codec(draw)
    sync = _sync(draw, steps)
    participation = _participation(draw, clients)
    collect, name = (parts.total(), "total") if draw.uniform() < 0.8 else (parts.median(), "median")
    chosen = {"sync": sync, "participation": participation, "codec": codec, "collect": collect}
    loop = {"codec": code, "collect": {"name": name}}
    step, rule = _step(draw)
    if family == "models" and draw.uniform() < 0.4:
        return _on_a_domain(draw, chosen, loop, network, (steps, clients, seed), (step, rule))
    problem, described = _problem(draw)
    stream = _stream(draw, described, steps, clients)
    loop["problem"] = described
    if family == "gradients":
        algorithm: Algorithm = ms.fedogd(step, **chosen)
        loop["algorithm"] = {"name": "send_gradients", "step": rule}
    elif family == "models":
        algorithm = ms.fedomd(step, **chosen)
        loop["algorithm"] = {"name": "send_models", "step": rule}
    else:
        epochs = draw.integers(1, 4, clients)
        ways = {name: bool(draw.integers(2)) for name in ("incremental", "normalised")}
        algorithm = ms.dynamic_fedavg(0.05, epochs=epochs.tolist(), **ways, **chosen)
        rule = {"kind": "constant", "value": 0.05}
        # The paper syncs at every step: between syncs its decisions are ours, with the broadcast.
        of = {"name": "dynamic_fedavg", "step": rule, "decides": "broadcast", "epochs": epochs}
        loop["algorithm"] = of | ways
    return Drawn(algorithm, problem, stream, network, steps, seed, loop)


def _step(draw: Any) -> tuple[Any, dict[str, Any]]:
    kind = draw.integers(3)
    if kind == 0:
        return 0.07, {"kind": "constant", "value": 0.07}
    if kind == 1:
        return parts.inverse_sqrt(0.1), {"kind": "inverse_sqrt", "scale": 0.1}
    rule = {"kind": "inverse_time", "sigma": 5.0, "shift": 4.0}
    return parts.inverse_time(5.0, shift=4.0), rule


def _codec(draw: Any) -> tuple[Any, dict[str, Any]]:
    kind = draw.integers(4)
    if kind == 0:
        return parts.half(), {"name": "half"}
    if kind == 1:
        return parts.top_k(2), {"name": "top_k", "count": 2}
    if kind == 2:
        return parts.quantiser(3, 2), {"name": "quantiser", "levels": 3, "blocks": 2}
    return parts.plain(), {"name": "plain"}


def _sync(draw: Any, steps: int) -> Any:
    kind = draw.integers(4)
    if kind == 0:
        return parts.every(int(draw.integers(2, 5)))
    if kind == 1:
        return parts.every(4, offset=int(draw.integers(1, 4)))
    if kind == 2:
        some = np.flatnonzero(draw.uniform(size=steps) < 0.5) + 1
        return parts.after_steps(some.tolist() or [1])
    return parts.every(1)


def _participation(draw: Any, clients: int) -> Any:
    kind = draw.integers(4)
    if kind == 0:
        return parts.bernoulli(0.6)
    if kind == 1:
        return parts.bernoulli(draw.uniform(0.3, 1.0, clients).tolist())
    if kind == 2:
        return parts.exactly(max(1, clients // 2))
    return parts.everyone()


def _problem(draw: Any) -> tuple[Problem, dict[str, Any]]:
    ridge, intercept = [0.0, 0.3][draw.integers(2)], bool(draw.integers(2))
    given = {"ridge": ridge, "intercept": intercept}
    kind = draw.integers(3)
    if kind == 0:
        return ms.problems.linear(D, **given), {"name": "linear"} | given
    if kind == 1:
        return ms.problems.logistic(D, **given), {"name": "logistic"} | given
    described = {"name": "softmax", "classes": CLASSES, "ridge": ridge, "intercept": True}
    return ms.problems.softmax(D, CLASSES, ridge=ridge), described


def _stream(draw: Any, described: dict[str, Any], steps: int, clients: int) -> Stream:
    """Rows dealt in one of the ways, so that some clients may be without rows at the end."""
    rows = steps * clients
    features = draw.normal(size=(rows, D))
    target = draw.normal(size=rows)
    if described["name"] != "linear":
        target = draw.integers(0, described.get("classes", 2), rows)
    kind = draw.integers(4)
    if kind == 0:
        owner = np.concatenate([np.arange(clients), draw.integers(0, clients, rows - clients)])
        owner[: rows // 2] = np.arange(rows // 2) % clients
        cut = rows // 2 + int(draw.integers(rows // 4, rows // 2))
        return ms.streams.arrays(
            features[:cut], target[:cut], keys=owner[:cut], deal=deal.by_key(ends="repeat")
        )
    if kind == 1:
        return ms.streams.arrays(features, target, clients=clients, deal=deal.in_time())
    if kind == 2:
        silent = ms.streams.arrays(features, target, clients=clients)
        return ms.streams.sometimes(silent, 0.8)
    few = steps * clients - clients // 2  # the last clients run out of rows
    return ms.streams.arrays(
        features[:few], target[:few], clients=clients, deal=deal.evenly(ends="silent")
    )


def _on_a_domain(
    draw: Any, chosen: Any, loop: Any, network: Any, sizes: Any, steps_by: Any
) -> Drawn:
    """Mirror descent on quadratic losses. Messages are plain: a code of a point may lie outside the domain."""
    (steps, clients, seed), (step, rule) = sizes, steps_by
    kind = draw.integers(4)
    if kind == 0:
        mirror, domain = parts.euclidean(parts.box(-0.5, 0.5)), {"name": "box"}
        domain |= {"low": -0.5, "high": 0.5}
        described: dict[str, Any] = {"map": "euclidean", "domain": domain}
    elif kind == 1:
        mirror = parts.euclidean(parts.l2_ball(0.7))
        described = {"map": "euclidean", "domain": {"name": "l2_ball", "radius": 0.7}}
    elif kind == 2:
        mirror, described = parts.entropy(), {"map": "entropy", "domain": {"name": "simplex"}}
    else:
        mirror = parts.p_norm(1.5)
        described = {"map": "p_norm", "p": 1.5, "domain": {"name": "everything"}}
    chosen = chosen | {"codec": parts.plain(), "collect": parts.total()}
    algorithm = ms.fedomd(step, mirror=mirror, **chosen)
    targets = draw.normal(size=(steps, clients, D))
    of = {"name": "send_models", "step": rule, "mirror": described}
    loop = {"problem": {"name": "quadratic", "curvature": 2.0}, "algorithm": of}
    problem, stream = ms.problems.quadratic(D, curvature=2.0), tabled(((), targets))
    return Drawn(algorithm, problem, stream, network, steps, seed, loop)


def _two_models(draw: Any, family: str) -> tuple[Algorithm, dict[str, Any]]:
    if family == "solved":
        if draw.integers(2):
            return ms.fictitious_play(), {"name": "fictitious_play", "solves": "syncs"}
        return ms.fedres_erm(), {"name": "fedres_erm", "solves": "syncs"}
    variant = ["aligned", "on_arrival", "undelayed"][draw.integers(3)]
    period, radius = int(draw.integers(1, 4)), [None, 0.8][draw.integers(2)]
    step, rule = _step(draw)
    domain = parts.everything() if radius is None else parts.l2_ball(radius)
    algorithm = ms.fedres_sgd(step, own_step=0.05, domain=domain, period=period, variant=variant)
    own = {"kind": "constant", "value": 0.05}
    loop = {"name": "fedres_sgd", "step": rule, "own_step": own, "radius": radius}
    return algorithm, loop | {"period": period, "variant": variant}
