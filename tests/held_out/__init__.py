"""Independent NumPy loops, written from the papers and the design only: an oracle for the package."""
