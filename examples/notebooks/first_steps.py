# %% [markdown]
# # First steps
#
# A thousand clients see handwritten digits, one each step. Each client decides first and learns the label
# afterwards. Two algorithms learn one model for all of them: one sends every gradient, the other one percent of
# the traffic.

# %%
import mainstem as ms

stream = ms.streams.digits(clients=1000)
stream

# %% [markdown]
# The problem says what is decided and what it costs; the algorithm says what is sent, when, and how the server
# merges it.

# %%
problem = ms.problems.softmax(features=64, classes=10)
plan = ms.plan(budget=0.01, parameters=problem.parameters)
algorithm = ms.ofediq(step=0.5, rate=plan.rate, levels=plan.levels, blocks=plan.blocks)
algorithm

# %%
run = ms.simulate(algorithm, problem, stream, steps=300, seeds=3)
run

# %% [markdown]
# The same for the algorithm that sends everything, and both side by side. A click on a column sorts the table.

# %%
everything = ms.simulate(ms.fedogd(step=0.5), problem, stream, steps=300, seeds=3)
compared = ms.compare({"every gradient": everything, "1 % of the traffic": run})
compared

# %% [markdown]
# Accuracy against the bits that were sent:

# %%
ms.compare(compared.runs, "accuracy", x="uplink bits").figure

# %% [markdown]
# A report is one file for a colleague, with everything that is known about these runs:

# %%
compared.report("first_steps.html", title="First steps", regret=False)
