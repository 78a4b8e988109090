"""Hooks of MkDocs: what the site has beside the pages in docs/.

- The README is the first page, and the changelog is a page of the site.
- A link to a file outside docs/ becomes plain text, because that file is not part of the site.
- Formulas become MathML while the site is built, so that a browser needs no script to show them.
- The reference pages are made from what each module exports, and from the commands of the command line.
"""

import html
import importlib
import inspect
import logging
import posixpath
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from mainstem.errors import BadData
from mainstem.report.formulas import mathml

LOG = logging.getLogger("mkdocs.hooks")
ROOT = Path(__file__).parents[2]
COPIED = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}  # file -> page of the site
COMMANDS = "<!-- the commands -->"
NAMES = re.compile(r"<!-- the names of ([\w.]+)(?:: ([\w ]+))? -->")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s#]+)(#[^)\s]*)?\)")
FORMULA = re.compile(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are kept beside docs/."""
    for source, page in COPIED.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Makes links fit the site, and fills in the commands."""
    path = page.file.src_uri
    kept_at = {page: source for source, page in COPIED.items()}.get(path, f"docs/{path}")

    def fitted(found: re.Match[str]) -> str:
        mark, text, target, anchor = found.groups()
        if "://" in target:
            return found[0]
        reached = posixpath.normpath(posixpath.join(posixpath.dirname(kept_at), target))
        inside = COPIED.get(reached) or reached.removeprefix("docs/")
        if files.get_file_from_path(inside) is None:
            if not (ROOT / reached).exists():
                LOG.warning("%s: links to %s, which does not exist", kept_at, target)
            return text
        return f"{mark}[{text}]({posixpath.relpath(inside, posixpath.dirname(path))}{anchor or ''})"

    fences = re.split(r"(^ *```.*?^ *```)", markdown, flags=re.MULTILINE | re.DOTALL)
    fences[::2] = [LINK.sub(fitted, text) for text in fences[::2]]
    text = NAMES.sub(lambda found: names(*found.groups()), "".join(fences))
    return text.replace(COMMANDS, commands()) if COMMANDS in text else text


def on_page_content(html: str, page: Page, **_: Any) -> str:
    """Turns formulas into MathML."""
    return FORMULA.sub(lambda found: shown(found[2], found[1] == "div", page.file.src_uri), html)


def shown(formula: str, block: bool, where: str) -> str:
    """A formula of LaTeX, escaped for HTML, as MathML."""
    try:
        return mathml(html.unescape(formula), block)
    except BadData as error:
        LOG.warning("%s: %s", where, error)
        return formula


def names(module: str, chosen: str | None) -> str:
    """A directive of mkdocstrings for each class and function that a module exports, or for those chosen.

    By the place where it is defined: `mainstem.parts.quantiser` is a module, and a class of that name is in it.
    """
    home = importlib.import_module(module)
    exported = [getattr(home, name) for name in (chosen.split() if chosen else home.__all__)]
    return "\n\n".join(_directive(each) for each in exported if _documented(each))


def _documented(exported: Any) -> bool:
    ours = str(getattr(exported, "__module__", None)).startswith("mainstem.")
    return ours and (inspect.isclass(exported) or inspect.isfunction(exported))


def _directive(shown: Any) -> str:
    """A value has no members here: its methods are those of its kind, which `mainstem.extend` describes."""
    options = {"members": "false"} if "__final_value__" in vars(shown) else {}
    if inspect.isclass(shown) and shown.__init__ is not object.__init__ and not options:
        options = {"merge_init_into_class": "false"}  # users do not make it
    lines = [f"::: {shown.__module__}.{shown.__qualname__}", "    options:" if options else ""]
    return "\n".join([*lines, *(f"      {name}: {given}" for name, given in options.items())])


def commands() -> str:
    """Every command of `mainstem` with its arguments and options, as Typer writes them."""
    asked = ["-m", "typer", "mainstem.cli", "utils", "docs", "--name", "mainstem"]
    made = subprocess.run([sys.executable, *asked], check=True, text=True, capture_output=True)
    text = made.stdout[made.stdout.index("\n## ") :]
    return re.sub(r"^Example: (.+)$", r"```\n\1\n```", text, flags=re.MULTILINE)
