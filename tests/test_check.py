"""Refusals: the checks themselves, and every factory's, each naming its parameter."""

import inspect
import math

import jax.numpy as jnp
import numpy as np
import pytest

from mainstem import algorithms, check, parts, problems, streams
from mainstem.base import Domain
from mainstem.errors import BadData, BadParameter, MainstemError

MODULES = {
    "algorithms": algorithms,
    "parts": parts,
    "problems": problems,
    "streams": streams,
}


def nothing(*anything):
    """A function, where one is required."""


X, Y = np.ones((4, 2)), np.arange(4)
FUNCTIONS = {"init": nothing, "apply": nothing, "loss": nothing}
OGD = algorithms.fedogd(0.1)
SCHEDULE = {"step": parts.adagrad(0.1)}
BALL = {"domain": parts.l2_ball(1)}
REGRESSION, STREAM = problems.personal(2, 2), streams.alternating(3)

REFUSED = [  # (module, factory, arguments, how the one line begins)
    ("algorithms", "fedogd", {"step": 0}, "fedogd: step must be above 0, got 0"),
    ("algorithms", "fedogd", SCHEDULE, "fedogd: step must depend on t alone"),
    ("algorithms", "ofedavg", {"step": 0.1, "rate": 1.5}, r"ofedavg: rate must lie in \(0, 1\]"),
    ("algorithms", "ofedavg", {"step": 0.1, "rate": [0.5, 0]}, r"ofedavg: rate must lie in"),
    (
        "algorithms",
        "ofediq",
        {"step": "fast"},
        'ofediq: step must be a number above 0, a step-size rule, a schedule or "auto"',
    ),
    ("algorithms", "ofediq", {"step": math.nan}, "ofediq: step must be a finite number"),
    ("algorithms", "ofediq", {"step": 0.1, "rate": 0}, "ofediq: rate must lie in"),
    ("algorithms", "ofediq", {"step": 0.1, "period": 0}, "ofediq: period must be an integer of at"),
    ("algorithms", "ofediq", {"step": 0.1, "levels": 0}, "ofediq: levels must be an integer"),
    ("algorithms", "ofediq", {"step": 0.1, "levels": 3, "blocks": 0}, "ofediq: blocks must be an"),
    ("algorithms", "fedomd", {"step": -1}, "fedomd: step must be above 0, got -1"),
    ("algorithms", "fedomd", {**SCHEDULE, "mirror": parts.entropy()}, "fedomd: step must have one"),
    ("algorithms", "ofediq", {"step": 0.1, "blocks": 3}, "ofediq: blocks must be left out where"),
    ("algorithms", "ofediq", {"step": 0.1, "collect": 5}, "ofediq: collect must be a collect"),
    ("algorithms", "fedomd", {"step": 0.1, "mirror": "x"}, "fedomd: mirror must be a mirror"),
    ("algorithms", "fedomd", {"step": 0.1, "sync": 5}, "fedomd: sync must be a sync such as"),
    ("algorithms", "fedomd", {"step": 0.1, "sync": parts.box(0, 1)}, "fedomd: sync must be a sync"),
    ("algorithms", "fedomd", {"step": 0.1, "participation": 5}, "fedomd: participation must be a"),
    ("algorithms", "fedomd", {"step": 0.1, "codec": 5}, "fedomd: codec must be a codec such as"),
    ("algorithms", "fedomd", {"step": 0.1, "collect": 5}, "fedomd: collect must be a collect"),
    ("algorithms", "fedsea", {"step": 0.1, "period": 0}, "fedsea: period must be an integer"),
    ("algorithms", "fedsea", {"step": 0.1, "period": 2, "offset": 2}, "fedsea: offset must be an"),
    ("algorithms", "fedsea", {"step": 0.1, "domain": 1}, "fedsea: domain must be a domain"),
    ("algorithms", "central", {"step": 0}, "central: step must be above 0, got 0"),
    ("algorithms", "central", {"step": 0.1, "domain": 3}, "central: domain must be a domain"),
    ("algorithms", "central", {"step": 0.1, "period": 0}, "central: period must be an integer"),
    ("algorithms", "central", {"step": 0.1, "message": "letter"}, "central: message must be one"),
    *[
        ("algorithms", factory, {**SCHEDULE, **given}, f"{factory}: step must {wanted}")
        for factory, given, wanted in (
            ("SendModels", {"mirror": parts.entropy()}, "have one rate for all coordinates"),
            ("fedsea", BALL, "have one rate for all coordinates"),
            ("independent", {"mirror": parts.entropy()}, "have one rate for all coordinates"),
            ("SendEpochs", {}, "depend on t alone"),
            ("dynamic_fedavg", {}, "depend on t alone"),
        )
    ],
    ("algorithms", "independent", {"step": 0}, "independent: step must be above 0, got 0"),
    ("algorithms", "independent", {"step": 1, "mirror": 3}, "independent: mirror must be a mirror"),
    ("algorithms", "fedres_sgd", {"step": 0}, "fedres_sgd: step must be above 0, got 0"),
    ("algorithms", "fedres_sgd", {**SCHEDULE, **BALL}, "fedres_sgd: step must have one rate"),
    ("algorithms", "fedres_sgd", {"step": 0.1, "domain": 3}, "fedres_sgd: domain must be a domain"),
    ("algorithms", "fedres_sgd", {"step": 0.1, "period": 0}, "fedres_sgd: period must be an integ"),
    ("algorithms", "fedres_sgd", {"step": 0.1, "message": "x"}, "fedres_sgd: message must be one"),
    ("algorithms", "fedres_sgd", {"step": 0.1, "variant": "x"}, "fedres_sgd: variant must be one"),
    *[
        ("algorithms", factory, arguments, f"{factory}: {message}")
        for factory in ("fedres_erm", "fictitious_play")
        for arguments, message in (
            ({"radius": 0}, "radius must be above 0, got 0"),
            ({"radius": 1, "capacity": 0}, "capacity must be an integer of at least 1, got 0"),
            ({"capacity": 5}, "radius must be given where samples are stored, got None"),
        )
    ],
    ("algorithms", "dynamic_fedavg", {"step": 0}, "dynamic_fedavg: step must be above 0, got 0"),
    ("algorithms", "dynamic_fedavg", {"step": 1, "epochs": 0}, "dynamic_fedavg: epochs must be"),
    ("algorithms", "dynamic_fedavg", {"step": 1, "batch": 0}, "dynamic_fedavg: batch must be"),
    ("algorithms", "dynamic_fedavg", {"step": 1, "participation": 3}, "dynamic_fedavg: particip"),
    *[  # an argument that is left out has a default part, None has not
        ("algorithms", factory, {"step": 0.1, name: None}, f"{factory}: {name} must be")
        for factory, names in {
            "SendGradients": ("sync", "participation", "codec", "collect"),
            "SendModels": ("mirror", "sync", "participation", "codec", "collect"),
            "SendEpochs": ("epochs", "sync", "participation", "codec", "collect"),
            "FollowResiduals": ("domain", "participation", "codec"),
            "fedogd": ("sync", "participation", "codec", "collect"),
            "fedomd": ("mirror", "sync", "participation", "codec", "collect"),
            "independent": ("mirror",),
            "fedsea": ("domain", "participation", "codec", "collect"),
            "dynamic_fedavg": ("sync", "participation", "codec", "collect"),
            "fedres_sgd": ("domain", "participation", "codec"),
            "central": ("domain", "participation", "codec"),
        }.items()
        for name in names
    ],
    *[
        ("algorithms", factory, {"step": 0.1, "collect": parts.each()}, f"{factory}: collect must ")
        for factory in ("SendGradients", "SendModels", "SendEpochs", "fedogd", "fedomd", "fedsea")
    ],
    ("algorithms", "SendGradients", SCHEDULE, "SendGradients: step must depend on t alone"),
    ("algorithms", "SendGradients", {"step": 1, "server": 3}, "SendGradients: server must be an o"),
    ("algorithms", "SendModels", {"step": 0}, "SendModels: step must be above 0, got 0"),
    ("algorithms", "SendEpochs", {"step": 1, "epochs": 0}, "SendEpochs: epochs must be whole numb"),
    (
        "algorithms",
        "SendEpochs",
        {"step": 1, "batch": 0},
        "SendEpochs: batch must be whole numbers",
    ),
    ("algorithms", "FollowResiduals", {"step": 1, "own_step": 0}, "FollowResiduals: own_step must"),
    ("algorithms", "FollowResiduals", {"step": 1, "message": "x"}, "FollowResiduals: message must"),
    ("parts", "each", {"base": "no"}, "each: base must be true or false, got 'no'"),
    ("algorithms", "centred_clipping", {"of": 3}, "centred_clipping: of must be an alg"),
    (
        *("algorithms", "centred_clipping", {"of": algorithms.fedres_sgd(0.1)}),
        "centred_clipping: of must send gradients, sums of them, or models",
    ),
    (
        *("algorithms", "centred_clipping", {"of": OGD, "momentum": 1}),
        "centred_clipping: momentum must lie in ",
    ),
    (
        *("algorithms", "centred_clipping", {"of": OGD, "bucket": 0}),
        "centred_clipping: bucket must be an integer",
    ),
    ("algorithms", "guarded", {"of": 3}, "guarded: of must be an algorithm such as fedogd"),
    ("algorithms", "guarded", {"of": OGD, "factor": 0}, "guarded: factor must be above 0, got 0"),
    ("algorithms", "guarded", {"of": OGD, "hold": 0}, "guarded: hold must be above 0, got 0"),
    ("algorithms", "Resolve", {"radius": 0}, "Resolve: radius must be above 0, got 0"),
    (
        "algorithms",
        "Resolve",
        {"capacity": 5},
        "Resolve: radius must be given where samples are stored",
    ),
    *[
        ("algorithms", factory, {"step": 0.1, name: given}, f"{factory}: {name} must be {wanted}")
        for factory in ("FollowResiduals", "fedres_sgd", "central")
        for name, given, wanted in (
            ("participation", parts.exactly(2), r"everyone\(\)"),
            ("codec", parts.half(), r"plain\(\) where samples are sent"),
            ("collect", parts.median(), "left out, or a sum, where the message is the sample"),
        )
    ],
    ("parts", "adagrad", {"scale": 0}, "adagrad: scale must be above 0"),
    ("parts", "adagrad", {"scale": 1, "floor": 0}, "adagrad: floor must be above 0"),
    ("parts", "after_steps", {"steps": [0]}, "after_steps: steps must be an integer of at least 1"),
    ("parts", "after_steps", {"steps": 5}, "after_steps: steps must be several steps, got 5"),
    ("parts", "bernoulli", {"rate": 0}, r"bernoulli: rate must lie in \(0, 1\], got 0"),
    ("parts", "bernoulli", {"rate": "often"}, "bernoulli: rate must lie in"),
    ("parts", "bernoulli", {"rate": [[0.5]]}, "bernoulli: rate must lie in"),
    ("parts", "bernoulli", {"rate": math.nan}, "bernoulli: rate must lie in"),
    ("parts", "box", {"low": 1, "high": 1}, "box: high must be above low = 1"),
    ("parts", "box", {"low": math.nan, "high": 1}, "box: low must be a number, got nan"),
    ("parts", "box", {"low": True, "high": 2}, "box: low must be a number, got True"),
    ("parts", "box", {"low": [0, 2], "high": [1, 1]}, "box: high must be above low = "),
    ("parts", "box", {"low": math.inf, "high": math.inf}, "box: high must be above low = inf"),
    ("parts", "constant", {"size": -0.1}, "constant: size must be above 0"),
    ("parts", "constant", {"size": True}, "constant: size must be a finite number, got True"),
    ("parts", "entropy", {"domain": "simplex"}, "entropy: domain must be a domain such as"),
    ("parts", "euclidean", {"domain": 3}, "euclidean: domain must be a domain such as"),
    ("parts", "every", {"period": 2.5}, "every: period must be an integer of at least 1, got 2.5"),
    (
        "parts",
        "every",
        {"period": 3, "offset": -1},
        "every: offset must be an integer of at least 0",
    ),
    ("parts", "exactly", {"count": 0}, "exactly: count must be an integer of at least 1, got 0"),
    ("parts", "given", {"trace": [1, 0]}, "given: trace must be a table of steps by clients"),
    ("parts", "given", {"trace": [[1], [1, 0]]}, "given: trace must have rows of equal length"),
    ("parts", "inverse_sqrt", {"scale": 0}, "inverse_sqrt: scale must be above 0"),
    ("parts", "inverse_time", {"sigma": 0}, "inverse_time: sigma must be above 0"),
    ("parts", "inverse_time", {"sigma": 1, "shift": -1}, "inverse_time: shift must be at least 0"),
    ("parts", "l1_ball", {"radius": 0}, "l1_ball: radius must be above 0"),
    ("parts", "l2_ball", {"radius": math.inf}, "l2_ball: radius must be a finite number"),
    ("parts", "last_value", {"start": math.nan}, "last_value: start must be a finite number"),
    ("parts", "running_mean", {"start": "0"}, "running_mean: start must be a finite number"),
    ("parts", "network", {"up": -1}, "network: up must be whole numbers of at least 0, got -1"),
    ("parts", "network", {"down": 0.5}, "network: down must be whole numbers"),
    (
        "parts",
        "optimizer",
        {"rule": "adm"},
        'optimizer: rule must name a rule of optax, such as "a',
    ),
    ("parts", "optimizer", {"rule": "adam", "rate": 0.1}, "optimizer: adam refuses its arguments"),
    ("parts", "p_ball", {"p": 3, "radius": 1}, r"p_ball: p must lie in \(1, 2\], got 3"),
    ("parts", "p_ball", {"p": 1.5, "radius": 0}, "p_ball: radius must be above 0"),
    ("parts", "p_norm", {"p": 1}, r"p_norm: p must lie in \(1, 2\], got 1"),
    ("parts", "p_norm", {"p": 1.5, "domain": 3}, "p_norm: domain must be a domain such as"),
    ("parts", "quantiser", {"levels": 0}, "quantiser: levels must be an integer of at least 1"),
    ("parts", "quantiser", {"levels": 2**16}, "quantiser: levels must be .* at most 65535"),
    ("parts", "quantiser", {"levels": 3, "blocks": 0}, "quantiser: blocks must be an integer"),
    ("parts", "schedule", {"function": 3}, "schedule: function must be a function of t, got 3"),
    ("parts", "top_k", {"count": 0}, "top_k: count must be an integer of at least 1, got 0"),
    (
        "algorithms",
        "fedogd",
        {"step": 0.1, "downlink": parts.error_feedback(parts.half())},
        "fedogd: downlink must be without error feedback",
    ),
    ("parts", "error_feedback", {"codec": 2}, "error_feedback: codec must be a codec such as"),
    ("parts", "clipped", {"norm": 0}, "clipped: norm must be above 0, got 0"),
    ("parts", "clipped", {"norm": 1, "of": 3}, "clipped: of must be a collect such as"),
    ("parts", "trimmed_mean", {"share": 0.5}, r"trimmed_mean: share must lie in \[0, 0.5\), got"),
    ("parts", "trimmed_mean", {"share": -0.1}, "trimmed_mean: share must lie in"),
    ("problems", "bandit", {"of": 3, "actions": 2, "period": 2}, "bandit: of must be a problem"),
    ("problems", "bandit", {"of": REGRESSION, "actions": 2}, "bandit: period must be given, or"),
    ("problems", "batched", {"of": 3}, "batched: of must be a problem such as"),
    ("problems", "cnn", {"side": 9}, "cnn: side must be an integer of at least 10, got 9"),
    ("problems", "cnn", {"classes": 1}, "cnn: classes must be an integer of at least 2"),
    ("problems", "custom", {**FUNCTIONS, "init": 3}, "custom: init must be a function, got 3"),
    ("problems", "custom", {**FUNCTIONS, "apply": None}, "custom: apply must be a function"),
    ("problems", "custom", {**FUNCTIONS, "loss": "mse"}, "custom: loss must be a function"),
    ("problems", "custom", {**FUNCTIONS, "classes": 1}, "custom: classes must be an integer"),
    ("problems", "custom", {**FUNCTIONS, "ridge": -1}, "custom: ridge must be at least 0"),
    ("problems", "experts", {"count": 1}, "experts: count must be an integer of at least 2"),
    ("problems", "linear", {"features": 0}, "linear: features must be an integer of at least 1"),
    (
        "problems",
        "linear",
        {"features": 3, "ridge": -1},
        "linear: ridge must be at least 0, got -1",
    ),
    ("problems", "linear", {"features": 3, "domain": "box"}, "linear: domain must be a domain"),
    ("problems", "logistic", {"features": "3"}, "logistic: features must be an integer"),
    ("problems", "logistic", {"features": 3, "ridge": -1}, "logistic: ridge must be at least 0"),
    ("problems", "logistic", {"features": 3, "domain": 1}, "logistic: domain must be a domain"),
    ("problems", "mlp", {"features": 0}, "mlp: features must be an integer of at least 1"),
    ("problems", "mlp", {"features": 3, "classes": 1}, "mlp: classes must be an integer"),
    ("problems", "mlp", {"features": 3, "hidden": (64, 0)}, "mlp: hidden must be an integer"),
    ("problems", "mlp", {"features": 3, "hidden": 64}, "mlp: hidden must be a list of widths"),
    ("problems", "mlp", {"features": 3, "ridge": -1}, "mlp: ridge must be at least 0"),
    ("problems", "personal", {"shared": 0, "own": 2}, "personal: shared must be an integer"),
    ("problems", "personal", {"shared": 2, "own": 2, "loss": "x"}, "personal: loss must be one of"),
    ("problems", "quadratic", {"dimension": 0}, "quadratic: dimension must be an integer"),
    ("problems", "quadratic", {"curvature": 0}, "quadratic: curvature must be above 0"),
    ("problems", "quadratic", {"low": -1}, "quadratic: low and high must be given together"),
    ("problems", "quadratic", {"low": 1, "high": -1}, "quadratic: high must be above low"),
    ("problems", "random_features", {"features": 0}, "random_features: features must be an"),
    ("problems", "random_features", {"features": 3, "count": 0}, "random_features: count must be"),
    ("problems", "random_features", {"features": 3, "bandwidth": 0}, "random_features: bandwidth"),
    ("problems", "random_features", {"features": 3, "ridge": -1}, "random_features: ridge must"),
    ("problems", "random_features", {"features": 3, "seed": -1}, "random_features: seed must be"),
    ("problems", "replay", {"of": REGRESSION, "actions": 1}, "replay: actions must be an integer"),
    ("problems", "softmax", {"features": 0, "classes": 3}, "softmax: features must be an integer"),
    ("problems", "softmax", {"features": 3, "classes": 1}, "softmax: classes must be an integer"),
    ("problems", "softmax", {"features": 3, "classes": 3, "ridge": -1}, "softmax: ridge must be"),
    ("problems", "softmax", {"features": 3, "classes": 3, "domain": 1}, "softmax: domain must be"),
    ("streams", "alternating", {"clients": 0}, "alternating: clients must be an integer"),
    ("streams", "alternating", {"clients": 3, "mean": None}, "alternating: mean must be a finite"),
    ("streams", "alternating", {"clients": 3, "variance": -1}, "alternating: variance must be at"),
    ("streams", "alternating", {"clients": 3, "dimension": 0}, "alternating: dimension must be an"),
    ("streams", "arrays", {"features": X, "target": Y, "clients": 0}, "arrays: clients must be an"),
    ("streams", "arrays", {"features": X, "target": Y, "deal": 3}, "arrays: deal must be a deal"),
    ("streams", "arrays", {"features": X, "target": Y[:3], "clients": 1}, "arrays: 4 rows of feat"),
    ("streams", "by_key", {"ends": "wrap"}, "by_key: ends must be"),
    ("streams", "evenly", {"ends": "wrap"}, "evenly: ends must be"),
    ("streams", "in_time", {"ends": "wrap"}, "in_time: ends must be"),
    ("streams", "by_label", {"alpha": 0}, "by_label: alpha must be above 0, got 0"),
    ("streams", "by_label", {"alpha": 1, "seed": -1}, "by_label: seed must be an integer"),
    ("streams", "csv", {"path": "nowhere", "target": "y"}, "csv: there is no file .*nowhere"),
    ("streams", "dataset", {"source": "nonsense"}, "datasets: there is no 'nonsense'"),
    (
        "streams",
        "arrays",
        {"features": X, "target": Y, "classes": "a"},
        "arrays: classes must be true",
    ),
    (
        "streams",
        "hashed",
        {"rows": [{}], "target": Y, "width": 0},
        "hashed: width must be an integer",
    ),
    ("streams", "hashed", {"rows": 3, "target": Y, "width": 4}, "hashed: wants a data frame"),
    ("streams", "river", {"dataset": 3, "clients": 2}, "river: dataset must be a dataset of River"),
    ("streams", "river", {"dataset": 3, "clients": 0}, "river: clients must be an integer"),
    ("streams", "frame", {"table": 3, "target": "y"}, "frame: wants a data frame of pandas"),
    (
        "streams",
        "digits",
        {"clients": 0},
        "digits: clients must be an integer of at least 1, got 0",
    ),
    ("streams", "digits", {"clients": 5, "deal": "evenly"}, "digits: deal must be a deal such as"),
    ("streams", "generated", {"sample": 3, "clients": 3}, "generated: sample must be a function"),
    ("streams", "generated", {"sample": nothing, "clients": 0}, "generated: clients must be an"),
    (
        "streams",
        "generated",
        {"sample": nothing, "clients": 1, "steps": 0},
        "generated: steps must",
    ),
    (
        "streams",
        "generated",
        {"sample": nothing, "clients": 1, "expected": 0},
        "generated: expected",
    ),
    (
        "streams",
        "generated",
        {"sample": nothing, "clients": 1, "drawn": 0},
        "generated: drawn must be a function of the seed",
    ),
    (
        "streams",
        "linear_bandit",
        {"clients": 3, "actions": 1, "shared": 2, "own": 2},
        "linear_bandit: actions must be an integer of at least 2, got 1",
    ),
    ("streams", "log", {"source": "nonsense"}, "datasets: there is no 'nonsense'"),
    (
        "streams",
        "residuals",
        {"clients": 3, "shared": 0, "own": 2},
        "residuals: shared must be an integer of at least 1, got 0",
    ),
    ("streams", "sometimes", {"stream": STREAM, "rate": 0}, r"sometimes: rate must lie in \(0, 1"),
    ("streams", "in_batches", {"stream": 3, "size": 1}, "in_batches: stream must be a stream"),
    ("streams", "in_batches", {"stream": STREAM, "size": 0}, "in_batches: size must be an integer"),
    ("streams", "sometimes", {"stream": 3, "rate": 1}, "sometimes: stream must be a stream"),
    ("streams", "split", {"stream": 3, "shared": [0], "own": [1]}, "split: stream must be a str"),
    ("streams", "tasks", {"source": "letter", "clients": 0}, "tasks: clients must be an integer"),
    (
        "streams",
        "tasks",
        {"source": "x", "clients": 3, "most": 0},
        "tasks: most must be an integer",
    ),
    ("streams", "tasks", {"source": "nonsense", "clients": 3}, "datasets: there is no 'nonsense'"),
    ("streams", "walking", {"clients": 3, "ridge": 0}, "walking: ridge must be above 0, got 0"),
    (
        "streams",
        "parquet",
        {"path": "nowhere", "target": "y"},
        "parquet: there is no file .*nowhere",
    ),
    *[
        ("streams", factory, {"clients": 3, name: value}, f"{factory}: {name} must be")
        for factory in ("sea_quadratic", "sea_ridge")
        for name, value in {
            "clients": 0,
            "dimension": 0,
            "noise": -1,
            "spatial": -1,
            "temporal": "much",
            "drift": "sideways",
            "distance": -1,
            "seed": -1,
        }.items()
    ],
    ("streams", "sea_quadratic", {"clients": 1, "spatial": 1}, "sea_quadratic: spatial must be 0"),
    (
        "streams",
        "sea_quadratic",
        {"clients": 3, "curvature": 0},
        "sea_quadratic: curvature must be",
    ),
    ("streams", "sea_ridge", {"clients": 3, "ridge": -1}, "sea_ridge: ridge must be at least 0"),
]


@pytest.mark.parametrize(("module", "factory", "arguments", "message"), REFUSED)
def test_a_bad_parameter_is_refused_at_construction_by_name(module, factory, arguments, message):
    with pytest.raises((BadParameter, BadData), match=f"^{message}") as refusal:
        getattr(MODULES[module], factory)(**arguments)
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize("module", MODULES)
def test_every_factory_that_takes_something_is_in_the_table(module):
    takes = {
        name
        for name in MODULES[module].__all__
        if inspect.signature(getattr(MODULES[module], name)).parameters
    }
    assert takes == {factory for home, factory, _, _ in REFUSED if home == module}


@pytest.mark.parametrize(
    ("factory", "name"),
    [
        ("ofediq", "sync"),
        ("ofediq", "codec"),
        ("ofediq", "participation"),
        ("ofedavg", "participation"),
        ("independent", "sync"),
        ("fedsea", "sync"),
        ("fedsea", "mirror"),
        ("fedres_sgd", "sync"),
        ("central", "sync"),
        ("central", "own_step"),
        ("fedomd", "family"),
        ("fedogd", "colour"),
    ],
)
def test_a_part_that_a_paper_has_settled_is_refused_by_name(factory, name):
    needed = {"rate": 0.5} if factory == "ofedavg" else {}
    wanted = rf"^{factory}\(\) got an unexpected keyword argument '{name}'"
    with pytest.raises(TypeError, match=wanted):
        getattr(algorithms, factory)(0.1, **needed, **{name: parts.everyone()})


def test_refusals_are_one_family():
    for kind in (BadParameter, BadData):
        assert issubclass(kind, MainstemError)
        assert issubclass(kind, ValueError)


def test_a_refusal_names_owner_parameter_wish_and_value():
    error = check.refuse("ofediq", "rate", "lie in (0, 1]", 1.5)
    assert str(error) == "ofediq: rate must lie in (0, 1], got 1.5"
    assert isinstance(error, BadParameter)


def test_integers():
    assert check.integer("f", "n", np.int64(3), least=3) == 3
    assert type(check.integer("f", "n", np.uint8(3), least=0)) is int
    for wrong in (2, 5, 3.0, True, "3", None, np.float64(3)):
        with pytest.raises(
            BadParameter, match="f: n must be an integer of at least 3 and at most 4"
        ):
            check.integer("f", "n", wrong, least=3, most=4)


def test_numbers():
    assert check.number("f", "x", np.float32(0.5)) == 0.5
    assert check.number("f", "x", np.array(0.5)) == check.number("f", "x", jnp.float32(0.5)) == 0.5
    assert check.positive("f", "x", 3) == 3.0
    assert check.at_least("f", "x", 0, 0) == 0.0
    for wrong in (math.nan, math.inf, True, "1", None, 1j, np.array(True), np.ones(1)):
        for ask in (check.number, check.positive, lambda *a: check.at_least(*a, 0)):
            with pytest.raises(BadParameter, match="f: x must be a finite number"):
                ask("f", "x", wrong)
    with pytest.raises(BadParameter, match="f: x must be above 0, got 0"):
        check.positive("f", "x", 0)
    with pytest.raises(BadParameter, match="f: x must be at least 2, got 1"):
        check.at_least("f", "x", 1, 2)


def test_rates():
    assert check.rates("f", "p", 1).shape == ()
    np.testing.assert_array_equal(check.rates("f", "p", (0.5, 1)), [0.5, 1])
    for wrong in (0, -0.1, 1.1, [], [[0.5]], [0.5, 0], math.nan, "x", None, [[0.5], [0.5, 0.5]]):
        with pytest.raises(BadParameter, match=r"f: p must lie in \(0, 1\]"):
            check.rates("f", "p", wrong)


def test_words_and_kinds():
    assert check.one_of("f", "w", "b", ("b", "a")) == "b"
    with pytest.raises(BadParameter, match="f: w must be one of a, b, got 'c'"):
        check.one_of("f", "w", "c", ("b", "a"))
    domain = parts.box(0, 1)
    assert check.instance("f", "d", domain, Domain, "box(-1, 1)") is domain
    with pytest.raises(BadParameter, match=r"f: d must be a domain such as box\(-1, 1\), got 3"):
        check.instance("f", "d", 3, Domain, "box(-1, 1)")
