"""Leaves out what needs Flower where that is not installed: `make test-flower` has an environment of its own."""

from importlib.util import find_spec

collect_ignore = [] if find_spec("flwr") else ["src/mainstem/flower", "tests/flower"]
