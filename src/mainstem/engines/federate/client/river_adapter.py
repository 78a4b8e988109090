"""An adapter that makes a learner an estimator of River."""

from typing import Any

from mainstem.errors import MainstemError


def estimator(learner: Any, *, classifies: bool) -> Any:
    """A classifier or a regressor of River that predicts and learns through the learner."""
    try:
        from river import base
    except ImportError:
        raise MainstemError("as_river needs River: pip install river") from None

    class FederatedRegressor(base.Regressor):
        """One client of a federated run."""

        def __init__(self, learner: Any):
            self.learner = learner

        def predict_one(self, x: dict[Any, Any]) -> Any:
            return self.learner.predict_one(x)

        def learn_one(self, x: dict[Any, Any], y: Any) -> None:
            self.learner.learn_one(x, y)

    class FederatedClassifier(base.Classifier):
        """One client of a federated run."""

        def __init__(self, learner: Any):
            self.learner = learner

        @property
        def _multiclass(self) -> bool:
            return True

        def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
            return self.learner.predict_one(x)

        def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
            return dict(self.learner.predict_proba_one(x))

        def learn_one(self, x: dict[Any, Any], y: Any) -> None:
            self.learner.learn_one(x, y)

    return FederatedClassifier(learner) if classifies else FederatedRegressor(learner)
