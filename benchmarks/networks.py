"""FedOGD and OFedIQ with the CNN of 34,826 and the MLP of 4,609 parameters, beside PyTorch and bare JAX."""

import importlib
from collections.abc import Callable, Iterator
from typing import Any

from benchmarks import limits, machine, workloads
from benchmarks.compare import (
    PER_STEP,
    Action,
    Result,
    Row,
    Setting,
    Side,
    compare,
    ready,
)
from benchmarks.peers import jax_networks

IMAGE, FEATURES = 28 * 28 + 1, 5 + 1  # numbers of a sample, its label included


def mlp(setting: Setting) -> Iterator[Result]:
    """The perceptron at 1,000 clients."""
    clients, steps = (50, 5) if setting.small else (1_000, 5_000 if machine.on_gpu() else 100)
    work, on_gpu = workloads.mlp(clients, steps), machine.on_gpu()
    short = workloads.mlp(
        clients, min(steps, 500)
    )  # PyTorch's time per step is the same, and much longer
    title = f"MLP of 4,609 parameters, {clients:,} clients"
    sides = [
        Side("mainstem", ready(work.run("fedogd"))),
        *_torch("eager PyTorch", "torch_mlp", "fedogd", short, ratio=1.3),
        _bare("bare JAX", lambda: jax_networks.fedogd("mlp", *work.data)),
    ]
    row = Row("mlp-fedogd", f"FedOGD, {title}", PER_STEP, steps, sides)
    cost = limits.fedogd(limits.MLP, clients, FEATURES)
    yield compare(row._replace(cost=cost, goal=0.03 if on_gpu else None), setting)
    plan = work.plan
    planned = plan.rate, plan.levels, plan.blocks, 0
    sides = [
        Side("mainstem", ready(work.run("ofediq"))),
        *_torch("torch.func.vmap", "torch_mlp", "ofediq", short, *planned, ratio=2.2),
        *_torch(
            "PyTorch, gradients by hand", "torch_mlp", "ofediq", short, *planned, gradients="outer"
        ),
        _bare("bare JAX", lambda: jax_networks.ofediq("mlp", *work.data, *planned)),
        Side("mainstem, FedOGD", ready(work.run("fedogd")), ratio=None if on_gpu else 1 / 1.5),
    ]
    row = Row("mlp-ofediq", f"OFedIQ planned for 1 %, {title}", PER_STEP, steps, sides)
    cost = limits.ofediq(limits.MLP, clients, FEATURES, plan.rate)
    yield compare(row._replace(cost=cost, goal=0.05 if on_gpu else None), setting)


def cnn(setting: Setting) -> Iterator[Result]:
    """The convolutional network at 1,000 clients."""
    clients, steps = (50, 2) if setting.small else (1_000, 1_000 if machine.on_gpu() else 3)
    work, on_gpu = workloads.cnn(clients, steps), machine.on_gpu()
    title = f"CNN of 34,826 parameters, {clients:,} clients"
    natural = {"layout": "as_it_is"}
    sides = [
        Side("mainstem", ready(work.run("fedogd"))),
        *_torch("eager PyTorch", "torch_cnn", "fedogd", work, ratio=1.0, **natural),
        *_torch("eager PyTorch, channels last", "torch_cnn", "fedogd", work),
        _bare("bare JAX, XLA's convolutions", lambda: jax_networks.fedogd("cnn", *work.data)),
    ]
    row = Row("cnn-fedogd", f"FedOGD, {title}", PER_STEP, steps, sides)
    cost = limits.fedogd(limits.CNN, clients, IMAGE)
    yield compare(row._replace(cost=cost, goal=0.6 if on_gpu else None), setting)
    if on_gpu:
        short = workloads.cnn(clients, steps, precision="bfloat16")
        sides = [
            Side("mainstem, layers in bfloat16", ready(short.run("fedogd"))),
            Side("mainstem", ready(work.run("fedogd"))),
        ]
        row = Row("cnn-fedogd-bfloat16", f"FedOGD in bfloat16, {title}", PER_STEP, steps, sides)
        yield compare(row._replace(goal=0.45), setting)
    plan = work.plan
    planned = plan.rate, plan.levels, plan.blocks, 0
    general, hand = {"gradients": "vmapped_as_it_is", **natural}, {"gradients": "unfolded"}
    sides = [
        Side("mainstem", ready(work.run("ofediq"))),
        *_torch("torch.func.vmap", "torch_cnn", "ofediq", work, *planned, ratio=1.8, **general),
        *_torch("torch.func.vmap, channels last", "torch_cnn", "ofediq", work, *planned),
        *_torch(
            "PyTorch, gradients by hand", "torch_cnn", "ofediq", work, *planned, ratio=1.3, **hand
        ),
        _bare("bare JAX, vmap", lambda: jax_networks.ofediq("cnn", *work.data, *planned)),
        _bare(
            "bare JAX, vmap, by patches",
            lambda: jax_networks.ofediq("cnn", *work.data, *planned, patches=True),
        ),
    ]
    row = Row("cnn-ofediq", f"OFedIQ planned for 1 %, {title}", PER_STEP, steps, sides)
    cost = limits.ofediq(limits.CNN, clients, IMAGE, plan.rate)
    yield compare(row._replace(cost=cost, goal=0.35 if on_gpu else None), setting)


def _bare(name: str, action: Action) -> Side:
    return Side(name, ready(action))


def _torch(
    name: str,
    module: str,
    function: str,
    work: workloads.Workload,
    *planned: Any,
    ratio: float | None = None,
    **named: str,
) -> Iterator[Side]:
    """The peer's side; on a GPU once without and once with TF32, with the data already there."""
    for tf32 in (False, True) if machine.on_gpu() else (False,):
        label = f"{name}, {'TF32' if tf32 else 'float32'}" if machine.on_gpu() else name
        prepare = _prepared(module, function, work, planned, named, tf32)
        yield Side(label, prepare, work.steps, None if machine.on_gpu() else ratio)


def _prepared(
    module: str,
    function: str,
    work: workloads.Workload,
    planned: tuple[Any, ...],
    named: dict[str, str],
    tf32: bool,
) -> Callable[[], Action]:
    def prepare() -> Action:
        peer = importlib.import_module(f"benchmarks.peers.{module}")
        parts = importlib.import_module("benchmarks.peers.torch_parts")
        device = machine.torch_device()
        arrays = *peer.on_device(*work.data[:3], device), work.data[3]
        chosen = {key: getattr(peer, value) for key, value in named.items()}
        search = function == "fedogd"  # every batch has the same shape; cohorts do not

        def run() -> object:
            with parts.float32(tf32, search):
                return getattr(peer, function)(*arrays, *planned, device=device, **chosen)

        return run

    return prepare
