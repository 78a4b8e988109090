"""Two memories of the same losses: a least-squares problem in its smallest form, and the samples themselves."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mainstem.parts import history

MINE, THEIRS, PARTNERS, CAPACITY, COUNT = 3, 2, 4, 8, 10
SUMMARY = MINE + THEIRS + 1  # my features, my partner's, the label
SHAPES = history.Shapes(MINE, THEIRS, SUMMARY)
MEMORIES = {"squares": history.Squares(2.5), "samples": history.Samples(2.5, CAPACITY)}


def score(mine, partner, summary):
    """The sum of what both predict."""
    return summary[:MINE] @ mine + summary[MINE:-1] @ partner


loss = history.Loss(score, lambda score, label: (score - label) ** 2)


def world(seed=0):
    """Samples of several partners, some of them not real, and what the partners have now."""
    rng = np.random.default_rng(seed)
    summary = rng.normal(size=(COUNT, SUMMARY))
    who = rng.integers(0, PARTNERS - 1, COUNT).astype(np.int32)  # one partner sends nothing
    who[:4] = 1  # several of one partner at once
    real = rng.uniform(size=COUNT) < 0.7
    return summary, who, real, rng.normal(size=(PARTNERS, THEIRS)), rng.normal(size=MINE)


@functools.cache
def compiled(name):
    made = MEMORIES[name]
    return jax.jit(functools.partial(made.add, loss)), jax.jit(functools.partial(made.best, loss))


def memory_of(name, *batches):
    """The memory after these batches of (summary, who, real)."""
    memory = MEMORIES[name].empty(SHAPES, PARTNERS, jnp.float64)
    for summary, who, real in batches:
        padded = (  # always of one size, so that it is compiled once
            np.concatenate([summary, np.full((COUNT - len(summary), SUMMARY), np.nan)]),
            np.concatenate([who, np.zeros(COUNT - len(who), np.int32)]),
            np.concatenate([real, np.zeros(COUNT - len(real), bool)]),
        )
        memory = compiled(name)[0](memory, *padded)
    return memory


def best(name, memory, partners, current):
    return np.asarray(compiled(name)[1](memory, partners, current))


@pytest.fixture(autouse=True)
def _precise():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_both_find_the_least_squares_fit(seed):
    """Inside the ball it is NumPy's; the label less what the partner predicts is what is left."""
    summary, who, real, partners, current = world(seed)
    rest = summary[:, -1] - np.sum(summary[:, MINE:-1] * partners[who], axis=1)
    x, y = summary[real, :MINE], rest[real]
    expected = np.linalg.lstsq(x, y)[0]
    if np.linalg.norm(expected) > 2.5:
        low, high = 0.0, 1e6  # (X'X + mI)w = X'y on the sphere
        for _ in range(200):
            m = (low + high) / 2
            expected = np.linalg.solve(x.T @ x + m * np.eye(MINE), x.T @ y)
            low, high = (m, high) if np.linalg.norm(expected) > 2.5 else (low, m)
    for name in MEMORIES:
        found = best(name, memory_of(name, (summary, who, real)), partners, current)
        np.testing.assert_allclose(found, expected, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("name", MEMORIES)
def test_neither_order_nor_batches_matter(name):
    summary, who, real, partners, current = world(3)
    whole = best(name, memory_of(name, (summary, who, real)), partners, current)
    order = np.random.default_rng(0).permutation(COUNT)
    mixed = memory_of(name, (summary[order], who[order], real[order]))
    np.testing.assert_allclose(best(name, mixed, partners, current), whole, atol=1e-9)
    parts = [(summary[a:b], who[a:b], real[a:b]) for a, b in ((0, 1), (1, 5), (5, COUNT))]
    np.testing.assert_allclose(
        best(name, memory_of(name, *parts), partners, current), whole, atol=1e-9
    )


def test_samples_are_stored_by_partner_in_the_order_they_came():
    summary, who, real, _, _ = world(4)
    memory = jax.device_get(
        memory_of("samples", (summary[:6], who[:6], real[:6]), (summary, who, real))
    )
    for k in range(PARTNERS):
        mine = np.concatenate([summary[:6][(who == k)[:6] & real[:6]], summary[(who == k) & real]])
        assert memory.count[k] == len(mine) <= CAPACITY
        np.testing.assert_array_equal(memory.summaries[k, : len(mine)], mine)
        assert not memory.summaries[k, len(mine) :].any()


@pytest.mark.parametrize("name", MEMORIES)
def test_nothing_real_is_nothing_known(name):
    """Places without a sample may hold anything, even NaN."""
    _, _, _, partners, current = world(5)
    nothing = np.full((3, SUMMARY), np.nan), np.zeros(3, np.int32), np.zeros(3, bool)
    near = current / np.linalg.norm(current)
    np.testing.assert_allclose(best(name, memory_of(name, nothing), partners, near), near)


def test_partners_may_change_their_minds():
    """The same memory against other partners: no sample is bound to what its partner had then."""
    summary, who, real, partners, current = world(6)
    memories = {name: memory_of(name, (summary, who, real)) for name in MEMORIES}
    for scale in (0.0, 1.0, -0.5):
        squares, samples = (best(n, m, scale * partners, current) for n, m in memories.items())
        np.testing.assert_allclose(squares, samples, atol=1e-8)


def test_nearly_collinear_features_keep_their_digits():
    """Condition 1e4, float64: NumPy's fit to 1e-10. Sums of x x' have condition 1e8 and lose eight digits."""
    rng = np.random.default_rng(7)
    summary = rng.normal(size=(COUNT, SUMMARY))
    summary[:, 1] = summary[:, 0] + 1e-4 * summary[:, 1]
    truth = np.array([0.5, -1.0, 2.0])
    summary[:, -1] = summary[:, :MINE] @ truth + 1e-3 * rng.normal(size=COUNT)
    nobody, real = np.zeros((PARTNERS, THEIRS)), np.ones(COUNT, bool)
    expected = np.linalg.lstsq(summary[:, :MINE], summary[:, -1])[0]
    free, memory = history.Squares(), history.Squares().empty(SHAPES, PARTNERS, jnp.float64)
    for n in range(COUNT):
        memory = free.add(loss, memory, summary[n : n + 1], np.zeros(1, np.int32), real[:1])
    found = free.best(loss, memory, nobody, np.zeros(MINE))
    np.testing.assert_allclose(found, expected, atol=1e-10)
