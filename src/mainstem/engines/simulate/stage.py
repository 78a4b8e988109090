"""Operations on all clients at one step: samples arrive, models decide, the row of the trace is computed.

Both paths of the simulator use these functions, so that they cannot differ in what they record or draw.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from mainstem import random, replay
from mainstem.base import (
    SEVERAL,
    Algorithm,
    Faced,
    Flat,
    Form,
    Gradient,
    Sample,
    Sampler,
    Setting,
    constant,
)
from mainstem.engines.simulate.devices import Layout
from mainstem.measure.predicted import PREDICTED, Predicted
from mainstem.parts.network import network
from mainstem.run.trace import per_client


class Shape(NamedTuple):
    """The part of a chunk of steps that is compiled in."""

    rounds: int  # on the fast path; the reference path has one
    length: int  # steps in each round
    sync: bool = True  # whether each ends with a sync
    cohort: int | None = None  # the most participating clients; None: all clients learn
    batched: bool = True  # rows of many rounds in one pass, from stored models


class Feed(NamedTuple):
    """The input of a chunk of steps."""

    first: Any  # its first step
    pieces: Any  # what the stream sends, [steps, clients, ...]
    flags: Any = None  # after which of its steps a sync follows, where `Shape` does not give it


class Arrived(NamedTuple):
    """In place of pieces, where their samples are computed already."""

    samples: Sample


PAIRS = 64  # of a model and a sample, to estimate the collective loss of non-convex problems
MEASURES = ("average", "collective", "consensus", "deviation", "expected", *PREDICTED, "virtual")
# A row's entries for the recorder, which are not columns of the trace.
EACH_LOSS, BAD_STEP = "each client's loss", "first step with a loss that is not finite"
Row = dict[str, jax.Array]  # the values recorded for a step, by name


class Stage(NamedTuple):
    """An algorithm, a problem and a stream, combined for a run."""

    algorithm: Algorithm
    problem: Flat
    sampler: Sampler
    key: Any  # of the run
    drawn: Any  # what the stream draws once for the run
    setting: Setting
    measure: tuple[str, ...]
    weights: Any  # lambda_i of Agarwal et al. 2020, eq. (1), or None
    wires: network
    slots: tuple[int, int]  # the messages that a link can hold, up and down
    layout: Layout
    block: int | None  # clients at a time; None: all at once

    @property
    def gradient(self) -> Gradient:
        """The problem's gradient."""
        return self.problem.gradient

    @property
    def clients(self) -> int:
        """The number of clients, K."""
        return self.setting.clients


def blockwise(stage: Stage, function: Callable[..., Any], *arrays: Any) -> Any:
    """Applies `function` to arrays with the client axis first, in blocks of clients that fit into the cache,
    and joins the results along the first axis."""
    count, size = len(jax.tree.leaves(arrays)[0]), stage.block
    if size is None or count <= size:
        return function(*arrays)
    whole = count // size * size
    blocks = jax.tree.map(lambda x: x[:whole].reshape(-1, size, *x.shape[1:]), arrays)
    joined = jax.lax.map(lambda block: function(*block), blocks)
    joined = jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), joined)
    if whole == count:
        return joined
    rest = function(*jax.tree.map(lambda x: x[whole:], arrays))
    return jax.tree.map(lambda x, y: jnp.concatenate([x, y]), joined, rest)


def everyone(stage: Stage) -> jax.Array:
    """All clients and the absent ones, sharded over the devices; what is computed from them is so too."""
    padded = stage.layout.padded(stage.clients)
    return stage.layout.spread(jnp.arange(padded, dtype=jnp.int32))


def present(stage: Stage, tree: Any) -> Any:
    """What is recorded of `everyone`: without the absent clients."""
    return stage.layout.present(tree, stage.clients)


def participants(stage: Stage, t: Any) -> jax.Array:
    """Which clients participate in the sync of step t; no absent one does."""
    heard = stage.algorithm.participation.heard(stage.key, t, stage.clients)
    absent = stage.layout.padded(stage.clients) - stage.clients
    return jnp.pad(heard, (0, absent)) if absent else heard


def arrive(stage: Stage, pieces: Any, t: Any, k: Any) -> Sample:
    """The samples of the clients `k` at step t; `pieces` has their axis first."""
    if isinstance(pieces, Arrived):
        return pieces.samples
    return replay.arrived(stage.sampler, stage.key, stage.drawn, pieces, t, k)


def face(stage: Stage, params: Any, samples: Sample, t: Any, k: Any, shared: bool) -> Faced:
    """The outcomes of the clients' decisions. `shared`: one model for all clients."""
    at = replay.at_all(stage.key, random.DECIDE, t, k)
    if shared:
        return stage.problem.face_many(params, samples, at)
    return jax.vmap(stage.problem.face, in_axes=(0, 0, SEVERAL))(params, samples, at)


def written(stage: Stage, models: Any, faced: Faced, t: Any, pieces: Any) -> Row:
    """The row of a step: mean loss and metrics, and the requested measures.

    `models` are those of all clients, or a single one if all clients share it.
    """
    models, faced, pieces = present(stage, (models, faced, pieces))
    row = {"loss": averaged(faced.loss), EACH_LOSS: faced.loss}
    row |= {name: averaged(each) for name, each in faced.metrics.items()}
    if stage.weights is not None:
        row["weighted"] = averaged(constant(stage.weights) * faced.loss)
    if not stage.measure:
        return row
    models = jax.vmap(stage.problem.join)(models)
    for name in stage.measure:
        if name in PREDICTED:
            row |= _predicted(PREDICTED[name], stage, models, faced)
        elif (column := per_client(name)) is not None:
            row[name] = _of_present({"loss": faced.loss, **faced.metrics}[column.of], faced)
        elif name == "collective" and not stage.problem.convex:
            row |= _sampled_collective(stage, models, faced, t)
        elif name == "deviation":
            piece = jax.tree.map(lambda x: x[0], pieces)
            off = averaged(models) - stage.sampler.minimiser(stage.drawn, piece, t)
            row[name] = jnp.sum(off**2)
        else:
            row[name] = _measured(name, stage, models, faced, t)
    return row


def _here(faced: Faced) -> Any:
    """Which clients had a sample, as numbers; 1 if every client always has one."""
    return faced.metrics.get("present", 1)


def _of_present(values: jax.Array, faced: Faced) -> jax.Array:
    """The values of the clients, one or one for each sample; NaN for clients without a sample."""
    here = jnp.reshape(_here(faced), (-1, *[1] * (values.ndim - 1)))
    return jnp.ravel(jnp.where(here > 0, values, jnp.nan))


def _predicted(columns: Predicted, stage: Stage, models: Any, faced: Faced) -> Row:
    """What was predicted for each client, and what came."""
    axis = 0 if len(models) == stage.clients else None
    models = models if axis == 0 else models[0]
    scored = jax.vmap(stage.problem.scored, in_axes=(axis, 0))(models, faced.seen)
    return {n: _of_present(each, faced) for n, each in zip(columns[:2], scored, strict=True)}


def _sampled_collective(stage: Stage, models: Any, faced: Faced, t: Any) -> Row:
    """The collective loss of a non-convex problem from random pairs of model and sample, with its standard
    error."""
    draws = random.bits(random.fold(stage.key, random.MEASURE, t), (2, PAIRS))
    whose = (draws[0] % np.uint32(len(models))).astype(jnp.int32)
    whom = (draws[1] % np.uint32(stage.clients)).astype(jnp.int32)
    on = jax.tree.map(lambda x: x[whom], faced.seen)
    here = jnp.broadcast_to(_here(faced), stage.clients)[whom]
    losses = here * jax.vmap(stage.problem.loss)(models[whose], on)
    return {
        "collective": jnp.mean(losses),
        "collective_error": jnp.std(losses, ddof=1) / PAIRS**0.5,
    }


def _measured(name: str, stage: Stage, models: Any, faced: Faced, t: Any) -> jax.Array:
    center = averaged(models)
    if name == "average":
        return center
    if name == "consensus":  # V_t of Sahu et al. 2026
        return averaged(jnp.sum((models - center) ** 2, axis=1))
    if name == "collective":  # (1/m) sum of l_t(x_i), Mitra et al. 2021, eq. (2)
        return _collective(stage, models, faced)
    ks = present(stage, everyone(stage))
    expected = _mean_form(jax.vmap(lambda k: stage.sampler.expected(t, k))(ks))
    if name == "virtual":  # the expected loss of the mean model, Sahu et al. 2026, Lemma 1
        return jnp.asarray(expected.value(center))
    return averaged(jax.vmap(expected.value)(models))  # their eq. (3)


def _collective(stage: Stage, models: Any, faced: Faced) -> jax.Array:
    """The loss of every client's model on every client's sample: by moments, or as one matrix product."""
    if stage.problem.form is not None:
        forms = jax.vmap(stage.problem.form)(faced.seen)
        if "present" in faced.metrics:
            forms = jax.vmap(Form.times)(forms, _here(faced))
        return averaged(jax.vmap(_mean_form(forms).value)(models))
    each = jax.vmap(jax.vmap(stage.problem.loss, in_axes=(None, 0)), in_axes=(0, None))
    return jnp.mean(each(models, faced.seen) * _here(faced))


def _mean_form(forms: Form) -> Form:
    return Form(*(averaged(part) for part in forms))


def averaged(values: jax.Array) -> jax.Array:
    """The mean over the first axis; on a CPU as a product with weights, because XLA's own reduction of a short
    axis costs ten times as much there."""
    if jax.default_backend() != "cpu":
        return jnp.mean(values, axis=0)
    shares = jnp.full(len(values), 1 / len(values), values.dtype)
    return jnp.tensordot(shares, values, axes=1, precision="highest")
