"""Models as files: they predict as the run's own model does, and a bad file is refused in one line."""

import contextlib
import json
import struct
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
import safetensors
import safetensors.numpy
import scipy.sparse

import mainstem as ms
from mainstem.base import At
from mainstem.errors import BadData, BadParameter

STEPS = 20
DRAW = np.random.default_rng(0)
ROWS = DRAW.normal(size=(60, 4))
IMAGES = DRAW.uniform(size=(40, 10, 10))
TWO, THREE = (ROWS[:, 0] > 0).astype(int), DRAW.integers(0, 3, 60)
NUMBERS = ROWS @ [1.0, -2.0, 0.5, 0.0]


def squared(score, target):
    return (score - target) ** 2


def affine(params, x):
    return params["w"] @ x + params["b"]


OWN = ms.problems.custom(
    lambda key: {"w": jnp.zeros(4), "b": jnp.zeros(())}, affine, squared, convex=True
)
CASES = {
    "logistic": (ms.problems.logistic(4), ROWS, TWO),
    "softmax": (ms.problems.softmax(4, 3), ROWS, THREE),
    "linear": (ms.problems.linear(4), ROWS, NUMBERS),
    "mlp": (ms.problems.mlp(4, 3, [5]), ROWS, THREE),
    "cnn": (ms.problems.cnn(side=10), IMAGES, DRAW.integers(0, 10, 40)),
    "random_features": (ms.problems.random_features(4, 16), ROWS, NUMBERS),
    "custom": (OWN, ROWS, NUMBERS),
}


def trained(name: str, **settings: object) -> ms.Run:
    problem, rows, target = CASES[name]
    return ms.simulate(
        ms.fedogd(0.05),
        problem,
        ms.streams.arrays(rows, target, clients=2),
        steps=STEPS,
        **settings,
    )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_predicts_as_the_run_does(name: str, dtype: str, tmp_path: Path) -> None:
    problem, rows, _ = CASES[name]
    run = trained(name, dtype=dtype)
    path = run.export(tmp_path / "model.safetensors")
    model = ms.load_model(path, problem=problem if name == "custom" else None)
    with jax.enable_x64(dtype == "float64"):
        shown = rows.astype(dtype)
        at = At(1, 0, jnp.zeros(2, jnp.uint32))
        scores = np.stack([problem.decide(run.model, x, at) for x in shown])
    if problem.classes is None:
        np.testing.assert_allclose(model.predict(rows), np.squeeze(scores), rtol=1e-5, atol=1e-6)
        with pytest.raises(BadData, match="of labels"):
            model.predict_proba(rows)
        return
    both = np.stack([np.zeros(len(scores)), scores], axis=1) if scores.ndim == 1 else scores
    np.testing.assert_array_equal(model.predict(rows), both.argmax(axis=1))
    np.testing.assert_allclose(model.predict_proba(rows), jax.nn.softmax(both), atol=1e-5)
    assert model.labels == tuple(range(problem.classes))


def test_names_of_features_and_labels_survive(tmp_path: Path) -> None:
    frame = pd.DataFrame({"heat": ROWS[:, 0], "wind": ROWS[:, 1], "site": ["a", "b"] * 30})
    frame["state"] = np.where(ROWS[:, 0] > 0, "fault", "fine")
    frame.to_csv(tmp_path / "sites.csv", index=False)
    asked = {"features": ["heat", "wind"], "classes": ["fine", "fault"]}
    stream = ms.streams.csv(tmp_path / "sites.csv", "state", "site", **asked)
    run = ms.simulate(ms.fedogd(1.0), ms.problems.logistic(2), stream, steps=30)
    model = ms.load_model(run.export(tmp_path / "model.safetensors"))
    in_memory = ms.streams.frame(frame, "state", "site", **asked)
    again = ms.simulate(ms.fedogd(1.0), ms.problems.logistic(2), in_memory, steps=30)
    named = ms.load_model(again.export(tmp_path / "named", features=["heat", "wind"]))
    np.testing.assert_array_equal(named.predict(frame), model.predict(frame))
    assert model.labels == ("fine", "fault")
    assert set(model.predict(frame[["wind", "heat", "site"]])) == {"fine", "fault"}
    assert model.predict_one({"wind": 0.0, "heat": 3.0}) == "fault"
    assert list(model.predict_proba_one({"wind": 0.0, "heat": 3.0})) == ["fine", "fault"]
    with pytest.raises(BadData, match="missing: wind"):
        model.predict_one({"heat": 3.0})
    with pytest.raises(BadData, match="there is no column 'wind', only heat, site"):
        model.predict(frame[["heat", "site"]])


def test_parts_of_dates_are_taken_from_the_column_of_dates(tmp_path: Path) -> None:
    times = pd.date_range("2024-01-31 22:30", periods=60, freq="7h")
    frame = pd.DataFrame({"time": times, "heat": ROWS[:, 0], "site": "a"})
    frame["load"] = times.hour + times.day_of_year / 100 + frame["heat"]
    parts = ["time.hour", "time.yearday", "heat"]
    stream = ms.streams.frame(frame, "load", "site", features=parts)
    run = ms.simulate(ms.fedogd(1e-5), ms.problems.linear(3), stream, steps=60)
    model = ms.load_model(run.export(tmp_path / "named", features=parts))
    wanted = model.predict(np.stack([times.hour, times.day_of_year, frame["heat"]], axis=1))
    np.testing.assert_array_equal(model.predict(frame), wanted)
    np.testing.assert_array_equal(model.predict(frame.assign(time=times.astype(str))), wanted)
    for wrong in (
        times.astype("int64"),
        "noon",
    ):  # seconds since 1970 have a unit that nobody knows
        with pytest.raises(BadData, match="column 'time' has no dates"):
            model.predict(frame.assign(time=wrong))


def test_another_program_reads_it(tmp_path: Path) -> None:
    path = trained("softmax").export(tmp_path / "model.safetensors")
    with safetensors.safe_open(path, "np") as file:
        about = file.metadata()
        assert {name: file.get_tensor(name).shape for name in file.keys()} == {  # noqa: SIM118
            "bias": (3,),
            "weights": (4, 3),
        }
    assert json.loads(about["problem"]) == {"name": "softmax", "features": 4, "classes": 3}
    assert json.loads(about["algorithm"]) == {"name": "fedogd", "step": 0.05}
    assert json.loads(about["steps"]) == STEPS


def test_several_seeds_and_own_parts_must_be_named(tmp_path: Path) -> None:
    run = trained("linear", seeds=2)
    with pytest.raises(BadParameter, match="seed must be one of 0, 1"):
        run.export(tmp_path / "model")
    for seed in (0, 1):
        model = ms.load_model(run.export(tmp_path / f"{seed}", seed=seed))
        np.testing.assert_array_equal(
            np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(model.params)]),
            run.models["server"][seed],
        )
    alone = ms.simulate(
        ms.independent(0.1), CASES["linear"][0], ms.streams.arrays(ROWS, NUMBERS, 2), steps=STEPS
    )
    first, second = (ms.load_model(alone.export(tmp_path / f"client{k}", client=k)) for k in (0, 1))
    assert not np.allclose(first.predict(ROWS), second.predict(ROWS))
    with pytest.raises(BadParameter, match="client must lie in 0 to 1"):
        alone.export(tmp_path / "no", client=2)


def written(path: Path, about: dict[str, object], **arrays: np.ndarray) -> Path:
    """A model file of `softmax(2, 3)`, with other entries and arrays."""
    table = {"name": "softmax", "features": 2, "classes": 3}
    entries = {"format": 1, "problem": table, **about}
    both = {"weights": np.zeros((2, 3)), "bias": np.zeros(3)} if "model" not in arrays else {}
    known = {name: json.dumps(given) for name, given in entries.items()}
    path.write_bytes(safetensors.numpy.save({**both, **arrays}, known))
    return path


NAN = np.array([0.0, np.nan, 1.0])
COUNTED = {"preprocessing.count": np.ones(2)}
SCALE = {"scale": {"name": "standardised"}}
SEEN = {f"preprocessing.{name}": np.ones((2, 2)) for name in ("mean", "deviation")} | COUNTED
DAMAGED = {
    "integers": ({}, {"bias": np.zeros(3, np.int32)}, "bias has numbers of int32"),
    "truth values": ({}, {"weights": np.zeros((2, 3), bool)}, "weights has numbers of bool"),
    "NaN": ({}, {"bias": NAN}, "bias is not finite"),
    "infinity": ({}, {"bias": 1 / np.array([1.0, 2.0, np.inf]) - np.inf}, "bias is not finite"),
    "shape": ({}, {"bias": np.zeros(4)}, r"bias has the shape \(4,\), the model's has \(3,\)"),
    "more arrays": (
        {},
        {"other": np.zeros(4)},
        r"it has the arrays \['bias', 'other', 'weights'\]",
    ),
    "labels: 5": ({"labels": 5}, {}, "labels must be 3 different words or numbers, got 5"),
    "labels: text": ({"labels": "abc"}, {}, "labels must be 3 different"),
    "few labels": ({"labels": ["a", "b"]}, {}, "labels must be 3 different"),
    "many labels": ({"labels": list("abcd")}, {}, "labels must be 3 different"),
    "equal labels": ({"labels": ["a", "b", "a"]}, {}, "labels must be 3 different"),
    "lists as labels": ({"labels": [[1], [2], [3]]}, {}, "labels must be 3 different"),
    "features: 5": ({"features": 5}, {}, "features must be names, got 5"),
    "a feature's name": ({"features": ["a", 2]}, {}, "features must be names"),
    "few features": ({"features": ["a"]}, {}, "it names 1 features, and softmax"),
    "equal features": ({"features": ["a", "a"]}, {}, "features must be different"),
    "huge problem": (
        {"problem": {"name": "softmax", "features": 10**12, "classes": 3}},
        {},
        r"weights has the shape \(2, 3\), the model's has \(1000000000000, 3\)",
    ),
    "huge network": (
        {"problem": {"name": "mlp", "features": 10**12, "classes": 3, "hidden": [10**12]}},
        {},
        r"the model has \['0.bias', '0.weights', '1.bias', '1.weights'\]",
    ),
    "a list as problem": ({"problem": [1]}, {}, "wants a table with a name"),
    "no problem": ({"problem": None}, {}, "wants a table with a name"),
    "wrong arguments": (
        {"problem": {"name": "softmax", "features": "x", "classes": 3}},
        {},
        "features must be",
    ),
    "a problem of code": (
        {"problem": {"name": "custom", "init": "a", "apply": "b", "loss": "c"}},
        {},
        r"load_model\(path, problem=",
    ),
    "a number": (
        {"problem": {"name": "linear", "features": 2}, "labels": [1, 2]},
        {"model": np.zeros(3)},
        "it has labels, but linear.* predicts a number",
    ),
    "preprocessing: 5": ({"preprocessing": 5}, {}, "preprocessing must be tables of missing and"),
    "another part": ({"preprocessing": {"codec": {}}}, {}, "preprocessing must be tables"),
    "a codec": ({"preprocessing": {"scale": {"name": "half"}}}, {}, "must fill or scale features"),
    "arrays of nobody": ({}, SEEN, "names no preprocessing"),
    "no deviations": (
        {"preprocessing": SCALE, "clients": ["a", "b"]},
        {k: v for k, v in SEEN.items() if not k.endswith("deviation")},
        "must be .'count', 'deviation', 'mean'., with a row for each client",
    ),
    "another count": (
        {"preprocessing": SCALE, "clients": ["a", "b"]},
        {**SEEN, "preprocessing.count": np.ones(3)},
        "with a row for each client",
    ),
    "NaN means": (
        {"preprocessing": SCALE, "clients": ["a", "b"]},
        {**SEEN, "preprocessing.mean": np.full((2, 2), np.nan)},
        "preprocessing.mean must be finite",
    ),
    "negative count": (
        {"preprocessing": SCALE, "clients": ["a", "b"]},
        {**SEEN, "preprocessing.count": -np.ones(2)},
        "preprocessing.count must be at least 0",
    ),
    "wide means": (
        {"preprocessing": SCALE, "clients": ["a", "b"], "features": ["u", "v"]},
        {**COUNTED, **{k: np.ones((2, 9)) for k in SEEN if k not in COUNTED}},
        r"preprocessing.\* has 9 features, and softmax.*the shape \(2,\)",
    ),
    "one client": ({"preprocessing": SCALE, "clients": ["a"]}, SEEN, "clients must be 2 different"),
    "clients: 5": ({"preprocessing": SCALE, "clients": 5}, SEEN, "clients must be 2 different"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_content_is_refused_in_one_line(name: str, tmp_path: Path) -> None:
    about, arrays, why = DAMAGED[name]
    path = written(tmp_path / "model.safetensors", about, **arrays)
    with pytest.raises(BadData, match=why) as refused:
        ms.load_model(path)
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 400 + len(str(path))
    assert str(refused.value).count(str(path)) == 1


def test_an_error_without_text_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path / "model.safetensors", {})
    assert ms.load_model(path).predict([[1.0, 2.0]]).tolist() == [0]

    def no_text(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(safetensors, "safe_open", no_text)
    with pytest.raises(BadData, match="is not a model: MemoryError"):
        ms.load_model(path)


def test_labels_that_are_not_one_for_each_class_are_not_exported(tmp_path: Path) -> None:
    stream = ms.streams.arrays(ROWS, np.where(TWO, "on", "off"), clients=2)
    run = ms.simulate(ms.fedogd(0.1), ms.problems.softmax(4, 3), stream, steps=5)
    with pytest.raises(BadData, match="2 labels and the problem 3 classes"):
        run.export(tmp_path / "model.safetensors")


def test_no_row_of_the_data_is_in_the_file(tmp_path: Path) -> None:
    stream = ms.streams.arrays(ROWS[:12], NUMBERS[:12], keys=np.arange(12) % 2)
    run = ms.simulate(ms.fedogd(0.1), ms.problems.linear(4), stream, steps=3)
    for kind in ("safetensors", "onnx"):
        data = run.export(tmp_path / f"model.{kind}").read_bytes()
        for number in (*ROWS[:12].ravel(), *NUMBERS[:12]):
            assert repr(float(number)).encode() not in data
    about = ms.load_model(tmp_path / "model.safetensors").about
    assert about["stream"]["name"] == "arrays"
    assert about["stream"]["features"].startswith("array ")


def test_no_row_of_sparse_data_is_in_the_file(tmp_path: Path) -> None:
    matrix = scipy.sparse.csr_matrix([[0.12345678, 0.0], [0.0, 0.87654321]])
    stream = ms.streams.arrays(matrix, np.array([0, 1]), clients=1)
    run = ms.simulate(ms.fedogd(0.1), ms.problems.logistic(features=2), stream, steps=1)
    path = run.export(tmp_path / "model.safetensors")
    assert b"0.1234" not in path.read_bytes()
    features = ms.load_model(path).about["stream"]["features"]
    assert features["name"] == "sparse_rows"
    assert features["columns"].startswith("array int")
    assert features["numbers"].startswith("array float")


def test_a_bad_file_is_refused_in_one_line(tmp_path: Path) -> None:
    path = trained("softmax").export(tmp_path / "model.safetensors")
    good = path.read_bytes()
    bad = {
        "empty": b"",
        "cut": good[: len(good) // 2],
        "huge head": struct.pack("<Q", 2**60) + good[8:],
        "no JSON": good[:8] + b"x" * (len(good) - 8),
        "others": safetensors.numpy.save({"weights": np.zeros(3)}, {"problem": "{}"}),
        "no metadata": safetensors.numpy.save({"weights": np.zeros(3)}),
    }
    for name, data in bad.items():
        path.write_bytes(data)
        with pytest.raises(BadData) as refused:
            ms.load_model(path)
        assert "\n" not in str(refused.value), name
        assert str(path) in str(refused.value), name
    with pytest.raises(BadData, match="there is no such file"):
        ms.load_model(tmp_path / "none")


def test_any_flipped_byte_of_the_head_is_refused_or_read_as_it_is(tmp_path: Path) -> None:
    path = trained("logistic").export(tmp_path / "model.safetensors")
    good = path.read_bytes()
    head = 8 + int.from_bytes(good[:8], "little")
    for place in range(0, head, 7):
        data = bytearray(good)
        data[place] ^= 0x20
        path.write_bytes(data)
        with contextlib.suppress(BadData):
            assert ms.load_model(path).predict(ROWS).shape == (60,)


def test_what_predicts_nothing_is_refused(tmp_path: Path) -> None:
    stream = ms.streams.sea_quadratic(2, dimension=3)
    run = ms.simulate(ms.fedogd(0.1), ms.problems.quadratic(3), stream, steps=5)
    with pytest.raises(BadData, match="predicts neither"):
        ms.load_model(run.export(tmp_path / "model"))


def test_bad_rows_are_refused(tmp_path: Path) -> None:
    model = ms.load_model(trained("logistic").export(tmp_path / "model"))
    for rows, why in (([], "at least one"), (np.ones((2, 3)), "shape"), ([[np.nan] * 4], "finite")):
        with pytest.raises(BadData, match=why):
            model.predict(rows)


def test_a_run_without_uploads_has_no_model_of_all(tmp_path):
    """The server's model would be the first one: a client's is asked for, by its number or its name."""
    x = np.arange(8.0, dtype=np.float32).reshape(4, 2)
    stream = ms.streams.arrays(x, x.sum(axis=1), keys=["oslo", "rome", "oslo", "rome"])
    run = ms.simulate(ms.independent(0.01), ms.problems.linear(2), stream, steps=2)
    with pytest.raises(ms.MainstemError, match=r"no client has uploaded, .* name a client"):
        run.export(tmp_path / "all.safetensors")
    with pytest.raises(ms.MainstemError, match=r"client must be one of \['oslo', 'rome'\]"):
        run.export(tmp_path / "none.safetensors", client="paris")
    named = ms.load_model(run.export(tmp_path / "rome.safetensors", client="rome"))
    numbered = ms.load_model(run.export(tmp_path / "1.safetensors", client=1))
    assert named.predict(x).tolist() == numbered.predict(x).tolist() != [0.0] * 4
