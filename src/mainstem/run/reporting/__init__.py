"""Reports: what a page shows of runs, as plain data."""
