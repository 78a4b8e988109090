"""What a run was worth: regret, its comparator, and the proof that comes with it."""
