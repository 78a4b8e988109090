"""What the benchmarks compare with: the same experiments in plain NumPy, eager PyTorch and Vowpal Wabbit."""
