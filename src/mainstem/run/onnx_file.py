"""ONNX files: the decision of a model as a graph of ONNX operators, translated from JAX's own program of it.

The graph takes rows of features and gives labels and probabilities, or predictions. What is translated is the
jaxpr of the problem's `decide` for any number of rows, so models of the user's own have a graph too, if each of
their operations is known here.
"""

import json
import string
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from mainstem.base import At, Problem
from mainstem.disk import write
from mainstem.errors import BadData, MainstemError

OPSET = 18
CAPITALISED = (
    "abs add and cos div erf exp floor log max min mul neg not or pow sign sin sqrt sub tanh"
)
SAME = {name: name.capitalize() for name in CAPITALISED.split()} | {
    "copy": "Identity",
    "eq": "Equal",
    "ge": "GreaterOrEqual",
    "gt": "Greater",
    "le": "LessOrEqual",
    "logistic": "Sigmoid",
    "lt": "Less",
    "stop_gradient": "Identity",
}  # operations of JAX that are one operator of ONNX
REDUCED = {"reduce_max": "ReduceMax", "reduce_min": "ReduceMin", "reduce_sum": "ReduceSum"}
INNER = ("call_jaxpr", "jaxpr")  # where an operation has a program of its own
EVERYTHING = np.iinfo(np.int64).max  # the end of an axis


def save_onnx(
    path: Path, problem: Problem, params: Any, shape: Sequence[int], about: Mapping[str, Any]
) -> Path:
    """Writes the graph of a model that takes rows of features of this `shape`."""
    try:
        from onnx import TensorProto, checker, helper
    except ImportError:
        raise MainstemError("ONNX files need onnx: pip install 'mainstem[onnx]'") from None
    names = ["prediction"] if problem.classes is None else ["label", "probabilities"]
    graph = Graph()
    outputs = graph.run(_program(problem, params, shape), ["features"])
    for name, output in zip(names, outputs, strict=True):
        graph.nodes.append(helper.make_node("Identity", [output], [name]))
    kinds = {"label": TensorProto.INT64}
    widths = {"probabilities": [problem.classes]}
    made = helper.make_graph(
        graph.nodes,
        "mainstem",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["rows", *shape])],
        [
            helper.make_tensor_value_info(
                name, kinds.get(name, TensorProto.FLOAT), ["rows", *widths.get(name, [])]
            )
            for name in names
        ],
        graph.constants,
    )
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)
    entries = {name: json.dumps(given) for name, given in about.items() if given is not None}
    helper.set_model_props(model, entries)
    checker.check_model(model)
    path.parent.mkdir(parents=True, exist_ok=True)
    return write(path, model.SerializeToString())


def _program(problem: Problem, params: Any, shape: Sequence[int]) -> Any:
    """The jaxpr of the decisions for any number of rows, in float32."""
    single = jax.tree.map(lambda leaf: np.asarray(leaf, np.float32), params)
    (rows,) = export.symbolic_shape("rows")

    def decided(features: Any) -> Any:
        at = At(1, 0, jnp.zeros(2, jnp.uint32))
        scores = jax.vmap(lambda x: problem.decide(single, x, at))(features)
        if problem.classes is None:
            return [scores.reshape(rows)]
        if scores.ndim == 1:  # of the second of two labels
            scores = jnp.stack([jnp.zeros_like(scores), scores], axis=1)
        shares = jnp.exp(scores - scores.max(axis=1, keepdims=True))
        return [jnp.argmax(scores, axis=1), shares / shares.sum(axis=1, keepdims=True)]

    return jax.make_jaxpr(decided)(jax.ShapeDtypeStruct((rows, *shape), jnp.float32))


class Graph:
    """Nodes and constants of an ONNX graph, by names."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._names = 0
        self._rows = ""

    def run(self, program: Any, inputs: Sequence[str]) -> list[str]:
        """The names of the outputs of a closed jaxpr, given those of its inputs."""
        jaxpr = program.jaxpr
        known = dict(zip(jaxpr.invars, inputs, strict=True))
        known |= {
            var: self.constant(value)
            for var, value in zip(jaxpr.constvars, program.consts, strict=True)
        }

        def name(var: Any) -> str:
            return self.constant(var.val) if hasattr(var, "val") else known[var]

        for step in jaxpr.eqns:
            found = self._translated(step, [name(var) for var in step.invars])
            known |= dict(zip(step.outvars, found, strict=True))
        return [name(var) for var in jaxpr.outvars]

    def constant(self, value: Any) -> str:
        """The name of a new constant."""
        from onnx import numpy_helper

        array = np.asarray(value)
        array = array.astype(np.float32) if array.dtype == np.float64 else array
        self.constants.append(numpy_helper.from_array(np.asarray(array, order="C"), self._name()))
        return str(self.constants[-1].name)

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """The name of the output of a new node."""
        from onnx import helper

        output = self._name()
        self.nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    def _name(self) -> str:
        self._names += 1
        return f"v{self._names}"

    def _translated(self, step: Any, inputs: list[str]) -> list[str]:
        name = step.primitive.name
        if name in SAME:
            return [self.node(SAME[name], *inputs)]
        inner = next((step.params[key] for key in INNER if key in step.params), None)
        if inner is not None:
            return self.run(inner, inputs)
        if name == "platform_index":
            return [""]
        if name == "cond" and "branches_platforms" in step.params:  # one program for each device
            place = step.params["branches_platforms"].index(None)
            return self.run(step.params["branches"][place], inputs[1:])
        translate = OTHERS.get(name)
        if translate is None:
            raise BadData(
                f"onnx: the model uses the operation {name} of JAX, which is not translated: "
                "export it as .safetensors"
            )
        return [translate(self, step, inputs)]

    def sizes(self, shape: Sequence[Any]) -> str:
        """A shape as a constant, or one with the number of rows in it."""
        if all(isinstance(each, int) for each in shape):
            return self.constant(np.array(shape, np.int64))
        if not self._rows:
            self._rows = self.node("Shape", "features", start=0, end=1)
        parts = [
            self.constant(np.array([each], np.int64)) if isinstance(each, int) else self._rows
            for each in shape
        ]
        return self.node("Concat", *parts, axis=0)

    def axes(self, kind: str, given: str, axes: Sequence[int], **attributes: Any) -> str:
        """A node that has its axes as a second input."""
        return self.node(kind, given, self.constant(np.array(axes, np.int64)), **attributes)


def _broadcast(graph: Graph, step: Any, inputs: list[str]) -> str:
    shape, kept = step.params["shape"], step.params["broadcast_dimensions"]
    found, before = inputs[0], step.invars[0].aval.shape
    added = [axis for axis in range(len(shape)) if axis not in kept]
    if added:
        found = graph.axes("Unsqueeze", found, added)
    now = [1] * len(shape)
    for axis, size in zip(kept, before, strict=True):
        now[axis] = size
    return found if tuple(now) == tuple(shape) else graph.node("Expand", found, graph.sizes(shape))


def _cast(graph: Graph, step: Any, inputs: list[str]) -> str:
    from onnx import helper

    kind = np.dtype(step.params["new_dtype"])
    kind = np.dtype(np.float32) if kind == np.float64 else kind
    return graph.node("Cast", inputs[0], to=helper.np_dtype_to_tensor_dtype(kind))


def _reshape(graph: Graph, step: Any, inputs: list[str]) -> str:
    sizes = [each if isinstance(each, int) else -1 for each in step.params["new_sizes"]]
    return graph.node("Reshape", inputs[0], graph.constant(np.array(sizes, np.int64)))


def _slice(graph: Graph, step: Any, inputs: list[str]) -> str:
    begins, ends = step.params["start_indices"], step.params["limit_indices"]
    strides = step.params["strides"] or (1,) * len(begins)
    ends = [each if isinstance(each, int) else EVERYTHING for each in ends]
    given = [np.array(each, np.int64) for each in (begins, ends, range(len(begins)), strides)]
    return graph.node("Slice", inputs[0], *map(graph.constant, given))


def _dot(graph: Graph, step: Any, inputs: list[str]) -> str:
    (left, right), (left_batch, right_batch) = step.params["dimension_numbers"]
    ranks = [len(var.aval.shape) for var in step.invars]
    if [*left] == [ranks[0] - 1] and [*right] == [0] and not left_batch and ranks[1] <= 2:
        return graph.node("MatMul", *inputs)
    letters = iter(string.ascii_lowercase)
    first = [next(letters) for _ in range(ranks[0])]
    second = [next(letters) for _ in range(ranks[1])]
    for mine, other in zip((*left, *left_batch), (*right, *right_batch), strict=True):
        second[other] = first[mine]
    batch = [first[axis] for axis in left_batch]
    free = [each for axis, each in enumerate(first) if axis not in (*left, *left_batch)]
    free += [each for axis, each in enumerate(second) if axis not in (*right, *right_batch)]
    equation = f"{''.join(first)},{''.join(second)}->{''.join([*batch, *free])}"
    return graph.node("Einsum", *inputs, equation=equation)


def _convolve(graph: Graph, step: Any, inputs: list[str]) -> str:
    asked = step.params
    spec = asked["dimension_numbers"]
    if set(asked["lhs_dilation"]) != {1} or asked["batch_group_count"] != 1:
        raise BadData("onnx: the model uses a transposed convolution, which is not translated")
    x, kernel = (
        graph.node("Transpose", name, perm=list(perm))
        for name, perm in zip(inputs, (spec.lhs_spec, spec.rhs_spec), strict=True)
    )
    before, after = zip(*asked["padding"], strict=True)
    found = graph.node(
        "Conv",
        x,
        kernel,
        strides=list(asked["window_strides"]),
        pads=[*before, *after],
        dilations=list(asked["rhs_dilation"]),
        group=asked["feature_group_count"],
    )
    return graph.node("Transpose", found, perm=np.argsort(spec.out_spec).tolist())


def _argmax(graph: Graph, step: Any, inputs: list[str]) -> str:
    (axis,) = step.params["axes"]
    return graph.node("ArgMax", inputs[0], axis=axis, keepdims=0)


def _stack(graph: Graph, step: Any, inputs: list[str]) -> str:
    axis = step.params["axis"]
    return graph.node("Concat", *(graph.axes("Unsqueeze", x, [axis]) for x in inputs), axis=axis)


def _reduce(graph: Graph, step: Any, inputs: list[str]) -> str:
    kind = REDUCED[step.primitive.name]
    return graph.axes(kind, inputs[0], step.params["axes"], keepdims=0)


def _power(graph: Graph, step: Any, inputs: list[str]) -> str:
    return graph.node("Pow", inputs[0], graph.constant(np.float32(step.params["y"])))


Translation = Callable[[Graph, Any, list[str]], str]
OTHERS: dict[str, Translation] = {
    "argmax": _argmax,
    "broadcast_in_dim": _broadcast,
    "concatenate": lambda g, step, names: g.node("Concat", *names, axis=step.params["dimension"]),
    "conv_general_dilated": _convolve,
    "convert_element_type": _cast,
    "dot_general": _dot,
    "integer_pow": _power,
    "reshape": _reshape,
    "rsqrt": lambda g, step, names: g.node("Reciprocal", g.node("Sqrt", names[0])),
    "select_n": lambda g, step, names: g.node("Where", names[0], names[2], names[1]),
    "slice": _slice,
    "square": lambda g, step, names: g.node("Mul", names[0], names[0]),
    "squeeze": lambda g, step, names: g.axes("Squeeze", names[0], step.params["dimensions"]),
    "stack": _stack,
    "transpose": lambda g, step, names: g.node(
        "Transpose", names[0], perm=list(step.params["permutation"])
    ),
    **dict.fromkeys(REDUCED, _reduce),
}
