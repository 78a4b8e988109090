"""Computes in the thread that asks: for the small computations of a hub or a client, one after the other.

By default XLA computes on the CPU in a thread of its own, and to wake it takes as long as a merge or a step does.
"""

import jax


def compute_in_own_thread() -> None:
    """From now on, in this process. It has no effect once JAX has computed something."""
    jax.config.update("jax_cpu_enable_async_dispatch", False)
