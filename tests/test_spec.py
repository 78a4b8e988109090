"""Values as calls, and as tables in what TOML knows."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
import tomli_w

import mainstem as ms
from mainstem import algorithms, code_fingerprint, parts, problems, streams
from mainstem.spec import name_of, plain, table
from mainstem.value import Value, static, value


def test_a_value_knows_its_call():
    made = parts.quantiser(3, blocks=5)
    assert name_of(made) == "quantiser"
    assert made.call() == ("quantiser", {"levels": 3, "blocks": 5})
    assert repr(made) == "quantiser(levels=3, blocks=5)"


def test_what_has_its_default_is_not_written():
    assert plain(ms.fedogd(step=0.1)) == {"name": "fedogd", "step": 0.1}
    assert plain(parts.everyone()) == {"name": "everyone"}


def test_parts_inside_become_tables():
    algorithm = ms.fedomd(
        parts.inverse_time(2.0, shift=3),
        mirror=parts.euclidean(parts.box(-3, 3)),
        sync=parts.after_steps(range(2, 9, 3)),
    )
    assert plain(algorithm) == {
        "name": "fedomd",
        "step": {"name": "inverse_time", "sigma": 2.0, "shift": 3},
        "mirror": {"name": "euclidean", "domain": {"name": "box", "low": -3, "high": 3}},
        "sync": {"name": "after_steps", "steps": [2, 5, 8]},
    }


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, "none"),
        (True, True),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        ((1, (2.5, "a")), [1, [2.5, "a"]]),
        ({"a": np.array([1, 2]), 3: None}, {"a": [1, 2], "3": "none"}),
        (jnp.arange(3), [0, 1, 2]),
        (np.eye(2), [[1.0, 0.0], [0.0, 1.0]]),
        (np.mean, "numpy:mean"),
        (Path("a/b"), "a/b"),
        (range(3), [0, 1, 2]),
    ],
)
def test_plain(value, expected):
    assert plain(value) == expected


def test_a_large_array_is_its_fingerprint():
    large = np.arange(5000.0)
    assert plain(large) == plain(large.copy())
    assert plain(large) != plain(large + 1)
    assert plain(large).startswith("array float64 (5000,) sha256 ")
    assert plain(large[:4096]) == large[:4096].tolist()


def test_every_spec_is_toml():
    values = [
        ms.ofediq(0.1, rate=np.array([0.5, 1.0]), levels=3, blocks=2, collect=parts.median()),
        problems.custom(lambda key: 0, lambda w, x: 0, lambda s, y: 0),
        streams.arrays(np.ones((3, 2)), np.ones(3), clients=1, deal=streams.in_time()),
        parts.given(np.eye(3, dtype=bool)),
    ]
    for made in values:
        assert f'name = "{name_of(made)}"' in tomli_w.dumps(plain(made))


def test_values_are_hashable_and_equal_to_their_twins():
    assert hash(parts.given(np.eye(3))) == hash(parts.given(np.eye(3)))
    first, twin = parts.quantiser(3), parts.quantiser(3)
    assert first == twin
    assert hash(first) == hash(twin)
    assert plain(first) == plain(twin)
    assert first != parts.quantiser(4)


CONVERT = ("optimizer", "frame", "hashed", "river")  # functions that return a value of another name


@pytest.mark.parametrize("module", [algorithms, parts, problems, streams])
def test_what_is_exported_is_a_value_or_prints_as_its_call(module):
    """`optimizer` has no parameters of its own: only the calls of its values differ."""
    for name in module.__all__:
        factory = getattr(module, name)
        is_value = isinstance(factory, type) and issubclass(factory, Value)
        is_plain = isinstance(factory, type) and hasattr(factory, "_fields")  # what is hidden
        assert is_value or is_plain or hasattr(factory, "__wrapped__") or name in CONVERT, name
        assert factory.__doc__, name


def test_table_leaves_out_what_is_none():
    assert table(problems.quadratic(2, low=None)) == {"name": "quadratic", "dimension": 2}
    assert table(ms.fedres_erm(radius=None, capacity=None)) == {"name": "fedres_erm"}


def test_a_value_is_called_by_the_name_that_needs_the_fewest_parts_beside():
    server = parts.optimizer("adam", learning_rate=0.1)
    made = ms.ofediq(0.1, rate=0.5, levels=2, server=server)
    assert repr(made).startswith("ofediq(step=0.1, rate=0.5, levels=2, server=")
    assert repr(ms.fedogd(0.1, server=server)).startswith("fedogd(step=0.1, server=")


def test_code_of_ones_own_counts_with_its_content(tmp_path, monkeypatch):
    """A function in a module that its author changes is another function."""
    monkeypatch.syspath_prepend(tmp_path)
    names = []
    for body in ("score - y", "abs(score - y)"):
        inner = f"def part(score, y):\n    return {body}\n"
        (tmp_path / "own_losses.py").write_text(
            inner + "def paid(score, y):\n    return part(score, y)\n"
        )
        sys.modules.pop("own_losses", None)
        sys.dont_write_bytecode = True
        importlib.invalidate_caches()
        names.append(code_fingerprint.code_name(importlib.import_module("own_losses").paid))
    assert all(name.startswith("own_losses:paid sha256 ") for name in names)
    assert names[0] != names[1]
    assert code_fingerprint.code_name(np.linalg.norm) == "numpy.linalg:norm"


CLASS = """
from mainstem import extend as mx

FACTOR = 1.0

def helper(score):
    return {helper}

@mx.value
class own_ball(mx.Domain):
    radius: float = mx.positive()

    @property
    def title(self):
        return "own ball"

    def project(self, params):
        return {project}
"""


def _class_of(tmp_path, **bodies):
    """`own_ball` from a file of its author's, with these bodies."""
    usual = {"helper": "score", "project": "helper(params)"}
    (tmp_path / "own_classes.py").write_text(CLASS.format(**usual | bodies))
    sys.modules.pop("own_classes", None)
    importlib.invalidate_caches()
    return importlib.import_module("own_classes").own_ball


@pytest.mark.parametrize("changed", [{"project": "0 * params"}, {"helper": "2 * score"}])
def test_a_class_of_ones_own_counts_with_its_content(changed, tmp_path, monkeypatch):
    """A value whose author changes an equation is another value, and its experiment another experiment."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    first, again = (plain(_class_of(tmp_path)(2.0)) for _ in range(2))
    assert first == again
    assert first["code"].startswith("own_classes:own_ball sha256 ")
    assert plain(_class_of(tmp_path, **changed)(2.0)) != first
    assert "code" not in plain(parts.l2_ball(2.0))


def test_a_value_inside_code_counts_with_its_own_code():
    def reads(problem):
        return code_fingerprint.code_name(lambda x: problem.loss(x))

    def problem(factor):
        return problems.custom(lambda key: 0.0, lambda w, x: w * x, lambda s, y: factor * (s - y))

    assert reads(problem(1.0)) == reads(problem(1.0))
    assert reads(problem(1.0)) != reads(problem(2.0))


VARIANTS = {  # pairs of bodies of a class that do different things
    "the order of arguments": (
        "def f(self, a, b): return a - b",
        "def f(self, b, a): return b - a",
    ),
    "several arguments": ("def f(self, *a): return a", "def f(self, a): return a"),
    "what is tried": (
        "def f(self):\n  try:\n   x = g()\n   h()\n  except E: pass",
        "def f(self):\n  try:\n   x = g()\n  except E: pass\n  else:\n   h()",
    ),
    "a method with a name of named tuples": (
        "def _replace(self): return 1",
        "def _replace(self): return 2",
    ),
    "a decorated method": (
        "@functools.lru_cache\n def __call__(self): return 1",
        "@functools.lru_cache\n def __call__(self): return 2",
    ),
    "a derivative": (
        "f = jax.custom_jvp(sin); f.defjvp(lambda p, t: (1.0, 1.0))",
        "f = jax.custom_jvp(sin); f.defjvp(lambda p, t: (1.0, 2.0))",
    ),
    "a module of one's own": (
        "def f(self): return own_helpers.factor(2)",
        "def f(self): return own_helpers.other(2)",
    ),
    "beside a lock": (
        "lock = threading.Lock()\n def f(self): return 1",
        "lock = threading.Lock()\n def f(self): return 2",
    ),
}
HEAD = "import functools, threading, jax, own_helpers\nfrom jax.numpy import sin\n"


def _named(folder, body):
    """The name of a class of this body, in a module of its author's."""
    (folder / "own_helpers.py").write_text("def factor(x): return x\ndef other(x): return 2 * x\n")
    (folder / "own_body.py").write_text(f"{HEAD}class Own:\n {body}\n")
    for name in ("own_body", "own_helpers"):
        sys.modules.pop(name, None)
    importlib.invalidate_caches()
    return code_fingerprint.code_name(importlib.import_module("own_body").Own)


@pytest.mark.parametrize("what", VARIANTS)
def test_classes_that_do_other_things_have_other_names(what, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    one, other = (_named(tmp_path, body) for body in VARIANTS[what])
    assert " sha256 " in one
    assert one != other
    assert _named(tmp_path, VARIANTS[what][0]) == one


def test_an_edited_module_of_ones_own_is_other_code(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    one = _named(tmp_path, "def f(self): return own_helpers.factor(2)")
    sys.modules.pop("own_body")
    sys.modules["own_helpers"].factor = lambda x: 3 * x
    assert code_fingerprint.code_name(importlib.import_module("own_body").Own) != one


IN_ANOTHER = """
import numpy as np, jax
KEY, WORDS = jax.random.key(0), np.array(["a", None], object)
RULES = {len: 1, "a": {"x", "y", "z", "w"}}
def helper(x): return x, KEY, WORDS, RULES
class Own:
    def f(self, x):
        "A docstring."
        return helper(x), Own
from mainstem.code_fingerprint import code_name, of_library
print(code_name(Own), of_library("__main__"))
"""


def test_one_class_has_one_name_in_all_processes():
    """Of a program without a file, as in a notebook. Docstrings, addresses and orders of sets do not matter."""
    printed = set()
    for seed, code in (("1", IN_ANOTHER), ("2", IN_ANOTHER.replace("A docstring", "Another"))):
        done = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        printed.add(done.stdout)
    (line,) = printed
    assert line.startswith("code Own sha256 ")
    assert line.endswith(" False\n")


@pytest.mark.parametrize("taken", ["name", "code"])
def test_a_field_that_would_hide_an_entry_is_refused(taken):
    body = {"__annotations__": {taken: str}, taken: static(default="")}
    with pytest.raises(TypeError, match=f"a field cannot be called '{taken}'"):
        value(type("Own", (Value,), body))
