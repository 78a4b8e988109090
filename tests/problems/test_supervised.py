"""What all supervised problems refuse of a stream, in one line that names the row."""

import numpy as np
import pytest

from mainstem.errors import BadData
from mainstem.problems import cnn, custom, linear, logistic, mlp, random_features, softmax

X = np.zeros((5, 3), np.float32)
LABELS = np.array([0, 1, 2, 1, 0])
NUMBERS = np.zeros(5, np.float32)
anything = custom(lambda key: np.zeros(1), lambda w, x: x, lambda score, y: y, classes=3)

REFUSED = {
    "label above": (softmax(3, 3), X, np.array([0, 1, 2, 3, 9]), "row 3 has 3"),
    "label below": (softmax(3, 3), X, np.array([0, -1, 2, 1, 0]), "row 1 has -1"),
    "label of two": (logistic(3), X, LABELS, "logistic: wants labels 0 to 1, row 2 has 2"),
    "label of mlp": (mlp(3, classes=2), X, LABELS, "mlp: wants labels 0 to 1, row 2 has 2"),
    "label of custom": (anything, X, np.array([0, 0, 0, 0, 7]), "custom: .*row 4 has 7"),
    "fractional labels": (softmax(3, 3), X, NUMBERS, "wants integer labels 0 to 2.*float32"),
    "one-hot labels": (softmax(3, 3), X, np.eye(5, 3, dtype=int), r"integer labels.*shape \(3,\)"),
    "wide rows": (softmax(4, 3), X, LABELS, r"features of shape \(4,\), the stream has \(3,\)"),
    "flat rows": (linear(3), X[:, 0], NUMBERS, r"features of shape \(3,\), the stream has \(\)"),
    "images": (cnn(), np.zeros((5, 784)), LABELS, r"of shape \(28, 28\), the stream has \(784,\)"),
    "many targets": (linear(3), X, np.zeros((5, 2)), r"one number.*float64 of shape \(2,\)"),
    "words": (random_features(3), X, np.array(list("abcde")), "wants one number.*<U1"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_in_one_line(case):
    problem, shown, hidden, message = REFUSED[case]
    with pytest.raises(BadData, match=message) as refusal:
        problem.check(shown, hidden)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("problem", "hidden"),
    [
        (softmax(3, 3), LABELS),
        (softmax(3, 3), LABELS.astype(np.uint8)),
        (logistic(3), LABELS % 2),
        (linear(3), NUMBERS),
        (linear(3), LABELS),  # whole numbers are numbers
        (mlp(3), NUMBERS),
        (anything, LABELS),
    ],
)
def test_what_fits_is_let_through(problem, hidden):
    problem.check(X, hidden)
