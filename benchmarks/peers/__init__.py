"""What the benchmarks compare with: the same experiments in plain NumPy and eager PyTorch."""
