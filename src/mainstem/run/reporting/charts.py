"""Charts of a report: curves of runs, thinned and packed for the page."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mainstem.report import figures
from mainstem.report.decimation import kept
from mainstem.report.page import packed, rounded

BYTES = 2_000_000  # of the numbers of all curves of a page
POINT = 11 + 3 * 6  # bytes: x, and the mean with its band
MOST, LEAST = 20_000, 100  # points of a curve


class Curve(NamedTuple):
    """A line of a chart."""

    run: int  # the number of the run: its colour
    name: str
    x: np.ndarray
    values: np.ndarray  # [seeds, points]
    dashed: bool = False


class Chart(NamedTuple):
    """Curves in one picture."""

    title: str
    across: str
    label: str
    curves: list[Curve]
    log: str = ""  # the axes that begin with a logarithmic scale
    note: str = ""
    names: Sequence[
        str
    ] = ()  # of the places 0, 1, ... of the horizontal axis, if they are no numbers


class Section(NamedTuple):
    """A part of the page."""

    id: str
    title: str
    charts: Sequence[Chart] = ()
    texts: Sequence[str] = ()
    tables: Sequence[dict[str, Any]] = ()
    images: Sequence[dict[str, str]] = ()


def texts(found: Mapping[str, str]) -> list[str]:
    """A sentence for each run, or one if all say the same.

    >>> texts({"a": "no delays", "b": "no delays"}), texts({"a": "no delays", "b": "2 steps"})
    (['All runs: no delays.'], ['a: no delays.', 'b: 2 steps.'])
    """
    if len(found) > 1 and len(set(found.values())) == 1:
        return [f"All runs: {next(iter(found.values()))}."]
    return [f"{label}: {each}." for label, each in found.items()]


def mean_of_known(values: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    """The mean over the values that are not NaN; NaN where there are none."""
    counts = np.sum(~np.isnan(values), axis=axis)
    sums = np.nansum(values, axis=axis, dtype=np.float64)
    return np.asarray(sums / np.where(counts > 0, counts, np.nan))


def in_order(
    title: str, label: str, means: Mapping[tuple[int, str], np.ndarray], note: str = ""
) -> Chart:
    """The clients in the order of their means, a curve for each run, by its number and name."""
    curves = []
    for (run, name), each in means.items():
        shares = 100 * (np.arange(len(each)) + 0.5) / len(each)
        curves.append(Curve(run, name, shares, np.sort(each)[None]))
    return Chart(f"{title} of each client", "share of the clients, %", label, curves, note=note)


def points(curves: int) -> int:
    """How many points each of so many curves may have."""
    return max(LEAST, min(MOST, BYTES // (POINT * max(1, curves))))


def drawn(chart: Chart, most: int) -> dict[str, Any]:
    """A chart with its curves thinned to `most` points."""
    lines = [_line(curve, most) for curve in chart.curves]
    return {
        "title": chart.title[0].upper() + chart.title[1:],
        "note": chart.note,
        "x": {"label": chart.across, "log": "x" in chart.log, "names": list(chart.names)},
        "y": {"label": figures.title_of(chart.label), "log": "y" in chart.log},
        "lines": lines,
    }


def _line(curve: Curve, most: int) -> dict[str, Any]:
    with np.errstate(invalid="ignore", over="ignore"):  # a run that diverged
        mean = curve.values.mean(axis=0)
        places = kept(mean, most)
        values = curve.values[:, places]
        found: dict[str, Any] = {"name": curve.name, "colour": curve.run, "dashed": curve.dashed}
        found |= {"x": packed(curve.x[places]), "y": rounded(mean[places])}
        if len(values) > 1:
            error = 2 * values.std(axis=0, ddof=1) / np.sqrt(len(values))
            found["low"], found["high"] = (rounded(mean[places] + sign * error) for sign in (-1, 1))
    return found
