"""Prints the installed size of each direct dependency, in MB: the weights of docs/dependencies.md."""

import re
import tomllib
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parents[2]


def direct() -> list[str]:
    """The packages that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.split(r"[\[<>=~]", line)[0] for group in groups for line in group}
    return sorted(names - {project["name"]} | {"jaxlib", "pynacl"})  # most of jax, and of nkeys


def megabytes(name: str) -> float:
    """The size of a package's files on disk."""
    files = metadata.distribution(name).files or []
    return sum(Path(f.locate()).stat().st_size for f in files if Path(f.locate()).exists()) / 2**20


if __name__ == "__main__":
    for name in direct():
        try:
            print(f"{name:20}{megabytes(name):8.1f}")
        except metadata.PackageNotFoundError:
            print(f"{name:20}       -")
