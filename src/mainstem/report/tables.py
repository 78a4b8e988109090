"""Tables of results: aligned text, CSV and LaTeX, from rows with the same keys."""

import csv
import html
import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

Rows = Sequence[Mapping[str, Any]]

DECIMALS = 4, 10  # of a number: at least and at most
EQUAL = 1e-6  # of a value: a smaller standard error is one of rounding
SPECIAL = {letter: f"\\{letter}" for letter in "_%&#${}"} | {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
}  # in LaTeX
POWER = re.compile(r"e([+-])0*(\d+)")


def columns(rows: Rows) -> dict[str, bool]:
    """The names of the columns, in order, and whether each has numbers only.

    A standard error, NAME_error, is no column of its own: it stands behind its value.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    return {
        name: all(isinstance(row.get(name, 0), int | float) for row in rows)
        for name in names
        if name.removesuffix("_error") not in names or not name.endswith("_error")
    }


def cell(row: Mapping[str, Any], name: str, between: str = " ± ") -> str:
    """The entry of a row in the column `name`, with its standard error.

    >>> row = {"uplink_saving": 0.99, "uplink_bits": 123456.0, "loss": 0.25, "loss_error": 0.01, "steps": 5}
    >>> [cell(row, name) for name in columns([row])]
    ['99.0 %', '1.23e+05', '0.2500 ± 0.0100', '5']
    >>> cell({"loss": 0.25, "loss_error": 0.0000123}, "loss")
    '0.250000 ± 0.000012'
    """
    value, error = row.get(name, ""), row.get(f"{name}_error")
    if error is None:
        return _text(name, value)
    if value == error == 0:  # a baseline's difference from itself
        return "0"
    if abs(error) < EQUAL * abs(value):  # the seeds agree, but for rounding
        return f"{_text(name, value)}{between}0"
    digits = _digits(error)
    return between.join(_text(name, each, digits) for each in (value, error))


def _text(name: str, value: Any, digits: int | None = None) -> str:
    if not isinstance(value, float):
        return str(value)
    if name.endswith("saving"):
        return f"{100 * value:.1f} %"
    if name.endswith("bits"):
        return f"{value:.3g}" if value < 1000 else f"{value:.2e}"
    return f"{value:.{_digits(value) if digits is None else digits}f}"


def _digits(value: float) -> int:
    """The decimals with which a number is shown: four, or two significant digits of one that would read 0.0000."""
    least, most = DECIMALS
    if value == 0 or not math.isfinite(value) or round(value, least):
        return least
    return min(1 - math.floor(math.log10(abs(value))), most)


def for_page(rows: Rows, caption: str) -> dict[str, Any]:
    """A table of the page from rows with the same keys."""
    known = columns(rows)
    heads = [{"title": n.replace("_", " "), "numeric": number} for n, number in known.items()]
    cells = [
        [{"text": cell(row, name), "by": _key(row.get(name, ""))} for name in known] for row in rows
    ]
    return {"caption": caption, "columns": heads, "rows": cells}


def _key(value: Any) -> Any:
    return value if isinstance(value, int | float | str) else str(value)


SORT = (  # by the column of the head that was clicked, numbers as numbers; a second click turns the order round
    "const h=event.target,n=h.cellIndex,b=this.closest('table').tBodies[0],"
    "up=h.dataset.up!=='1';h.dataset.up=up?'1':'';"
    "[...b.rows].sort((r,s)=>{const x=r.cells[n].dataset.by,y=s.cells[n].dataset.by,"
    "c=isNaN(x-y)?x.localeCompare(y):x-y;return up?c:-c}).forEach(r=>b.append(r))"
)


def as_html(rows: Rows) -> str:
    """The rows as an HTML table for a notebook; a click on a head sorts it.

    >>> as_html([{"algorithm": "<b>", "loss": 0.5}])
    '<table><thead><tr ...><th>algorithm</th><th>loss</th>...<td data-by="&lt;b&gt;">&lt;b&gt;</td>...'
    """
    known = columns(rows)
    heads = "".join(f"<th>{html.escape(name.replace('_', ' '))}</th>" for name in known)
    head = f'<tr style="cursor:pointer" onclick="{html.escape(SORT)}">{heads}</tr>'
    lines = [
        "".join(
            f'<td data-by="{html.escape(str(row.get(name, "")))}">{html.escape(cell(row, name))}</td>'
            for name in known
        )
        for row in rows
    ]
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return f"<table><thead>{head}</thead><tbody>{body}</tbody></table>"


def text(rows: Rows) -> str:
    """The rows below their head, aligned: numbers to the right.

    >>> print(text([{"algorithm": "fedogd", "loss": 0.5}, {"algorithm": "ofedavg", "loss": 12.25}]))
    algorithm     loss
    fedogd      0.5000
    ofedavg    12.2500
    """
    known = columns(rows)
    lines = [[name.replace("_", " ") for name in known]]
    lines += [[cell(row, name) for name in known] for row in rows]
    widths = [max(map(len, each)) for each in zip(*lines, strict=True)]
    aligned = [
        "  ".join(
            each.rjust(width) if numeric else each.ljust(width)
            for each, width, numeric in zip(line, widths, known.values(), strict=True)
        ).rstrip()
        for line in lines
    ]
    return "\n".join(aligned)


def as_csv(rows: Rows) -> str:
    """The rows as CSV, with all digits."""
    written = io.StringIO()
    names = dict.fromkeys(name for row in rows for name in row)
    out = csv.DictWriter(written, list(names), restval="", lineterminator="\n")
    out.writeheader()
    out.writerows(rows)
    return written.getvalue()


def latex(rows: Rows) -> str:
    r"""The rows as a LaTeX table with the lines of booktabs.

    >>> print(latex([{"algorithm": "fedogd", "loss": 0.5, "loss_error": 0.01}]))
    \begin{tabular}{lr}
    \toprule
    algorithm & loss \\
    \midrule
    fedogd & $0.5000 \pm 0.0100$ \\
    \bottomrule
    \end{tabular}
    """
    known = columns(rows)
    head = " & ".join(_escaped(name.replace("_", " ")) for name in known)
    body = [" & ".join(_latex_cell(row, name) for name in known) + r" \\" for row in rows]
    return "\n".join(
        [
            rf"\begin{{tabular}}{{{''.join('r' if numeric else 'l' for numeric in known.values())}}}",
            r"\toprule",
            rf"{head} \\",
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
        ]
    )


def _latex_cell(row: Mapping[str, Any], name: str) -> str:
    shown = _escaped(cell(row, name))
    if not isinstance(row.get(name), int | float):
        return shown
    # A number with an error or a power of ten is a formula; other numbers are text.
    powers = POWER.sub(lambda it: rf" \times 10^{{{it[1].strip('+')}{it[2]}}}", shown)
    formula = powers.replace("±", r"\pm")
    return shown if formula == shown else f"${formula}$"


def _escaped(word: str) -> str:
    return "".join(SPECIAL.get(letter, letter) for letter in word)
