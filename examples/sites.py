"""From an untidy CSV of many sites to AUC, a regret curve, a Pareto figure and a LaTeX table.

`python -m examples.sites FILE FOLDER`; the columns are site, state ("fine" or "faulty"), and numbers with gaps.
"""

import sys
from pathlib import Path

import equinox as eqx
import jax.numpy as jnp
import pandas as pd

import mainstem as ms
from mainstem import parts


def hinge(score, faulty):
    """The squared hinge loss: a fault counts twenty times, since it is rare."""
    margin = jnp.where(faulty == 1, score, -score)
    return jnp.where(faulty == 1, 20.0, 1.0) * jnp.maximum(0.0, 1.0 - margin) ** 2


def main(file, folder):
    """Writes three figures and a table into the folder."""
    gaps = parts.running_mean(indicator=True)  # filled from the site's own past
    order = ["fine", "faulty"]  # "faulty" is class 1
    stream = ms.streams.frame(pd.read_csv(file), "state", "site", classes=order, missing=gaps)
    width, ball = stream.rows().shown.shape[1], parts.l2_ball(3.0)
    linear = ms.problems.custom(
        init=lambda key: jnp.zeros(width + 1),
        apply=lambda w, x: w[:-1] @ x + w[-1],
        loss=hinge,
        classes=2,
        convex=True,
        domain=ball,
    )
    network = ms.problems.custom(
        init=lambda key: eqx.nn.MLP(width, "scalar", 16, 1, key=key),
        apply=lambda net, x: net(x),
        loss=hinge,
        classes=2,
    )
    kinds = {"mirror": parts.euclidean(ball), "participation": parts.bernoulli(0.5)}
    asked = {"steps": stream.steps, "seeds": 10, "measure": ["scores", "collective"]}
    runs = {}
    for period in (1, 5, 25):
        algorithm = ms.fedomd(0.01, sync=parts.every(period), **kinds)
        runs[f"linear, sync every {period}"] = ms.simulate(algorithm, linear, stream, **asked)
    deep = {"network": ms.simulate(ms.ofedavg(0.02, rate=0.5), network, stream, **asked)}
    place = Path(folder)
    ms.compare(runs, "regret").figure.savefig(place / "regret.pdf")
    ms.compare(runs, "regret", x="uplink bits").figure.savefig(place / "pareto.pdf")
    compared = ms.compare(runs | deep, "auc")
    compared.figure.savefig(place / "auc.pdf")
    compared.to_latex(place / "table.tex")
    return compared


if __name__ == "__main__":
    print(main(*sys.argv[1:]))
