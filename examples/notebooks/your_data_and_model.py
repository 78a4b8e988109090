# %% [markdown]
# # Your own data and model
#
# The data is a table with a row for each measurement of a machine. Machines have different numbers of rows,
# some cells are empty, and faults are rare. This cell makes such a file; with one of your own, skip it.

# %%
import numpy as np
import pandas as pd

draw = np.random.default_rng(0)
count = 3000
table = pd.DataFrame({"machine": draw.choice(["press", "lathe", "mill", "saw"], count)})
table["heat"], table["vibration"] = draw.normal(size=(2, count))
wear = np.abs(table["vibration"]) + 0.5 * table["heat"] + 0.5 * draw.normal(size=count)
table["state"] = np.where(wear > 1.5, "faulty", "fine")
table.loc[draw.random(count) < 0.05, "heat"] = np.nan
table.to_csv("machines.csv", index=False)
table.head()

# %% [markdown]
# Each machine is a client. Empty cells are filled from the machine's own past.

# %%
import mainstem as ms

stream = ms.streams.csv(
    "machines.csv",
    target="state",
    key="machine",
    classes=["fine", "faulty"],
    missing=ms.parts.running_mean(),
)
stream

# %% [markdown]
# A model of your own is a function of its parameters and the features; a loss of your own is a function of
# score and label. Here a fault that is overlooked costs three times as much as a false alarm, and the model
# knows that vibration counts in both directions.

# %%
import jax.numpy as jnp
import optax


def first(key):
    return jnp.zeros(4)


def score(weights, x):
    heat, vibration = x
    return weights @ jnp.stack([heat, vibration, jnp.abs(vibration), 1.0])


def cost(score, faulty):
    return jnp.where(faulty == 1, 3.0, 1.0) * optax.sigmoid_binary_cross_entropy(score, faulty)


mine = ms.problems.custom(first, score, cost, classes=2, convex=True)

# %% [markdown]
# Learning together, beside every machine alone, and beside a linear model:

# %%
steps = stream.steps
runs = {
    "together": ms.simulate(ms.fedogd(0.1), mine, stream, steps=steps, measure=["scores"]),
    "alone": ms.simulate(ms.independent(0.1), mine, stream, steps=steps, measure=["scores"]),
    "together, linear": ms.simulate(
        ms.fedogd(0.1), ms.problems.logistic(features=2), stream, steps=steps, measure=["scores"]
    ),
}
ms.compare(runs, "auc")

# %% [markdown]
# The first weights belong to heat, vibration, the size of the vibration and the constant:

# %%
np.round(runs["together"].model, 2)
