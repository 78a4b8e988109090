"""Experiment files: TOML in, the same things as in Python out, and refusals that help."""

import copy
import tomllib

import numpy as np
import pytest
import tomli_w

import mainstem as ms
from mainstem import experiment, parts, problems, streams
from mainstem.errors import BadSpec, MainstemError
from mainstem.spec import name_of, plain

FILE = """
[problem]
name = "softmax"
features = 64
classes = 10

[stream]
name = "digits"
clients = 20
deal = { name = "by_label", alpha = 0.5 }

[[algorithm]]
name = "ofediq"
step = 0.1
rate = 0.5
levels = 3
blocks = 7

[[algorithm]]
name = "fedomd"
step = { name = "inverse_sqrt", scale = 0.5 }
mirror = { name = "euclidean", domain = { name = "l2_ball", radius = 2.0 } }
sync = { name = "every", period = 5, offset = 1 }
participation = { name = "exactly", count = 4 }
collect = { name = "trimmed_mean", share = 0.2 }
codec = { name = "half" }

[simulate]
steps = 30
seeds = [0, 1]
network = { up = 2, down = [0, 1] }
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "experiment.toml"
    file.write_text(FILE)
    return file


@pytest.fixture
def content():
    return tomllib.loads(FILE)


def test_a_file_builds_what_python_builds(path):
    asked = experiment.read(path)
    deal = streams.by_label(alpha=0.5)
    assert asked.problem == problems.softmax(features=64, classes=10)
    assert asked.stream == streams.digits(clients=20, deal=deal)
    mirror = parts.euclidean(domain=parts.l2_ball(radius=2.0))
    wanted = [
        ms.ofediq(step=0.1, rate=0.5, levels=3, blocks=7),
        ms.fedomd(
            step=parts.inverse_sqrt(scale=0.5),
            mirror=mirror,
            sync=parts.every(period=5, offset=1),
            participation=parts.exactly(count=4),
            collect=parts.trimmed_mean(share=0.2),
            codec=parts.half(),
        ),
    ]
    assert asked.algorithms == wanted
    assert asked.settings["network"] == parts.network(up=2, down=[0, 1])
    assert asked.settings["steps"] == 30
    np.testing.assert_array_equal(
        asked.stream.places(0, 1, 9), streams.digits(clients=20, deal=deal).places(0, 1, 9)
    )


def test_a_file_runs_as_python_runs(path):
    changes = ["simulate.seeds=1", "simulate.network={}", "simulate.steps=4"]
    asked = experiment.read(path, changes)
    theirs = ms.simulate(
        asked.algorithms[0], asked.problem, asked.stream, progress=False, **asked.settings
    )
    ours = ms.simulate(
        ms.ofediq(0.1, rate=0.5, levels=3, blocks=7),
        problems.softmax(64, 10),
        streams.digits(20, deal=streams.by_label(0.5)),
        steps=4,
        progress=False,
    )
    np.testing.assert_array_equal(theirs.loss, ours.loss)


def test_a_single_algorithm_need_not_be_a_list(content):
    content["algorithm"] = content["algorithm"][0]
    assert [name_of(each) for each in experiment.build(content).algorithms] == ["ofediq"]


REFUSED = [
    (lambda c: c.update(problm={}), "unknown table 'problm', did you mean problem?"),
    (lambda c: c.update(simulation={}), "unknown table 'simulation', did you mean simulate?"),
    (
        lambda c: c.update(zzz={}),
        "unknown table 'zzz': one of problem, stream, algorithm, simulate",
    ),
    (lambda c: c["problem"].update(name="sofmax"), "unknown name 'sofmax', did you mean softmax?"),
    (lambda c: c["stream"].update(name="digit"), "unknown name 'digit', did you mean digits?"),
    (lambda c: c["stream"].update(name="by_key"), r"\[stream\]: unknown name 'by_key'"),
    (lambda c: c["algorithm"][0].update(name="ofedik"), "did you mean ofediq?"),
    (lambda c: c["problem"].update(feature=3), "unknown key 'feature', did you mean features?"),
    (
        lambda c: c["algorithm"][0].update(levls=3),
        "ofediq: unknown key 'levls', did you mean levels?",
    ),
    (lambda c: c["algorithm"][1]["sync"].update(name="evry"), "sync: unknown name 'evry'.*every"),
    (
        lambda c: c["algorithm"][1]["sync"].update(perod=1),
        "unknown key 'perod', did you mean period?",
    ),
    (lambda c: c["algorithm"][1]["sync"].pop("name"), "sync: wants a table with a name"),
    (lambda c: c["algorithm"][1]["mirror"]["domain"].update(size=1), "domain l2_ball: unknown key"),
    (lambda c: c["stream"]["deal"].update(alpah=1), "unknown key 'alpah', did you mean alpha?"),
    (
        lambda c: c["simulate"].update(step=3),
        r"\[simulate\]: unknown key 'step', did you mean steps?",
    ),
    (lambda c: c["simulate"]["network"].update(upp=3), "unknown key 'upp', did you mean up?"),
    (lambda c: c["problem"].pop("classes"), "softmax needs classes"),
    (lambda c: c["stream"].pop("clients"), "digits needs clients"),
    (lambda c: c["algorithm"][1].pop("step"), "fedomd needs step"),
    (lambda c: c["algorithm"][1]["step"].pop("scale"), "inverse_sqrt needs scale"),
    (lambda c: c["problem"].pop("name"), r"\[problem\]: wants a table with a name"),
    (lambda c: c.pop("problem"), r"the table \[problem\] is missing"),
    (lambda c: c.pop("stream"), r"the table \[stream\] is missing"),
    (lambda c: c.pop("algorithm"), r"the table \[algorithm\] is missing"),
    (lambda c: c.update(problem="softmax"), r"\[problem\]: wants a table with a name"),
    (lambda c: c.update(algorithm=["ofediq"]), r"\[\[algorithm\]\]: wants a table with a name"),
    (lambda c: c.update(algorithm=[]), r"the table \[\[algorithm\]\] is missing"),
    (lambda c: c.update(simulate=3), r"\[simulate\]: wants a table, got 3"),
    (lambda c: c["simulate"].update(network=3), "network: wants a table, got 3"),
]


@pytest.mark.parametrize(("spoil", "message"), REFUSED)
def test_what_is_wrong_is_refused_with_what_would_be_right(content, spoil, message):
    spoil(content)
    with pytest.raises(BadSpec, match=message) as refusal:
        experiment.build(content, "my.toml")
    assert str(refusal.value).startswith("my.toml")
    assert "\n" not in str(refusal.value)


def test_a_bad_value_is_refused_by_its_factory(content):
    content["algorithm"][0]["rate"] = 1.5
    with pytest.raises(MainstemError, match=r"ofediq: rate must lie in \(0, 1\], got 1.5"):
        experiment.build(content)


def test_files_that_cannot_be_read_are_refused(tmp_path):
    with pytest.raises(BadSpec, match=r"nowhere\.toml: cannot be read: No such file"):
        experiment.read(tmp_path / "nowhere.toml")
    with pytest.raises(BadSpec, match="cannot be read: Is a directory"):
        experiment.read(tmp_path)
    torn = tmp_path / "torn.toml"
    for data in (b"[problem", b"\xff\xfe\x00"):
        torn.write_bytes(data)
        with pytest.raises(BadSpec, match=r"torn\.toml: is not TOML: "):
            experiment.read(torn)


@pytest.mark.parametrize(
    ("change", "path", "value"),
    [
        ("simulate.steps=100", ("simulate", "steps"), 100),
        ("simulate.dtype=float64", ("simulate", "dtype"), "float64"),
        ('simulate.dtype="float64"', ("simulate", "dtype"), "float64"),
        ("algorithm.0.step=0.5", ("algorithm", 0, "step"), 0.5),
        ("algorithm.1.step.scale=2", ("algorithm", 1, "step", "scale"), 2),
        ("algorithm.0.rate=[0.5, 1.0]", ("algorithm", 0, "rate"), [0.5, 1.0]),
        ("algorithm.1.codec={name='top_k', count=3}", ("algorithm", 1, "codec", "count"), 3),
        ("problem.ridge = 0.1", ("problem", "ridge"), 0.1),
        ("new.table.key=true", ("new", "table", "key"), True),
        ("stream.path=a=b", ("stream", "path"), "a=b"),
    ],
)
def test_a_change_is_made_at_its_path_and_nowhere_else(content, change, path, value):
    before = copy.deepcopy(content)
    experiment.apply(content, change)
    *way, last = path
    found = content
    for name in way:
        found = found[name]
    assert found[last] == value
    untouched = {key: part for key, part in content.items() if key != path[0]}
    assert untouched == {key: part for key, part in before.items() if key != path[0]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("simulate.steps", "wants key=value, such as simulate.steps=100"),
        ("algorithm.5.step=1", "there is no such place in the file"),
        ("algorithm.first.step=1", "there is no such place in the file"),
        ("simulate.steps.more=1", "there is no such place in the file"),
        ("problem.name.more.still=1", "there is no such place in the file"),
        ("algorithm.7={}", "there is no such place in the file"),
    ],
)
def test_a_change_that_fits_nowhere_is_refused(content, change, message):
    with pytest.raises(BadSpec, match=f"--set {change}: {message}"):
        experiment.apply(content, change)


def test_changes_come_before_the_refusals(path):
    changed = experiment.read(path, ["algorithm.0.rate=0.25"]).algorithms[0]
    assert changed.participation == parts.bernoulli(0.25)
    with pytest.raises(BadSpec, match="unknown key 'rat'"):
        experiment.read(path, ["algorithm.0.rat=0.25"])


ROUND_TRIPS = {
    "fedogd": ms.fedogd(0.1),
    "ofedavg": ms.ofedavg(parts.inverse_sqrt(0.3), rate=np.array([0.5, 1.0])),
    "ofediq": ms.ofediq(0.1, rate=0.5, period=3, levels=17, blocks=5),
    "ofediq, median": ms.ofediq(0.1, rate=0.5, period=3, levels=17, collect=parts.median()),
    "fedsea": ms.fedsea(parts.inverse_time(2.0, shift=5), 4, offset=1, domain=parts.l1_ball(2)),
    "fedomd": ms.fedomd(
        parts.constant(0.1),
        mirror=parts.p_norm(1.5, parts.p_ball(1.5, 3)),
        sync=parts.after_steps([3, 7]),
        participation=parts.given(np.eye(4, dtype=bool)),
        codec=parts.quantiser(3, blocks=2),
        collect=parts.total(),
    ),
    "fedomd, entropy": ms.fedomd(
        parts.adagrad(0.1, floor=1e-6),
        mirror=parts.entropy(parts.box(0.1, 2)),
        sync=parts.never(),
        participation=parts.everyone(),
        codec=parts.top_k(3),
        collect=parts.trimmed_mean(0.1),
    ),
    "fedomd, bernoulli": ms.fedomd(
        0.1,
        mirror=parts.entropy(parts.simplex()),
        participation=parts.bernoulli(0.4),
        codec=parts.plain(),
    ),
    "fedres_sgd": ms.fedres_sgd(
        parts.inverse_sqrt(0.2),
        own_step=0.1,
        domain=parts.l2_ball(3),
        period=5,
        message="gradient",
        variant="undelayed",
    ),
    "fedres_erm": ms.fedres_erm(radius=2.0, capacity=40, simultaneous=True),
    "fictitious_play": ms.fictitious_play(radius=2.0, capacity=40),
    "central": ms.central(0.1, domain=parts.l2_ball(3), period=2, message="gradient"),
    "independent": ms.independent(0.1, mirror=parts.euclidean(parts.l2_ball(3))),
    "dynamic_fedavg": ms.dynamic_fedavg(
        parts.inverse_sqrt(0.3),
        epochs=np.array([1, 2, 3]),
        batch=[4, 5, 6],
        participation=parts.exactly(2),
        incremental=False,
        normalised=False,
    ),
    "fedogd, server": ms.fedogd(
        0.1,
        sync=parts.every(3),
        codec=parts.half(),
        server=parts.optimizer("adam", learning_rate=0.01, b1=0.8, nesterov=True),
    ),
    "guarded": ms.guarded(ms.fedomd(0.1, codec=parts.half()), factor=3.0, hold=4.0),
    "centred clipping": ms.centred_clipping(ms.fedogd(0.1), momentum=0.8, bucket=2),
    "of no paper": ms.algorithms.FollowResiduals(0.1, variant="undelayed", domain=parts.box(-1, 1)),
    "of no paper, either": ms.algorithms.Resolve(radius=2.0, simultaneous=True, fictitious=True),
}
OTHERS = [
    (
        problems.linear(3, ridge=0.1, intercept=False, domain=parts.l2_ball(2)),
        streams.alternating(4),
    ),
    (problems.mlp(3, classes=4, hidden=(5, 6)), streams.sea_ridge(4, spatial=0.1, drift="slow")),
    (problems.quadratic(2, low=-1, high=1), streams.sea_quadratic(4, dimension=2)),
    (problems.random_features(3, count=9), streams.digits(4, deal=streams.evenly())),
    (
        problems.experts(3),
        streams.arrays(np.eye(3), [0, 1, 2], deal=streams.by_key(), keys=[1, 0, 1]),
    ),
    (problems.cnn(12, 3), streams.digits(4, deal=streams.in_time())),
    (problems.logistic(3), streams.digits(4)),
    (
        problems.personal(
            3, 2, loss="logistic", classes=2, intercept=True, start=[[1] * 4, [2] * 3]
        ),
        streams.residuals(4, shared=3, own=2, noise=0.2, shared_norm=0.5, own_norm=2.0),
    ),
    (
        problems.batched(of=problems.logistic(2, ridge=2.0, intercept=False)),
        streams.walking(3, holds=[5, 6, 7], drift=0.01, spread=0.2, ridge=1.0, start=[1.0, 0.5]),
    ),
    (
        problems.bandit(problems.personal(3, 2), actions=4, period=5),
        streams.linear_bandit(3, actions=4, shared=3, own=2, noise=0.0),
    ),
    (
        problems.replay(problems.personal(3, 2), actions=4, epsilon=0.1),
        streams.sometimes(
            streams.split(streams.digits(2), shared=range(60), own=[[60, 61], [62, 63]]),
            rate=[0.5, 1.0],
        ),
    ),
]


def rebuilt(problem, stream, algorithm):
    """Through TOML and back."""
    tables = {"problem": plain(problem), "stream": plain(stream), "algorithm": [plain(algorithm)]}
    return tables, experiment.build(tomllib.loads(tomli_w.dumps(tables)))


@pytest.mark.parametrize("name", ROUND_TRIPS)
def test_every_algorithm_is_rebuilt_from_its_spec(name):
    tables, again = rebuilt(problems.softmax(4, 3), streams.digits(5), ROUND_TRIPS[name])
    assert plain(again.algorithms[0]) == tables["algorithm"][0]
    assert again.algorithms[0] == ROUND_TRIPS[name]


def test_no_algorithm_is_forgotten():
    made = ROUND_TRIPS.values()
    names = {name_of(each) for each in made} | {type(each).__name__ for each in made}
    assert names == set(ms.algorithms.__all__)


@pytest.mark.parametrize(("problem", "stream"), OTHERS)
def test_problems_and_streams_are_rebuilt_from_their_specs(problem, stream):
    tables, again = rebuilt(problem, stream, ms.fedogd(0.1))
    assert plain(again.problem) == tables["problem"]
    assert plain(again.stream) == tables["stream"]
    assert again.stream.clients == stream.clients
    assert again.problem.parameters == problem.parameters
    assert again.problem == problem
    assert again.stream == stream


def test_a_runs_spec_is_an_experiment():
    run = ms.simulate(
        ms.ofedavg(0.1, rate=0.5),
        problems.softmax(64, 10),
        streams.digits(5),
        steps=3,
        network=parts.network(up=1),
        progress=False,
    )
    again = experiment.build(tomllib.loads(tomli_w.dumps(run.spec)))
    assert again.algorithms[0] == run.algorithm
    assert again.settings["steps"] == 3
    np.testing.assert_array_equal(again.settings["network"].up, np.ones(5))


def own_problem(features, ridge=0.5):
    return ms.problems.linear(features, ridge=ridge)


def unwilling(features, radius):
    raise AssertionError


OWN = {"factory": "tests.test_experiment:own_problem", "features": 2}


def test_a_factory_of_ones_own():
    content = {"problem": OWN, "stream": {"name": "alternating", "clients": 2}}
    found = experiment.build(content, algorithms_needed=False)
    assert found.problem == ms.problems.linear(2, ridge=0.5)


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        ("tests.test_experiment:nobody", "factory 'tests.test_experiment:nobody' cannot be found"),
        ("no_such_module:make", "cannot be found: No module named"),
        ("make", "cannot be found"),
        (
            "tests.test_experiment:unwilling",
            "factory 'tests.test_experiment:unwilling': missing a req",
        ),
        ("builtins:dict", "must return a problem, gave {'features': 2}"),
    ],
)
def test_a_factory_that_makes_none_is_refused(factory, words):
    content = {
        "problem": OWN | {"factory": factory},
        "stream": {"name": "alternating", "clients": 2},
    }
    with pytest.raises(BadSpec, match=words):
        experiment.build(content, algorithms_needed=False)


def test_a_run_document_names_no_factory():
    with pytest.raises(BadSpec, match="wants a table with a name"):
        experiment.pieces(OWN, {"name": "fedogd", "step": 0.1}, "run")
