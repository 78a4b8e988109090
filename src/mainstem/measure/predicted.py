"""Curves from what was predicted and what came."""

from collections.abc import Callable

import numpy as np

from mainstem.errors import MainstemError
from mainstem.measure.of_run import Recorded

PREDICTED = {  # what `measure` names -> the columns with what was predicted and what came
    "scores": ("score_per_client", "label_per_client"),
    "predictions": ("prediction_per_client", "target_per_client"),
}
# (predicted, came), each [steps, samples of the step] with NaN where there is no sample -> [steps]
Curve = Callable[[np.ndarray, np.ndarray], np.ndarray]


def for_seeds(run: Recorded, name: str, measure: str, curve: Curve) -> np.ndarray:
    """The curve `name` [steps], or [seeds, steps] for several seeds; `measure` is what had to be recorded."""
    predicted, came = PREDICTED[measure]
    if run.problem is not None and (run.problem.classes == 2) != (measure == "scores"):
        of = "two classes" if measure == "scores" else "a number as target"
        raise MainstemError(f"{name}: it is of problems with {of}")
    if predicted not in run.trace:
        raise MainstemError(
            f'{name}: the {measure} were not recorded: simulate(..., measure=["{measure}"])'
        )
    both = zip(run.trace[predicted], run.trace[came], strict=True)
    found = np.stack([curve(*each) for each in both])
    return found if len(found) > 1 else found[0]
