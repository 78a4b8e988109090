"""FedOMD's experiment (Mitra, Hassani and Pappas 2021, Fig. 1) as a plain NumPy loop over time.

Every client has one number x in [-3, 3]. At step t = 1, 2, ... it incurs the loss (x - c)^2 / 2 with
c = a at even t and c = -a at odd t, a ~ N(2, 5), and updates x <- proj(x - (x - c) / t). After
every `period` steps, all clients take their mean.

    python -m benchmarks.peers.numpy_fedomd [--check]
"""

import argparse
import statistics
import time

import numpy as np

RADIUS = 3.0
MEAN, VARIANCE = 2.0, 5.0
CHUNK = 4096  # steps drawn and scored at a time: few enough to fit into the cache


def run(steps, clients=20, period=20, seed=0):
    """Simulates from x = 0.

    Returns `local_loss[t]`, the mean of the clients' own losses; `collective_loss[t]`, the mean over clients of
    the global loss (1/m) sum_i l_t(x_i) of eq. (2); and the last `models`.
    """
    rng = np.random.default_rng(seed)
    local_loss, collective_loss = np.empty(steps), np.empty(steps)
    # Row j contains the clients' models at the chunk's j-th step; the last row starts the next chunk.
    rows = np.zeros((min(CHUNK, steps) + 1, clients))
    for start in range(0, steps, CHUNK):
        stop = min(start + CHUNK, steps)
        centres = draw_centres(rng, start, stop, clients)
        models = rows[: stop - start + 1]
        advance(models, centres, start, period)
        score(models[:-1], centres, local_loss[start:stop], collective_loss[start:stop])
        rows[0] = models[-1]
    return {"local_loss": local_loss, "collective_loss": collective_loss, "models": rows[0].copy()}


def draw_centres(rng, start, stop, clients):
    """The points c[t, client] for t = start + 1, ..., stop."""
    centres = rng.standard_normal((stop - start, clients))
    centres *= np.sqrt(VARIANCE)
    centres += MEAN
    centres[start % 2 :: 2] *= -1  # row 0 is t = start + 1
    return centres


def advance(models, centres, start, period):
    """Fills models[1:] from models[0].

    The loop uses u = t x_{t+1}, for which the step is u <- clip(u + c, -3 t, 3 t): three calls where x needs
    four. The mean commutes with that scaling. Bounds are stored in full because NumPy's loops over equal shapes
    are faster than those that broadcast.
    """
    add, maximum, minimum, total = np.add, np.maximum, np.minimum, np.add.reduce
    clients = models.shape[1]
    times = np.arange(start + 1, start + len(models))
    upper = np.repeat(RADIUS * times[:, None], clients, axis=1)
    lower = -upper
    sync = (times % period == 0).tolist()
    scaled = models[1:]
    previous = models[0] * start
    for u, centre, low, high, due in zip(scaled, centres, lower, upper, sync, strict=True):
        add(previous, centre, u)
        maximum(u, low, out=u)
        minimum(u, high, out=u)
        if due:
            u.fill(total(u) / clients)
        previous = u
    scaled /= times[:, None]


def score(models, centres, local_loss, collective_loss):
    """Losses of all steps at once; the collective one from moments, not from m^2 pairs."""
    clients = models.shape[1]
    error = models - centres
    np.einsum("ti,ti->t", error, error, out=local_loss)
    local_loss *= 0.5 / clients
    second = np.einsum("ti,ti->t", models, models) + np.einsum("ti,ti->t", centres, centres)
    cross = models.sum(axis=1) * centres.sum(axis=1)
    np.subtract(second / clients, cross * (2 / clients**2), out=collective_loss)
    collective_loss *= 0.5


def plain(steps, clients=20, period=20, seed=0):
    """The same in its straightforward form: the equations, step after step, vectorised over clients."""
    rng = np.random.default_rng(seed)
    x = np.zeros(clients)
    local, collective = np.empty(steps), np.empty(steps)
    for t in range(1, steps + 1):
        a = MEAN + np.sqrt(VARIANCE) * rng.standard_normal(clients)
        c = a if t % 2 == 0 else -a
        local[t - 1] = np.mean((x - c) ** 2 / 2)
        collective[t - 1] = np.mean((x[:, None] - c[None]) ** 2 / 2)
        x = np.clip(x - (x - c) / t, -RADIUS, RADIUS)
        if t % period == 0:
            x[:] = x.mean()
    return {"local_loss": local, "collective_loss": collective, "models": x}


def check():
    """Checks the tuned loop against the plain one."""
    arguments = 5000, 7, 20, 3
    expected, found = plain(*arguments), run(*arguments)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, atol=1e-10)
    print("ok: equals the plain loop over 5000 steps")


def main():
    """Times five runs after a warm-up."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--steps", type=int, default=50_000)
    options = parser.parse_args()
    if options.check:
        check()
        return
    run(2000)
    seconds = []
    for seed in range(5):
        begin = time.perf_counter()
        run(options.steps, seed=seed)
        seconds.append(time.perf_counter() - begin)
    milliseconds = statistics.median(seconds) / options.steps * 1e3
    print(f"numpy fedomd, m=20, tau=20: {milliseconds:.5f} ms/step")


if __name__ == "__main__":
    main()
