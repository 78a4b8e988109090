"""Peers for the benchmarks: the same experiments in plain NumPy, eager PyTorch and Vowpal Wabbit."""
