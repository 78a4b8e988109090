# %% [markdown]
# # Planning for a traffic budget
#
# How good can an algorithm be if it may send five percent of the plain traffic? `advise` measures the constants
# of the theorems on the first steps of the stream, and ranks the algorithms for the budget.

# %%
import mainstem as ms

problem = ms.problems.softmax(features=64, classes=10, ridge=1e-3)
stream = ms.streams.digits(clients=100)
advice = ms.advise(problem, stream, budget=0.05, steps=200)
print(advice)

# %% [markdown]
# The theorem promises an order. Whether the data agrees is a matter of a few seconds:

# %%
plan = ms.plan(budget=0.05, parameters=problem.parameters)
candidates = {
    "OFedIQ, planned": ms.ofediq(step=0.5, rate=plan.rate, levels=plan.levels, blocks=plan.blocks),
    "OFedAvg, 5 % of the clients": ms.ofedavg(step=0.5, rate=0.05),
    "FedOMD, every 20 steps": ms.fedomd(step=0.5, sync=ms.parts.every(20)),
    "everything": ms.fedogd(step=0.5),
}
runs = {
    name: ms.simulate(each, problem, stream, steps=200, seeds=3)
    for name, each in candidates.items()
}
ms.compare(runs)

# %% [markdown]
# The Pareto front: the algorithms that no other one beats in both traffic and accuracy.

# %%
ms.compare(runs, "accuracy", x="uplink bits").figure

# %% [markdown]
# A step is worth a sweep. All points and seeds are one compiled program.

# %%
import numpy as np

found = ms.sweep(
    lambda step: (
        ms.ofediq(step, rate=plan.rate, levels=plan.levels, blocks=plan.blocks),
        problem,
    ),
    {"step": np.geomspace(0.05, 50, 7).tolist()},
    stream,
    steps=200,
    seeds=3,
)
found
