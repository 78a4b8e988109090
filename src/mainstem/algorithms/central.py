"""Central: the server learns alone, on what all clients share (the baseline of Agarwal et al. 2020)."""

from mainstem import check
from mainstem.algorithms.fedres_sgd import residual_sgd
from mainstem.base import Algorithm, Domain, Step
from mainstem.spec import recorded


@recorded
def central(
    step: Step | float | str,
    domain: Domain | None = None,
    period: int = 1,
    message: str = "sample",
    variant: str = "aligned",
) -> Algorithm:
    r"""FedRes.SGD without the clients' own part (Section 6.2): one model, on the global features.

    .. math:: w^g_t = \Pi_D\Big(w^g_{t-1} - \eta \sum_i \nabla^g_{i,t-\alpha_i}\Big)

    Gradients are summed, not averaged. A client sends (global features, label); its own model is zero.
    Late gradients are taken at the model that predicted, or, with ``variant="on_arrival"``, at the
    server's newest when they arrive.

    >>> import mainstem as ms
    >>> ms.central(step=0.1).sync.spec
    every(period=1)
    """
    check.one_of("central", "variant", variant, ("aligned", "on_arrival"))
    return residual_sgd("central", step, None, domain, period, message, variant)
