"""Heterogeneity of a stream that knows its distributions: exact sigma_t^2, zeta_t^2, K_t^2 of Sahu et al. 2026."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem.base import Form, cast
from mainstem.errors import BadData
from mainstem.measure.prefix import Prefix
from mainstem.measure.steps import minima


class Heterogeneity(NamedTuple):
    """For each step: the noise, the difference between clients, the excess loss of the best fixed model."""

    noise: np.ndarray  # sigma_t^2, (8); NaN where it depends on the model
    spatial: np.ndarray  # zeta_t^2, (4)
    temporal: np.ndarray  # K_t^2, (5)
    minimisers: np.ndarray  # x_t*, [steps, D]
    best: np.ndarray  # x*, the best fixed model of the expected losses
    losses: Form  # the expected loss at each step, mean over clients
    lowest: np.ndarray  # the minimum of each of them

    @property
    def smoothness(self) -> float:
        """L, the largest second derivative of an expected loss."""
        matrix = self.losses.matrix
        return float(np.max(matrix if matrix.ndim == 1 else np.linalg.eigvalsh(matrix)))

    @property
    def curvature(self) -> float:
        """mu, the smallest second derivative of an expected loss."""
        matrix = self.losses.matrix
        return float(np.min(matrix if matrix.ndim == 1 else np.linalg.eigvalsh(matrix)))

    def against(self, best: np.ndarray) -> np.ndarray:
        """K_t^2 for the fixed model `best` instead of the best one of all these steps."""
        with jax.enable_x64(True):
            here = jax.vmap(lambda *form: Form(*form).value(jnp.asarray(best)))(*self.losses)
            return np.maximum(np.asarray(here) - self.lowest, 0)  # rounding


def heterogeneity(prefix: Prefix) -> Heterogeneity:
    """Heterogeneity from the expected losses, whose second derivatives must be the same at all clients.

    (If these differ, zeta_t^2 is a maximum over the domain and depends on it.)
    """
    stream = prefix.stream
    if stream.expected is None:
        raise BadData("heterogeneity: the stream does not know its expected losses: see spread")
    ks = np.arange(stream.clients)
    with jax.enable_x64(True):
        expected = cast(stream.device, "float64").expected
        by_client = jax.vmap(expected, in_axes=(None, 0))
        by_step = jax.jit(jax.vmap(by_client, in_axes=(0, None)))
        forms = by_step(jnp.arange(1, prefix.steps + 1), jnp.asarray(ks))
    forms = Form(*(np.asarray(part) for part in forms))
    if np.max(np.abs(forms.matrix - forms.matrix[:, :1])) > 1e-12 * np.max(np.abs(forms.matrix)):
        raise BadData("heterogeneity: wants second derivatives that are the same at all clients")
    means = Form(*(part.mean(axis=1) for part in forms))
    spatial = np.mean(np.sum((forms.vector - means.vector[:, None]) ** 2, axis=2), axis=1)
    best = prefix.bests([prefix.steps], expected=True).params
    found = minima(means, prefix.question)
    minimisers, lowest = found.points, found.values
    whole = Heterogeneity(_noise(forms), spatial, lowest, minimisers, best, means, lowest)
    return whole._replace(temporal=whole.against(best))


def _noise(forms: Form) -> np.ndarray:
    """sigma_t^2: for |x - a|^2 c / 2 it is c^2 Var(a) = 2 c times the smallest expected loss."""
    if forms.matrix.ndim > 2:  # a matrix: features are random too, so the noise grows with |x|
        return np.full(len(forms.matrix), np.nan)
    if not forms.matrix.all():
        return np.full(len(forms.matrix), np.nan)
    least = forms.constant - np.sum(forms.vector**2, axis=2) / (2 * forms.matrix)
    return np.asarray(np.mean(2 * forms.matrix * np.maximum(least, 0), axis=1))
