"""Measures of binary classification, from the scores and labels of a run: AUC, F1, log loss."""

import numpy as np

from mainstem.measure.of_run import Recorded
from mainstem.measure.predicted import for_seeds


def auc(run: Recorded) -> np.ndarray:
    """The area under the ROC curve of all predictions so far, of all clients: entry t has the first t + 1 steps.

    It is the share of pairs of a sample of class 1 and one of class 0 in which the first has the larger score; a
    tie counts half. NaN as long as there is no such pair. Needs `measure=["scores"]`.

    >>> import mainstem as ms
    >>> x = np.array([[1.0], [2.0], [-1.0], [-2.0]])
    >>> stream = ms.streams.arrays(x, x[:, 0] > 0, clients=2, deal=ms.streams.in_time())
    >>> run = ms.simulate(ms.fedogd(0.5), ms.problems.logistic(1), stream, steps=2, measure=["scores"])
    >>> auc(run)  # the first two scores are equal: 1/2
    array([0.5  , 0.875])
    """
    return for_seeds(run, "auc", "scores", _auc)


def f1(run: Recorded) -> np.ndarray:
    """The F1 score of class 1 of all predictions so far, of all clients; a positive score predicts class 1.

    It is 2 TP / (2 TP + FP + FN), with the numbers of true positives, false positives and false negatives; 0
    as long as all of them are 0. Needs `measure=["scores"]`.
    """
    return for_seeds(run, "f1", "scores", _f1)


def log_loss(run: Recorded) -> np.ndarray:
    """The mean log loss of all predictions so far, of all clients, without a ridge; the probability of class 1 is
    1 / (1 + exp(-score)). Needs `measure=["scores"]`."""
    return for_seeds(run, "log_loss", "scores", _log_loss)


def _f1(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    guessed, true = scores > 0, labels == 1
    right = np.cumsum((guessed & true).sum(axis=1))
    wrong = np.cumsum(((guessed != true) & ~np.isnan(labels)).sum(axis=1))
    return 2 * right / np.maximum(2 * right + wrong, 1)


def _log_loss(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    here = ~np.isnan(labels)
    margins = np.where(labels == 1, -scores, scores).astype(np.float64)
    with np.errstate(invalid="ignore"):  # a run that diverged
        each = np.where(here, np.logaddexp(0, np.where(here, margins, 0)), 0)
    return np.cumsum(each.sum(axis=1)) / np.maximum(np.cumsum(here.sum(axis=1)), 1)


def _auc(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    steps, clients = np.nonzero(~np.isnan(labels))
    known, true = scores[steps, clients].astype(np.float64), labels[steps, clients] == 1
    won = np.zeros(len(scores))  # by the step of the later sample of a pair
    _count_pairs(steps, known, true, won)
    positive = np.cumsum(np.bincount(steps[true], minlength=len(scores)))
    negative = np.cumsum(np.bincount(steps[~true], minlength=len(scores)))
    with np.errstate(invalid="ignore"):
        return np.cumsum(won) / (positive * negative)


def _count_pairs(steps: np.ndarray, scores: np.ndarray, true: np.ndarray, won: np.ndarray) -> None:
    """Adds to `won` the pairs of both classes that class 1 wins: by halves of the steps, from the pairs between
    the halves and those within each. The samples are in the order of their steps."""
    if len(steps) < 2:
        return
    middle = (steps[0] + steps[-1] + 1) // 2
    cut = int(np.searchsorted(steps, middle)) if steps[0] < steps[-1] else 0
    early, late = slice(None, cut), slice(cut, None)
    if cut:
        _count_pairs(steps[early], scores[early], true[early], won)
        _count_pairs(steps[late], scores[late], true[late], won)
    else:  # one step
        early = late
    before, after = np.sort(scores[early][~true[early]]), np.sort(scores[early][true[early]])
    new = scores[late]
    below = _rank(before, new) * true[late]  # the samples of class 0 that it is ahead of
    above = (len(after) - _rank(after, new)) * ~true[late] if cut else 0
    np.add.at(won, steps[late], below + above)


def _rank(values: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """The number of sorted values below each score; equal ones count half."""
    return 0.5 * (
        np.searchsorted(values, scores, "left") + np.searchsorted(values, scores, "right")
    )
