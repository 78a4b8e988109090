"""The private dialect of the first release does not come back: see docs/glossary.md for the words in use."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("src", "docs", "examples", "benchmarks", "tests", "tools")
FILES = sorted(
    path
    for folder in FOLDERS
    for ending in ("*.py", "*.pyi", "*.md", "*.toml")
    for path in (ROOT / folder).rglob(ending)
    if path != Path(__file__)
)
WORDS = "told|said|unsaid|news|insist|standing|charter|doors?|heeded|brokers?|deaf"
NAMES = {"look", "keep", "moves", "answers", "together", "site", "speaks", "spoke", "tell"}
ALLOWED = {  # the name of a folder that is refused
    "broker": ("src/mainstem/engines/federate/hub/process.py", "tests/federate/test_failures.py")
}


def names(tree: ast.AST) -> Iterator[str]:
    """All names that a module defines: functions, classes, parameters, fields and variables."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name
            case ast.arg():
                yield node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.id
            case ast.alias(asname=str(name)):
                yield name


def test_no_word_of_the_old_dialect() -> None:
    found = []
    for path in [*FILES, ROOT / "README.md"]:
        here = str(path.relative_to(ROOT))
        words = re.findall(rf"(?:\b|_)({WORDS})(?:\b|_)", path.read_text(), re.IGNORECASE)
        found += [(here, word) for word in words if here not in ALLOWED.get(word, ())]
    assert not found


def test_no_name_of_the_old_dialect() -> None:
    found = []
    for path in (ROOT / "src").rglob("*.py"):
        named = {name.strip("_") for name in names(ast.parse(path.read_text()))} | {path.stem}
        found += [(path.name, name) for name in named & NAMES]
    assert not found
