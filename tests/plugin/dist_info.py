"""The metadata folder that pip writes for a package: its name and its entry points."""

from pathlib import Path
from typing import Any


def installed(folder: Path, project: dict[str, Any]) -> None:
    """Writes metadata to `folder`, on the path, as if the package of this [project] table were installed there."""
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    head = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(head)
    lines = []
    for group, names in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {where}" for name, where in names.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
