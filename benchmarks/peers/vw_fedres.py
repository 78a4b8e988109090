"""One client's stream of FedRes's experiment in Vowpal Wabbit (Agarwal, Langford and Wei 2020, 6.2).

The paper ran VW with `--adaptive`. Naming any of VW's update rules turns off those not named, so
`--adaptive` alone is AdaGrad without normalised features and without importance-invariant steps:
squares += g^2; w -= rate * g / sqrt(squares), where g is the gradient of (p - y)^2. It differs from
`numpy_fedres` in three ways: float32, no floor under the root, and p, also inside g, is clipped to
the range of 0 and the labels seen so far. This rule's default rate is 10; `--learning_rate` sets
another.

VW learns the shared and own features and its own constant, which is the paper's Independent: there
is no server here, and only the time per example is comparable. Creating a workspace takes as long
as thousands of examples, so time `learn` and `learn_text` alone; the number of examples is the
length of what they return. Needs `pip install vowpalwabbit`.
"""

from itertools import cycle, islice

import numpy as np

FLAGS = "--adaptive --quiet"


def stream(x, y, steps, flags=FLAGS):
    """Predictions [steps] before each update, for features x [n, d] and labels y [n], cycled."""
    lines = as_text(x, y)
    with workspace(flags) as vw:
        examples = parse(vw, lines)
        predictions = learn(vw, examples, steps)
        release(vw, examples)
    return predictions


def stream_from_text(x, y, steps, flags=FLAGS):
    """The same, with every example parsed when it is used: the usual way."""
    lines = as_text(x, y)
    with workspace(flags) as vw:
        return learn_text(vw, lines, steps)


def workspace(flags=FLAGS):
    """A VW workspace, as a context manager."""
    from vowpalwabbit import Workspace

    return Workspace(flags)


def as_text(x, y):
    """VW's text format, one line per sample; nine digits represent a float32 exactly."""
    return [
        f"{label:g} | " + " ".join(f"{i}:{value:.9g}" for i, value in enumerate(row))
        for row, label in zip(x, y, strict=True)
    ]


def parse(vw, lines):
    """Examples that can be learnt from repeatedly, until they are released."""
    return [vw.parse(line) for line in lines]


def release(vw, examples):
    """Releases the examples, as VW requires."""
    for example in examples:
        vw.finish_example(example)


def learn(vw, examples, steps):
    """Learns from parsed examples one by one; VW's `learn` predicts before it updates."""
    predictions = np.empty(steps, np.float32)
    for t, example in enumerate(islice(cycle(examples), steps)):
        vw.learn(example)
        predictions[t] = example.get_simplelabel_prediction()
    return predictions


def learn_text(vw, lines, steps):
    """Parses, learns and releases one line after the other."""
    predictions = np.empty(steps, np.float32)
    for t, line in enumerate(islice(cycle(lines), steps)):
        example = vw.parse(line)
        vw.learn(example)
        predictions[t] = example.get_simplelabel_prediction()
        vw.finish_example(example)
    return predictions
