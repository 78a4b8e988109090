"""Dynamic FedAvg: unequal epochs and batches, and a drifting minimiser (Rizk, Vlaski and Sayed 2020)."""

from typing import Any, Unpack

from mainstem import extend as mx
from mainstem.algorithms.send_epochs import SendEpochs


@mx.preset(SendEpochs)
def dynamic_fedavg(
    step: mx.AnyStep,
    epochs: Any = 1,
    batch: Any = None,
    incremental: bool = True,
    normalised: bool = True,
    **parts: Unpack[mx.Parts],
) -> SendEpochs:
    r"""In each step the sampled clients run some epochs on their samples, and their models are averaged.

    Algorithm 1: client k (the paper: agent) starts at the broadcast w and makes :math:`E_k` steps, each on
    a fresh mini-batch of :math:`B_k` of its samples, drawn without replacement (eq. (11)),

    .. math:: w_{k,e} = w_{k,e-1} - \frac{\mu}{E_k B_k} \sum_{b \in \mathcal{B}_{k,e}}
              \nabla Q_k(w_{k,e-1}; x_{k,b}),

    and w becomes the mean over the sampled clients (eq. (12)). `epochs` and `batch` are one number, or
    one for each client; without `batch` an epoch uses all samples. ``incremental=False`` takes all
    gradients at the broadcast, eq. (7); ``normalised=False`` leaves out the :math:`1/E_k`, which
    biases the limit towards clients with more epochs. For streams with many samples in a step use
    `problems.batched`. The paper sends plain models after every step; no theorem covers other parts.

    >>> import mainstem as ms
    >>> algorithm = ms.dynamic_fedavg(
    ...     step=0.1, epochs=[1, 5, 10], batch=10, participation=ms.parts.exactly(2)
    ... )
    >>> stream = ms.streams.walking(clients=3, holds=50)
    >>> problem = ms.problems.batched(ms.problems.logistic(2, ridge=2.0, intercept=False))
    >>> run = ms.simulate(algorithm, problem, stream, steps=50, measure=["deviation"])
    >>> bool(ms.measure.msd(run)[-1] < ms.measure.msd(run)[0])
    True
    """
    rule, ways = mx.as_step("dynamic_fedavg", "step", step), (incremental, normalised)
    return SendEpochs(rule, epochs, batch, *ways, **parts)
