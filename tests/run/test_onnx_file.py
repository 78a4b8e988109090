"""Models as ONNX graphs: onnxruntime computes what the run's own model does, for any number of rows."""

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import onnx
import onnxruntime
import pytest

import mainstem as ms
from mainstem.errors import BadData
from tests.run.test_model_file import CASES, DRAW, ROWS, trained


def outputs(path: Path, rows: np.ndarray) -> dict[str, np.ndarray]:
    """What onnxruntime computes."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    found = session.run(names, {"features": rows.astype(np.float32)})
    return dict(zip(names, found, strict=True))


@pytest.mark.parametrize("name", CASES)
def test_onnxruntime_agrees(name: str, tmp_path: Path) -> None:
    problem, rows, _ = CASES[name]
    run = trained(name)
    path = run.export(tmp_path / "model.onnx")
    model = ms.load_model(
        run.export(tmp_path / "model.safetensors"), problem=problem if name == "custom" else None
    )
    for count in (1, 7, len(rows)):
        found = outputs(path, rows[:count])
        if problem.classes is None:
            np.testing.assert_allclose(
                found["prediction"], model.predict(rows[:count]), rtol=1e-5, atol=1e-5
            )
            continue
        expected = model.predict_proba(rows[:count])
        np.testing.assert_allclose(found["probabilities"], expected, atol=1e-5)
        np.testing.assert_array_equal(found["label"], model.predict(rows[:count]))


def exported(
    apply, tmp_path: Path, classes: int | None = 3, **named: np.ndarray
) -> tuple[Path, ms.Run]:
    """The graph and the run of a network of the user's own."""
    leaves = {name: jnp.asarray(each, jnp.float32) for name, each in named.items()}
    problem = ms.problems.custom(
        lambda key: leaves, apply, lambda score, target: jnp.sum(score**2), classes=classes
    )
    target = DRAW.integers(0, 3, 60) if classes else ROWS[:, 0]
    stream = ms.streams.arrays(ROWS, target, clients=2)
    run = ms.simulate(ms.fedogd(0.001), problem, stream, steps=3)
    return run.export(tmp_path / "own.onnx"), run


def _attention(params, x):
    keys = x[:, None] * params["k"]
    weights = jax.nn.softmax(keys @ params["q"].T, axis=-1)
    return jnp.einsum("ij,jk->k", weights, keys) @ params["out"]


def _normed(params, x):
    centred = x - x.mean()
    scaled = centred * jax.lax.rsqrt(jnp.mean(centred**2) + 1e-5)
    return jnp.where(scaled > 0, jnp.tanh(scaled), jax.nn.gelu(scaled)) @ params["out"]


def _convolved(params, x):
    image = x.reshape(1, 2, 2, 1)
    found = jax.lax.conv_general_dilated(
        image, params["k"], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
    )
    return jax.nn.sigmoid(found).reshape(-1) @ params["out"]


OWN = {
    "attention": (_attention, {"k": (4, 5), "q": (4, 5), "out": (5, 3)}),
    "normed": (_normed, {"out": (4, 3)}),
    "convolved": (_convolved, {"k": (2, 2, 1, 3), "out": (12, 3)}),
}


@pytest.mark.parametrize("name", OWN)
def test_a_network_of_ones_own_has_a_graph(name: str, tmp_path: Path) -> None:
    apply, shapes = OWN[name]
    path, run = exported(apply, tmp_path, **{n: DRAW.normal(size=s) for n, s in shapes.items()})
    expected = jax.nn.softmax(jax.vmap(lambda x: apply(run.model, x))(ROWS.astype(np.float32)))
    np.testing.assert_allclose(outputs(path, ROWS)["probabilities"], expected, atol=1e-5)


def test_the_file_says_where_it_comes_from(tmp_path: Path) -> None:
    model = onnx.load(trained("softmax").export(tmp_path / "model.onnx"))
    about = {each.key: json.loads(each.value) for each in model.metadata_props}
    assert about["problem"] == {"name": "softmax", "features": 4, "classes": 3}
    assert about["algorithm"] == {"name": "fedogd", "step": 0.05}


def test_an_operation_without_a_translation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"operation sort of JAX.*export it as .safetensors"):
        exported(lambda params, x: jnp.sort(x) @ params["out"], tmp_path, out=np.ones((4, 3)))
    assert not (tmp_path / "own.onnx").exists()
