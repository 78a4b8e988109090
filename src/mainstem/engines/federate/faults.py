"""Fault injection points: `reach` does nothing; tests replace it to kill the process there."""


def reach(point: str) -> None:
    """Does nothing. A test replaces it to kill its process at a point."""
