"""What pip leaves of a package beside its code: a folder that names it and its entry points."""

from pathlib import Path
from typing import Any


def installed(place: Path, project: dict[str, Any]) -> None:
    """Make `place`, a folder on the path, say that it holds the package of this [project] table."""
    info = place / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(head)
    lines = []
    for group, names in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {where}" for name, where in names.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
