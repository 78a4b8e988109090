"""Any model: three functions make a problem."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen as nn
from flax import nnx

import mainstem as ms
from mainstem import parts
from mainstem.problems import custom, linear, logistic
from tests.problems.slopes import check_gradient, draw


def run(problem, stream, **settings):
    return ms.simulate(ms.fedogd(step=0.5), problem, stream, steps=12, progress=False, **settings)


def test_a_flax_model_drops_in_unchanged_and_does_what_ours_does():
    """A dense layer that starts at zero is multinomial logistic regression."""
    net = nn.Dense(10, kernel_init=nn.initializers.zeros)
    flax = custom(
        lambda key: net.init(key, np.zeros(64)),
        net.apply,
        optax.losses.softmax_cross_entropy_with_integer_labels,
        classes=10,
    )
    own = ms.problems.softmax(features=64, classes=10)
    stream = ms.streams.digits(clients=8)
    theirs, ours = run(flax, stream, dtype="float64"), run(own, stream, dtype="float64")
    assert flax.parameters == own.parameters == 650
    np.testing.assert_allclose(theirs.loss, ours.loss, rtol=1e-10)
    np.testing.assert_array_equal(theirs.accuracy, ours.accuracy)
    assert ours.loss[-1] < ours.loss[0]


def test_a_deeper_flax_model_learns():
    net = nn.Sequential([nn.Dense(16), nn.relu, nn.Dense(10)])
    problem = custom(
        lambda key: net.init(key, np.zeros(64)),
        net.apply,
        optax.losses.softmax_cross_entropy_with_integer_labels,
        classes=10,
    )
    assert problem.parameters == 65 * 16 + 17 * 10
    losses = run(problem, ms.streams.digits(clients=50)).loss
    assert np.isfinite(losses).all()
    assert losses[-3:].mean() < losses[:3].mean()


def test_ridge_counts_every_leaf_and_nothing_is_assumed():
    problem = custom(
        lambda key: {"w": np.zeros(3), "b": np.zeros(1)},
        lambda params, x: x @ params["w"] + params["b"][0],
        lambda score, y: 0.5 * (score - y) ** 2,
        ridge=0.3,
    )
    seen = draw(3)
    w = np.random.default_rng(1).normal(size=4)
    with jax.enable_x64(True):
        loss = problem.loss({"w": w[:3], "b": w[3:]}, seen)
        expected = linear(3, ridge=0.3).loss(w, seen)
    np.testing.assert_allclose(loss, expected, rtol=1e-13)
    check_gradient(problem, seen)
    assert not problem.convex
    assert problem.curvature == 0
    assert problem.form is None


CROSS_ENTROPY = optax.losses.softmax_cross_entropy_with_integer_labels


@pytest.fixture(scope="module")
def stream():
    draw = np.random.default_rng(0)
    features = draw.normal(size=(200, 3))
    labels = (features @ [1, -2, 0.5] + 0.3 * draw.normal(size=200) > 0).astype(int)
    return ms.streams.arrays(features, labels, clients=10)


def logit(score, y):
    return jnp.logaddexp(0, score) - y * score


def own(**given):
    return custom(lambda key: jnp.zeros(3), lambda w, x: x @ w, logit, classes=2, **given)


@pytest.mark.parametrize("domain", [parts.l2_ball(0.5), parts.box(-0.2, 0.4)])
def test_an_own_convex_loss_has_the_certificate_of_ours(stream, domain):
    problem = own(convex=True, domain=domain)
    found = run(problem, stream).regret()
    mirror = parts.euclidean(domain)
    ours = ms.simulate(
        ms.fedomd(0.5, mirror=mirror), logistic(3, intercept=False), stream, steps=12
    ).regret()
    best = run(problem, stream).loss.sum() - float(found)
    known = ms.measure.Prefix(logistic(3, intercept=False), stream, 12, domain=domain).best
    assert abs(best - known.values[-1]) < 1e-5  # the run's losses are float32
    assert np.allclose(found.params, known.params, atol=1e-4)  # a gap of 1e-8 leaves so much
    assert found.gaps[-1] < 1e-6
    assert "if the loss is convex as declared and exact to 12 digits" in str(found)
    assert "as declared" not in str(ours)


def test_what_is_not_declared_is_not_denied(stream):
    assert "the loss is not declared convex" in str(run(own(), stream).regret())


def test_a_false_declaration_is_refuted(stream):
    """Not in every case: here the solver finds a value below the bound."""
    wave = own(convex=True, domain=parts.l2_ball(1.0)).replace(cost=lambda s, y: jnp.sin(3 * s))
    stream = stream.replace(deal=ms.streams.in_time())
    with pytest.raises(ms.MainstemError, match="declared convex and is not"):
        run(wave, stream).regret()


def test_metrics_are_columns(stream):
    problem = own(metrics={"margin": lambda score, y: (2 * y - 1) * score})
    found = run(problem, stream)
    assert found.columns == ["correct", "downloads", "loss", "margin", "uploads"]
    assert found.column("margin")[-1] > found.column("margin")[0] == 0
    for wrong in ({"margin": 3}, ["margin"], {1: logit}):
        with pytest.raises(ms.MainstemError, match="metrics must map names to functions"):
            own(metrics=wrong)


@pytest.mark.parametrize(
    "init",
    [
        pytest.param(lambda key: eqx.nn.MLP(3, 2, 8, 1, key=key), marks=pytest.mark.slow),
        lambda key: nnx.Sequential(
            nnx.Linear(3, 8, rngs=nnx.Rngs(key)), nnx.relu, nnx.Linear(8, 2, rngs=nnx.Rngs(key))
        ),
    ],
    ids=["equinox", "nnx"],
)
def test_a_module_that_is_a_model_is_used_unchanged(stream, init):
    """Its activations are not numbers: they are kept beside the parameters."""
    problem = custom(init, lambda net, x: net(x), CROSS_ENTROPY, classes=2)
    assert problem.parameters == 4 * 8 + 9 * 2
    found = run(problem, stream, seeds=2)
    assert (found.loss[:, -3:].mean(axis=1) < found.loss[:, :3].mean(axis=1)).all()
    plain = run(problem, stream, plain=True, dtype="float64")
    assert np.allclose(plain.loss, run(problem, stream, dtype="float64").loss, rtol=0, atol=1e-12)


class Net(nn.Module):
    dropout: bool = False
    statistics: bool = False

    @nn.compact
    def __call__(self, x):
        x = nn.Dense(4)(x)
        if self.statistics:
            x = nn.BatchNorm(use_running_average=True)(x)
        if self.dropout:
            x = nn.Dropout(0.5, deterministic=False)(x)
        return nn.Dense(2)(x)


@pytest.mark.parametrize(
    ("net", "message"),
    [
        (Net(dropout=True), "with dropout must be called as for evaluation"),
        (Net(statistics=True), "^custom: init gives batch_stats, .*LayerNorm"),
    ],
    ids=["dropout", "statistics"],
)
def test_models_that_need_more_than_numbers_are_refused(stream, net, message):
    def init(key):
        return net.init({"params": key, "dropout": key}, np.zeros(3))

    with pytest.raises(ms.MainstemError, match=message):
        run(custom(init, net.apply, CROSS_ENTROPY, classes=2), stream)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"scores": lambda w, x: x}, r"scores of shape \(3,\), wanted is \(\) or \(2,\)"),
        ({"classes": None, "scores": lambda w, x: x}, r"\(3,\), wanted is \(\) or \(1,\): one pre"),
        (
            {"cost": lambda s, y: jnp.stack([s, y])},
            r"loss has the shape \(2,\), wanted is one number",
        ),
        ({"recorded": (("two", lambda s, y: jnp.ones(2)),)}, r"two has the shape \(2,\)"),
        ({"scores": lambda w, x: x[:2] @ w}, "apply fails on the first sample: TypeError"),
    ],
)
def test_wrong_shapes_are_refused(stream, change, message):
    with pytest.raises(ms.MainstemError, match=message):
        run(own().replace(**change), stream)


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (
            lambda key: {"w": jnp.zeros(3), "b": 0.5},
            r"write jnp.asarray\(0.5\) if it is to be learnt",
        ),
        (lambda key: jnp.zeros(3, int), "no array of real numbers"),
        (lambda key: {}, "no array of real numbers"),
    ],
)
def test_a_model_without_numbers_is_refused(first, message):
    with pytest.raises(ms.MainstemError, match=message):
        _ = own().replace(first=first).parameters


def test_numbers_of_a_module_are_kept_beside_its_parameters():
    """The rate of a dropout is no parameter; a number in a dictionary may have been meant as one."""
    problem = ms.problems.custom(
        lambda key: eqx.nn.Sequential(
            [eqx.nn.Linear(3, 2, key=key), eqx.nn.Dropout(0.5, inference=True)]
        ),
        lambda net, x: net(x),
        lambda s, y: jnp.sum(s**2),
        classes=2,
    )
    assert problem.parameters == 8


@pytest.mark.parametrize(
    ("first", "scores", "words"),
    [
        (lambda key: {"w": jnp.zeros((3, 2)), "b": 0.5}, None, "init gives the number 0.5"),
        (lambda: jnp.zeros(3), None, r"init\(key\) fails: TypeError"),
        (
            lambda key: jnp.zeros((3, 2)),
            lambda w, x: x @ w,
            r"shape \(2,\), wanted is .* \(for 2 classes give classes=2",
        ),
    ],
)
def test_errors_name_what_may_be_meant(first, scores, words):
    stream = ms.streams.arrays(np.ones((4, 3)), np.ones(4), clients=2)
    problem = ms.problems.custom(first, scores or (lambda w, x: x @ w["w"]), lambda s, y: s**2)
    with pytest.raises(ms.MainstemError, match=words):
        ms.simulate(ms.fedogd(0.1), problem, stream, steps=1)
