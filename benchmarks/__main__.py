"""Simulator benchmark (`make bench`): speed beside peers in the same run, on a CPU.

The machine is shared and noisy, so each round measures every side once, turn by turn, and the
medians of five rounds are compared. Compile time is measured separately. A peer is given in its
straightforward form and, where a faster one is known, also in a tuned form.
"""

from benchmarks import command, elec2, fedomd, fedres, memory, networks, scaling

BENCHMARKS = {
    "fedomd": fedomd.on_cpu,
    "mlp": networks.mlp,
    "cnn": networks.cnn,
    "fedres": fedres.main,
    "elec2": elec2.main,
    "memory": memory.main,
    "scaling": scaling.main,
}

if __name__ == "__main__":
    command.main(__doc__, BENCHMARKS)
