"""Parts that both PyTorch peers share: cohorts, the quantiser of Definition 2, and `main`."""

import argparse
import contextlib
import math
import statistics
import time

import numpy as np
import torch


@contextlib.contextmanager
def float32(tf32=False, search=False):
    """Inside, products of float32 use TF32 or do not; `search`: cuDNN tries its algorithms for each shape."""
    matmul, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark
    matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = tf32, tf32, search
    try:
        yield
    finally:
        matmul.allow_tf32, cudnn.allow_tf32, cudnn.benchmark = before


def initial_params(shapes, device, params=None, seed=0):
    """He-normal weights and zero biases, or copies of the given arrays."""
    if params is None:
        rng = np.random.default_rng(seed)
        params = [
            rng.standard_normal(shape) * math.sqrt(2 / math.prod(shape[1:]))
            if len(shape) > 1
            else np.zeros(shape)
            for shape in shapes
        ]
    return [torch.tensor(np.asarray(p), dtype=torch.float32, device=device) for p in params]


def flatten(params):
    """One vector of all parameters."""
    return torch.cat([p.flatten() for p in params])


def unflatten(flat, shapes):
    """Views of a vector in the given shapes."""
    pieces = flat.split([math.prod(shape) for shape in shapes])
    return [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)]


def draw_cohorts(indices, rate, seed):
    """Sample indices of the participants of each step; every client participates with probability `rate`.

    Drawn for all steps at once, so that the loop never waits for the device to count a cohort.
    """
    taking_part = np.random.default_rng(seed).random(indices.shape, dtype=np.float32) < rate
    counts = taking_part.sum(axis=1).tolist()
    return indices[torch.from_numpy(taking_part).to(indices.device)].split(counts)


def uniform_source(seed, device):
    """A function from a shape to float32 uniforms in [0, 1) with 24 random bits.

    On the CPU, NumPy's SFC64 draws 2.7 times as fast as torch.rand (Mersenne twister).
    """
    if torch.device(device).type == "cpu":
        rng = np.random.Generator(np.random.SFC64(seed))
        return lambda shape: torch.from_numpy(rng.random(tuple(shape), dtype=np.float32))
    generator = torch.Generator(device).manual_seed(seed)
    return lambda shape: torch.rand(shape, generator=generator, device=device)


def quantised_sum(values, levels, blocks, uniform):
    """Sum over clients (rows) of the (s, b) stochastic quantiser of Definition 2.

    Blocks are contiguous, the first D mod b one longer than the others: two reshapes, no padding. floor(v + u)
    with a signed v rounds away from zero with the probability that makes it unbiased, which is the definition's
    sign * (m or m + 1) without separating signs.
    """
    clients, dimension = values.shape
    short, longer = divmod(dimension, blocks)
    split = longer * (short + 1)
    quantised = uniform(values.shape)
    for columns, count in ((slice(split), longer), (slice(split, None), blocks - longer)):
        if count:
            value = values[:, columns].unflatten(1, (count, -1))
            level = quantised[:, columns].unflatten(1, (count, -1))
            norm = torch.linalg.vector_norm(value, dim=2, keepdim=True)
            level.addcmul_(value, torch.where(norm > 0, levels / norm, 0.0))
            level.floor_().clamp_(-levels, levels).mul_(norm / levels)
    # On the CPU, a product with ones sums rows four times as fast; on a GPU it might run in TF32.
    return values.new_ones(clients) @ quantised if values.is_cpu else quantised.sum(0)


def main(doc, check, cases, steps):
    """Runs `check`, or times the runs that `cases(steps, device)` names: medians of five, after a warm-up."""
    parser = argparse.ArgumentParser(description=doc.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--steps", type=int, default=steps)
    options = parser.parse_args()
    if options.check:
        check()
        return
    for name, run in cases(options.steps, options.device).items():
        seconds = []
        for _ in range(6):
            begin = time.perf_counter()
            run()  # ends by copying its losses to the host, so that no work is pending
            seconds.append(time.perf_counter() - begin)
        median = statistics.median(seconds[1:]) / options.steps * 1e3
        print(f"{name}, K=1000, {options.device}: {median:.3f} ms/step")


def check_quantiser(dimension, blocks, levels=3, copies=20_000):
    """Checks that values are on the grid, unbiased and within the stated variance, and that a zero block stays
    zero."""
    uniform = uniform_source(1, "cpu")
    value = torch.randn(dimension, generator=torch.Generator().manual_seed(0))
    sizes = [len(part) for part in np.array_split(np.arange(dimension), blocks)]
    value[: sizes[0]] = 0

    one = quantised_sum(value[None], levels, blocks, uniform)
    assert not one[: sizes[0]].any(), "a zero block moved"
    for part, got in zip(value.split(sizes), one.split(sizes), strict=True):
        grid = got * levels / part.norm().clamp(min=1e-30)
        assert (grid - grid.round()).abs().max() < 1e-4, "off the grid"
        assert grid.abs().max() < levels + 1e-4, "beyond the block's norm"

    draws = [quantised_sum(value[None], levels, blocks, uniform) for _ in range(200)]
    variance = torch.stack([(draw - value).square().sum() for draw in draws]).mean()
    width = -(-dimension // blocks)
    bound = min(width / levels**2, width**0.5 / levels) * value.square().sum()
    assert variance < bound, "more variance than Definition 2 allows"

    total = torch.zeros(dimension, dtype=torch.float64)
    for _ in range(copies // 100):
        total += quantised_sum(value.expand(100, -1), levels, blocks, uniform)
    mean = total / copies
    error = (mean - value).norm() / (variance / copies).sqrt()
    assert 0.9 < error < 1.1, f"biased: the mean is {error:.2f} standard errors off, not about 1"
    print(f"ok: quantiser, D={dimension}, b={blocks}: {error:.2f} standard errors (1 if unbiased)")
