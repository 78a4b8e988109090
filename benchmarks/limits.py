"""Limits: the least time that a unit of work can take on a device, from its operations and its bytes.

The operations are those that the mathematics needs (an addition, a multiplication, an integer operation or a
comparison is one), the bytes those that must pass through the device's memory: each input that is read once, each
result that is written once. What fits into registers and caches costs no bytes. Parameters are left out where all
clients share them.
"""

from typing import NamedTuple

from benchmarks.machine import PEAKS

FLOAT = 4  # bytes


class Cost(NamedTuple):
    """The operations and bytes of one unit of work, and the precision of its matrix products."""

    flops: float
    bytes: float
    precision: str = "float32"


class Limit(NamedTuple):
    """The least seconds of one unit of work, and what they are spent on."""

    seconds: float
    by: str


def limit(cost: Cost, kind: str) -> Limit | None:
    """max(operations / peak, bytes / bandwidth); None for a device whose peaks are not known.

    >>> limit(Cost(flops=67e9, bytes=0), "NVIDIA H200")
    Limit(seconds=0.001, by='float32 operations')
    """
    peaks = PEAKS.get(kind)
    if peaks is None:
        return None
    by_flops = cost.flops / peaks.flops[cost.precision]
    by_bytes = cost.bytes / peaks.bandwidth
    if by_flops >= by_bytes:
        return Limit(by_flops, f"{cost.precision} operations")
    return Limit(by_bytes, "bandwidth")


def scaled(cost: Cost, count: int) -> Cost:
    """The cost of so many units as one."""
    return cost._replace(flops=cost.flops * count, bytes=cost.bytes * count)


def fedomd(clients: int) -> Cost:
    """One client-step of FedOMD's experiment.

    Operations: a hash of two words (2 x 7), the normal draw from it (a logarithm and a polynomial: 25), the step
    and its projection (6), the client's own loss (4), its part of the collective loss (6). Bytes: the models stay
    in registers; two losses are written for all clients of a step.
    """
    return Cost(2 * 7 + 25 + 6 + 4 + 6, 2 * FLOAT / clients)


def logistic(features: int, clients: int) -> Cost:
    """One step of all clients of FedOGD with logistic regression on rows of a table.

    Operations: the score (2 d), the loss and its slope (20), the sum of the gradients (2 d). Bytes: a row and its
    label; its number is computed.
    """
    return Cost(clients * (4 * features + 20), clients * (features + 1) * FLOAT)


class Layer(NamedTuple):
    """A convolution or a dense layer (one position): one product of matrices for each sample."""

    inputs: int  # numbers that an output is computed from
    outputs: int
    positions: int = 1

    @property
    def flops(self) -> float:
        """Of the forward pass; the gradients by the weights and by the inputs take as many each."""
        return 2.0 * self.inputs * self.outputs * self.positions


CNN = (Layer(9, 32, 26 * 26), Layer(9 * 32, 64, 11 * 11), Layer(1600, 10))
MLP = (Layer(5, 64), Layer(64, 64), Layer(64, 1))
CIFAR = (
    Layer(27, 32, 30 * 30),
    Layer(9 * 32, 64, 28 * 28),
    Layer(14 * 14 * 64, 128),
    Layer(128, 10),
)


def forward(layers: tuple[Layer, ...]) -> float:
    """Operations of a sample's scores."""
    return sum(each.flops for each in layers)


def training(layers: tuple[Layer, ...]) -> float:
    """Operations of a sample's scores and gradient; nobody needs the gradient by the first layer's input."""
    return 3 * forward(layers) - layers[0].flops


def parameters(layers: tuple[Layer, ...]) -> int:
    """Weights and biases."""
    return sum((each.inputs + 1) * each.outputs for each in layers)


def fedogd(layers: tuple[Layer, ...], clients: int, sample: int) -> Cost:
    """One step of all clients of FedOGD with a network; a `sample` has so many numbers.

    The mean of the gradients is one gradient of the mean loss. Bytes: the samples.
    """
    return Cost(clients * training(layers), clients * sample * FLOAT, "tf32")


def ofediq(layers: tuple[Layer, ...], clients: int, sample: int, rate: float) -> Cost:
    """One step of all clients of OFedIQ with a network.

    All clients predict; a share `rate` of them computes a gradient each. Bytes: the samples, and each of these
    gradients written and read once, because a block's norm is needed before its numbers are quantised.
    """
    heard = rate * clients
    flops = clients * forward(layers) + heard * (training(layers) - forward(layers))
    bytes_ = clients * sample * FLOAT + 2 * heard * parameters(layers) * FLOAT
    return Cost(flops, bytes_, "tf32")


def fedavg(layers: tuple[Layer, ...], users: int, images: int, batch: int, sample: int) -> Cost:
    """One round: every user predicts its images, then learns them once in batches from the broadcast.

    Bytes: the images twice, and at every batch each user's own model read and written once.
    """
    each = images * (forward(layers) + training(layers))
    models = 2 * (images // batch) * parameters(layers)
    return Cost(users * each, users * (2 * images * sample + models) * FLOAT, "tf32")


def elec2(features: int) -> Cost:
    """One example of elec2 in a stream: the score, its slope and the update; a row and its label are read."""
    return Cost(4 * (features + 1) + 20, (features + 1) * FLOAT)
