"""Bytes on the socket: OFedIQ planned for 1 % of the uplink, at the 34,826 parameters of Kwon et al. 2023, Fig. 4.

The clients' connections pass through a relay that counts every byte sent up, from joining to leaving.
"""

import asyncio
from typing import Any, NamedTuple

import numpy as np

import mainstem as ms
from benchmarks.federation import processes
from benchmarks.federation.meter import metered
from mainstem.base import Sample
from mainstem.engines.federate.client.learner import AsyncLearner
from mainstem.engines.federate.protocol.messages import UPLOAD_HEADER
from mainstem.engines.federate.protocol.run_document import RunDocument

CLIENTS, STEPS, STEP, BUDGET = 5, 200, 0.01, 0.01
PLAN = ms.plan(BUDGET, ms.problems.cnn().parameters)
FEDOGD = {"name": "fedogd", "step": STEP}
OFEDIQ = {
    "name": "ofediq",
    "step": STEP,
    "rate": PLAN.rate,
    "levels": PLAN.levels,
    "blocks": PLAN.blocks,
}


class Sent(NamedTuple):
    """The traffic that the clients of a run sent."""

    socket: int  # bytes, everything included
    payload: int  # bytes, as nats-py counts its messages
    uploads: int  # with a body
    document: RunDocument


def images() -> tuple[np.ndarray, np.ndarray]:
    """Images [clients, steps, 28, 28] and their labels."""
    draw = np.random.default_rng(0)
    shape = CLIENTS, STEPS
    return draw.uniform(size=(*shape, 28, 28)).astype(np.float32), draw.integers(0, 10, shape)


async def streamed(learner: AsyncLearner, shown: np.ndarray, labels: np.ndarray) -> None:
    """Runs one client's stream to its end."""
    for image, label in zip(shown, labels.astype(np.int32), strict=True):
        await learner.step_with(Sample(image, label))
        await asyncio.sleep(0)


async def federated(url: str, algorithm: dict[str, Any], pace: str) -> Sent:
    """The traffic of a real run."""
    run = f"{algorithm['name']}-{pace}"
    content = {
        "problem": {"name": "cnn"},
        "algorithm": algorithm,
        "federate": {"run": run, "clients": CLIENTS, "pace": pace, "pending": 32},
    }
    with processes.process(processes.hub, url, content):
        async with metered(url) as (relayed, meter):
            async with processes.joined(relayed, run, CLIENTS) as learners:
                data = zip(learners, *images(), strict=True)
                await asyncio.gather(*(streamed(*each) for each in data))
            await meter.ended()
    document = learners[0].session.document
    payload = sum(each.session.uplink._connection.stats["out_bytes"] for each in learners)
    taken = sum(each.sent_bytes for each in learners)
    return Sent(meter.up, payload, uploads(document, taken), document)


def uploads(document: RunDocument, taken: int) -> int:
    """The number of bodies in these bytes: in lockstep, a client that does not participate sends a header, else
    nothing."""
    if document.lockstep:
        return (taken - STEPS * CLIENTS * UPLOAD_HEADER) // document.upload_bytes
    return taken // (document.upload_bytes + UPLOAD_HEADER)


def simulated() -> tuple[int, int]:
    """(uploads, uplink bytes) of the same run in the simulator."""
    shown, labels = (each.swapaxes(0, 1).reshape(-1, *each.shape[2:]) for each in images())
    algorithm = ms.ofediq(STEP, PLAN.rate, levels=PLAN.levels, blocks=PLAN.blocks)
    stream = ms.streams.arrays(shown, labels, CLIENTS)
    run = ms.simulate(algorithm, ms.problems.cnn(), stream, steps=STEPS)
    sent = int(run.uplink_bytes[-1])
    return sent // run.summary.uplink_bytes, sent


def show_upload(free: Sent) -> None:
    """Prints the size of an upload on the socket and by its formulas."""
    codec, size = free.document.algorithm.codec, free.document.message
    formula, packed = codec.bits(size, 32) / 8, free.document.upload_bytes
    plan = f"s = {PLAN.levels}, b = {PLAN.blocks}, p = {PLAN.rate:.4f}"
    print(f"\nAn upload of OFedIQ planned for 1 %, D = {size:,}, {plan}")
    print(f"  {'formula of the paper':44}{formula:12,.0f} bytes")
    rows = {
        "packed, as the simulator counts it": (packed, ""),
        "with its header": (packed + UPLOAD_HEADER, ""),
        "on the socket, joining and leaving included": (
            free.socket / free.uploads,
            "   (asked: at most 1.03)",
        ),
    }
    for name, (count, goal) in rows.items():
        print(f"  {name:44}{count:12,.0f} bytes   ratio {count / formula:6.3f}{goal}")


def show_saving(full: Sent, runs: dict[str, Sent]) -> None:
    """Prints the share of FedOGD's uplink that OFedIQ saves, with the actual and with the expected number of
    uploads."""
    expected = PLAN.rate * STEPS * CLIENTS
    print(f"\nUplink of a run, {CLIENTS} clients, T = {STEPS}, everything on the socket")
    print(f"  {'FedOGD':44}{full.socket:12,} bytes   {full.payload:,} in messages")
    for name, sent in runs.items():
        levelled = sent.socket + (expected - sent.uploads) * sent.document.upload_bytes
        saved, on_average = (100 * (1 - each / full.socket) for each in (sent.socket, levelled))
        print(f"  {name:44}{sent.socket:12,} bytes   {sent.payload:,} in messages")
        print(f"  {f'  with {sent.uploads} uploads':44}{saved:12.2f} % saved   (asked: 99)")
        print(f"  {f'  with the {expected:.1f} expected':44}{on_average:12.2f} % saved")


def main() -> None:
    """Runs FedOGD in lockstep, OFedIQ in lockstep and at the clients' own pace, and OFedIQ in the simulator."""
    with processes.nats_server("2m") as url:
        full = asyncio.run(federated(url, FEDOGD, "lockstep"))
        lockstep = asyncio.run(federated(url, OFEDIQ, "lockstep"))
        free = asyncio.run(federated(url, OFEDIQ, "free"))
    show_upload(free)
    show_saving(full, {"OFedIQ, in lockstep": lockstep, "OFedIQ, at their own pace": free})
    count, sent = simulated()
    print(f"  {'OFedIQ, simulated':44}{sent:12,} bytes in {count} uploads, bodies alone")
