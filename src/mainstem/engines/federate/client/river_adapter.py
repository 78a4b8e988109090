"""An adapter that makes a learner an estimator of River."""

from collections.abc import Iterator
from typing import Any

from mainstem.errors import MainstemError


class Adapter:
    """What the classifier and the regressor share."""

    def __init__(self, learner: Any):
        self.learner = learner

    @classmethod
    def _unit_test_params(cls) -> Iterator[dict[str, Any]]:
        yield from ()  # River's checks have no learner to make one from

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.learner.__reduce_ex__(protocol)

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The prediction for x."""
        return self.learner.predict_one(x)

    def learn_one(self, x: dict[Any, Any], y: Any) -> None:
        """Learns that y was the truth for x."""
        self.learner.learn_one(x, y)


def estimator(learner: Any, classes: int | None) -> Any:
    """A classifier or a regressor of River that predicts and learns through the learner."""
    try:
        from river import base
    except ImportError:
        raise MainstemError("as_river needs River: pip install river") from None

    class FederatedRegressor(Adapter, base.Regressor):
        """One client of a federated run."""

    class FederatedClassifier(Adapter, base.Classifier):
        """One client of a federated run."""

        @property
        def _multiclass(self) -> bool:
            return classes != 2

        def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
            return dict(self.learner.predict_proba_one(x))

    return FederatedRegressor(learner) if classes is None else FederatedClassifier(learner)
