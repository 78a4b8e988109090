"""One faulty site of four, over real processes: what it does to the loss of the three honest ones.

A hub and four sites, each a process, with the default rules: in lockstep, or with `free` on the command line at
the free pace. Every number is the mean loss of the honest sites in the second half of the run, over what it is in
a run without the fourth site. `held` says that the hub's watch on losses has stopped the merges.
"""

import asyncio
import contextlib
import itertools
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.pool import AsyncResult, Pool
from pathlib import Path
from typing import Any, NamedTuple

import nats.errors
import numpy as np

import mainstem as ms
from benchmarks import guard
from benchmarks.federation import processes
from mainstem.base import Sample
from mainstem.engines.federate import control
from mainstem.engines.federate.client import session
from mainstem.engines.federate.client.kernels import Kernels
from mainstem.engines.federate.hub.process import run_hub
from mainstem.engines.federate.protocol.run_document import RunDocument, parse
from mainstem.errors import NotFinite

SITES, STEPS = 4, 400
PAUSE = {"lockstep": 0.0, "free": 0.02}  # seconds between two samples of a site
SHARED = 3  # of the features, in FedRes.SGD; the others are a site's own
LINEAR = {"name": "linear", "features": guard.FEATURES}
PERSONAL = {"name": "personal", "shared": SHARED, "own": guard.FEATURES - SHARED}
EVERY_5 = {"name": "every", "period": 5}
ALGORITHMS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "fedogd": ({"name": "fedogd", "step": 0.05}, LINEAR),
    "ofediq": ({"name": "ofediq", "step": 0.05, "rate": 0.5, "levels": 8, "blocks": 1}, LINEAR),
    "fedomd": ({"name": "fedomd", "step": 0.05, "sync": EVERY_5}, LINEAR),
    "fedsea": ({"name": "fedsea", "step": 0.05, "period": 5}, LINEAR),
    "fedres_sgd": ({"name": "fedres_sgd", "step": 0.01, "message": "gradient"}, PERSONAL),
}
UNITS = {"x 8": 8.0, "x 50": 50.0, "x 1000": 1e3}
FLIPPED = "flipped labels"
FAULTS = (*UNITS, "flipped sign", "constant", "random", "1e30", "not a number", FLIPPED)
DEFENCES = ("default", "median", "centred clipping")
RUNS = itertools.count()


class Found(NamedTuple):
    """The losses of the honest sites, and whether the run was held."""

    loss: float
    held: bool


def defended(algorithm: dict[str, Any], defence: str) -> dict[str, Any]:
    """The algorithm with a robust merge."""
    if defence == "median":
        return algorithm | {"collect": {"name": "median"}}
    return {"name": "centred_clipping", "of": algorithm} if defence != "default" else algorithm


def hub(url: str, content: dict[str, Any]) -> None:
    """Serves a run until it is asked to finish."""
    with tempfile.TemporaryDirectory() as folder:
        run_hub(parse(content), Path(folder), url=url)


def samples(problem: str, k: int, fault: str) -> Iterator[Sample]:
    """The samples of site k; the last site has the fault."""
    x, y = guard.rows(1, UNITS.get(fault, 1.0))
    sign = -1 if fault == FLIPPED and k == SITES - 1 else 1
    for row, target in zip(x[:, k].astype(np.float32), y[:, k].astype(np.float32), strict=True):
        shown = (row[:SHARED], row[SHARED:]) if problem == "personal" else row
        yield Sample(shown, sign * target)


def _lying(document: RunDocument, lie: str) -> RunDocument:
    return document._replace(algorithm=guard.lying(document.algorithm, lie))


def site(url: str, content: dict[str, Any], k: int, fault: str) -> float:
    """Lives as site k. Returns its mean loss in the second half."""
    problem, rules = content["problem"]["name"], content["federate"]
    usual = session.shared_kernels
    if fault in guard.LIES and k == SITES - 1:
        session.shared_kernels = lambda document, _: Kernels(_lying(document, fault))
    try:
        with ms.join(url, run=rules["run"], client=str(k)) as learner:
            for n, sample in enumerate(samples(problem, k, fault)):
                if n == STEPS // 2:
                    before = learner.loss
                with contextlib.suppress(NotFinite):
                    learner.step_with(sample)
                time.sleep(PAUSE[rules["pace"]])
            return (learner.loss - before) / (STEPS - STEPS // 2)
    finally:
        session.shared_kernels = usual


def _ordered(url: str, run: str, action: str) -> dict[str, Any]:
    """The hub's status after an order, once it answers."""
    end = time.monotonic() + processes.PATIENCE
    while True:
        try:
            return asyncio.run(control.send_order(url, run, action))
        except (nats.errors.Error, ms.errors.MainstemError):
            if time.monotonic() > end:
                raise
            time.sleep(0.1)


def lived(pool: Pool, url: str, content: dict[str, Any], fault: str) -> Found:
    """One run, from its start to its end."""
    run = f"faulty-{next(RUNS)}"
    rules = {**content["federate"], "run": run}
    content = {**content, "federate": rules}
    serving: AsyncResult[None] = pool.apply_async(hub, (url, content))
    _ordered(url, run, "resume")
    sites = [pool.apply_async(site, (url, content, k, fault)) for k in range(rules["clients"])]
    losses = [each.get() for each in sites]
    held = rules["pace"] == "free" and _ordered(url, run, "pause")["state"] == "held"
    if rules["pace"] == "free":
        _ordered(url, run, "finish")
    serving.get()
    return Found(float(np.mean(losses[: SITES - 1])), held)


def table(pool: Pool, url: str, name: str, pace: str) -> None:
    """Prints the rows of one algorithm."""
    algorithm, problem = ALGORITHMS[name]
    rules = {"pace": pace} | ({"steps": STEPS} if pace == "lockstep" else {})
    few = {"problem": problem, "federate": rules | {"clients": SITES - 1}}
    all_four = {"problem": problem, "federate": rules | {"clients": SITES}}
    defences = DEFENCES if pace == "lockstep" else DEFENCES[:1]
    alone = lived(pool, url, few | {"algorithm": algorithm}, "").loss
    print(f"\n{name}, {pace}: {alone:.4f} without the fourth site; {', '.join(defences)}")
    for fault in ("none", *FAULTS):
        found = [
            lived(pool, url, all_four | {"algorithm": defended(algorithm, defence)}, fault)
            for defence in defences
        ]
        cells = (f"{it.loss / alone:.3g}" + " held" * it.held for it in found)
        print(f"  {fault:16}" + "".join(f"{cell:>12}" for cell in cells), flush=True)


def main() -> None:
    """Prints the table of every algorithm, or of those named on the command line."""
    chosen = [name for name in ALGORITHMS if name in sys.argv] or list(ALGORITHMS)
    pace = "free" if "free" in sys.argv else "lockstep"
    with processes.nats_server("2m") as url, processes.SPAWN.Pool(SITES + 1) as pool:
        for name in chosen:
            table(pool, url, name, pace)


if __name__ == "__main__":
    main()
