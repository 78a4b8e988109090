# %% [markdown]
# # From simulation to five sites
#
# Five sites predict their load for the next hour. First as a simulation; then the same algorithm, as a hub and
# five clients over a NATS server. The numbers agree.

# %%
import numpy as np

import mainstem as ms

SITES, HOURS = ["north", "south", "east", "west", "centre"], 200
draw = np.random.default_rng(0)
hours = np.arange(HOURS)[:, None] + np.arange(5)
features = np.stack([np.sin(2 * np.pi * hours / 24), np.cos(2 * np.pi * hours / 24)], axis=-1)
load = 1 + features @ [0.3, -0.2] + 0.05 * draw.normal(size=(HOURS, 5))

problem = ms.problems.linear(features=2)
algorithm = ms.fedsea(step=0.2, period=4)
stream = ms.streams.arrays(features.reshape(-1, 2), load.ravel(), keys=np.tile(np.arange(5), HOURS))
simulated = ms.simulate(ms.guarded(algorithm), problem, stream, steps=HOURS, dtype="float64")
simulated

# %% [markdown]
# Now for real: `ms.serve` starts the hub, and a private NATS server for it. In production the hub is a process
# of its own, `mainstem hub FILE`, and so is each client.

# %%
hub = ms.serve(
    {
        "problem": {"name": "linear", "features": 2},
        "algorithm": {"name": "fedsea", "step": 0.2, "period": 4},
        "federate": {
            "run": "load",
            "clients": SITES,
            "pace": "lockstep",
            "steps": HOURS,
            "dtype": "float64",
        },
    },
    folder="hub",
)
hub.url

# %% [markdown]
# Each site decides, learns the true load an hour later, and sends nothing but models. Here each has a thread.

# %%
from concurrent.futures import ThreadPoolExecutor


def site(k):
    losses = []
    credentials = "hub/private.creds"
    with ms.join(
        hub.url, run="load", client=SITES[k], folder=f"sites/{SITES[k]}", credentials=credentials
    ) as learner:
        for x, y in zip(features[:, k], load[:, k]):
            guess = learner.predict_one(x)
            losses.append((guess - y) ** 2 / 2)
            learner.learn_one(x, y)
    return np.array(losses)


with ThreadPoolExecutor(5) as threads:
    losses = np.stack(list(threads.map(site, range(5))), axis=1)

# %% [markdown]
# The losses of the federation are those of the simulation:

# %%
difference = np.abs(losses.mean(axis=1) - simulated.loss).max()
print(f"the largest difference in {HOURS} hours: {difference:.1e}")
assert difference < 1e-9

# %%
hub.wait()
print(hub.model, simulated.model)
hub.close()
