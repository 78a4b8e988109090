"""Dynamic FedAvg: uneven epochs and batches, a world that moves (Rizk, Vlaski and Sayed 2020)."""

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
    r"""In each step the agents heard make some epochs on what they hold, and their models are averaged.

    Algorithm 1: agent k starts at the broadcast w and makes :math:`E_k` steps, each on a fresh
    mini-batch of :math:`B_k` of its samples, drawn without replacement (eq. (11)),

    .. math:: w_{k,e} = w_{k,e-1} - \frac{\mu}{E_k B_k} \sum_{b \in \mathcal{B}_{k,e}}
              \nabla Q_k(w_{k,e-1}; x_{k,b}),

    and w becomes the mean over the agents heard (eq. (12)). `epochs` and `batch` are one number, or
    one for each agent; without `batch` an epoch takes all samples. ``incremental=False`` takes all
    gradients at the broadcast, eq. (7); ``normalised=False`` leaves out the :math:`1/E_k`, which
    biases the limit towards agents with more epochs. Streams that bring many samples a step go with
    `problems.batched`. The paper exchanges plain models after every step; other parts are no theorem's.

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
