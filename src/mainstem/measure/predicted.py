"""Curves from what was predicted and what came."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mainstem.base import Problem
from mainstem.errors import MainstemError
from mainstem.measure.of_run import Recorded


class Predicted(NamedTuple):
    """The columns with what was predicted and what came, and the problems that have them."""

    predicted: str
    came: str
    of: str

    def fits(self, problem: Problem) -> bool:
        """Whether the problem has them."""
        scores = problem.classes == 2
        return (
            problem.scored is not None and PREDICTED["scores" if scores else "predictions"] is self
        )


PREDICTED = {  # by what `measure` names
    "scores": Predicted("score_per_client", "label_per_client", "problems with two classes"),
    "predictions": Predicted(
        "prediction_per_client", "target_per_client", "problems with a number as target"
    ),
}
# (predicted, came), each [steps, samples of the step] with NaN where there is no sample -> [steps]
Curve = Callable[[np.ndarray, np.ndarray], np.ndarray]


def for_seeds(run: Recorded, name: str, measure: str, curve: Curve) -> np.ndarray:
    """The curve `name` [steps], or [seeds, steps] for several seeds; `measure` is what had to be recorded."""
    needed = PREDICTED[measure]
    if run.problem is not None and not needed.fits(run.problem):
        raise MainstemError(f"{name}: it is of {needed.of}")
    if needed.predicted not in run.trace:
        raise MainstemError(
            f'{name}: the {measure} were not recorded: simulate(..., measure=["{measure}"])'
        )
    both = zip(run.trace[needed.predicted], run.trace[needed.came], strict=True)
    found = np.stack([curve(*each) for each in both])
    return found if len(found) > 1 else found[0]
