"""Points of the live page's charts: what happened in a run between two moments of its timeline."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

Moment = Mapping[str, Any]
Point = dict[
    str, dict[str, list[float]]
]  # of each chart and line: a value, and for a band its ends

WINDOW = 10.0  # seconds, at least, over which losses and rates are taken
OF_ALL = (0, 6, 7)  # colours of lines of all sites, beside lines of single ones
FEW = 8  # sites, up to which each has a line of its own
CHARTS = {
    "loss": ("Loss, over the last ten seconds", "loss"),
    "candidate": ("Against the candidate, since it was ordered", "mean loss"),
    "alone": ("Against each site alone, over the last ten seconds", "mean loss"),
    "merges": ("Merges", "a second"),
    "norm": ("Length of the uploads", "norm"),
    "staleness": ("Merges that the model of an upload was behind", "merges"),
    "refused": ("Refused uploads, by reason", "uploads"),
    "bytes": ("Sent", "MB"),
    "states": ("Sites", "sites"),
}  # title, and label of y


def point(now: Moment, before: Moment | None, sites: Sequence[str]) -> Point:
    """The values of the lines at a moment; `before`: one that is earlier. `sites` have lines of their own."""
    shown = [*sites] if len(now["clients"]) > FEW else [*now["clients"]]
    found: Point = {
        "norm": _lines(now["clients"], np.asarray(now["norm"], float), shown),
        "staleness": _lines(now["clients"], np.asarray(now["staleness"], float), shown),
        "refused": {reason: [float(count)] for reason, count in now["refused"].items()},
        "states": {state: [float(count)] for state, count in now["states"].items()},
        "bytes": {
            "up, of all sites": [sum(map(float, now["bytes_up"])) / 1e6],
            "down, to all sites": [now["bytes_down"] / 1e6],
        },
    }
    candidate = now["candidate"]
    if candidate is not None and candidate["samples"]:
        found["candidate"] = {
            "the model": [candidate["loss"] / candidate["samples"]],
            "the candidate": [candidate["candidate"] / candidate["samples"]],
        }
    if before is None:
        return found
    sums, were = now.get("alone"), before.get("alone")  # not in moments of earlier versions
    if sums is not None and were is not None and sums["clients"] == were["clients"]:
        count = sums["samples"] - were["samples"]
        if count > 0:  # else some began anew
            lines = {"together": "loss", "alone": "alone"}
            found["alone"] = {k: [(sums[v] - were[v]) / count] for k, v in lines.items()}
    merges = (now["version"] - before["version"]) / (now["time"] - before["time"])
    if merges >= 0:
        found["merges"] = {"merges": [merges]}
    samples, losses = _since(now, before, "samples"), _since(now, before, "loss")
    learnt = samples > 0
    if learnt.any():
        mean = np.where(learnt, losses / np.where(learnt, samples, 1.0), np.nan)
        all_sites = float(losses[learnt].sum() / samples[learnt].sum())
        found["loss"] = {"all sites": [all_sites]} | _lines(now["clients"], mean, shown)
    return found


def earlier(moments: Sequence[Moment], n: int) -> Moment | None:
    """The moment that moment n is compared with: at least a window before it, if there is one."""
    for m in range(n - 1, -1, -1):
        if moments[n]["time"] - moments[m]["time"] >= WINDOW:
            return moments[m]
    return moments[0] if n else None


def charts(moments: Sequence[Moment], sites: Sequence[str]) -> list[dict[str, Any]]:
    """The charts of a timeline, as the page draws them; a site has the same colour in all of them."""
    points = [point(each, earlier(moments, n), sites) for n, each in enumerate(moments)]
    times = [each["time"] for each in moments]
    everyone = dict.fromkeys(name for each in moments for name in each["clients"])
    colours = {name: n + 1 for n, name in enumerate(sites if len(everyone) > FEW else everyone)}
    return [
        _chart(name, times, [each.get(name, {}) for each in points], colours) for name in CHARTS
    ]


def _chart(
    name: str,
    times: list[float],
    points: list[dict[str, list[float]]],
    colours: Mapping[str, int],
) -> dict[str, Any]:
    names = list(dict.fromkeys(line for each in points for line in each))
    own = [line for line in names if line not in colours]  # of no site
    palette = range(len(own)) if own == names else OF_ALL
    colours = {**colours, **dict(zip(own, palette, strict=False))}
    lines = []
    for line in names:
        rows = [each.get(line, []) for each in points]
        found: dict[str, Any] = {"name": line, "colour": colours[line]}
        width = max(map(len, rows))
        for place, key in enumerate(("y", "low", "high")[:width]):
            found[key] = [row[place] if place < len(row) else None for row in rows]
        lines.append(found)
    title, label = CHARTS[name]
    x, y = {"label": "time", "time": True, "values": times}, {"label": label}
    return {"id": name, "title": title, "x": x, "y": y, "lines": lines, "note": ""}


def _lines(
    names: Sequence[str], values: np.ndarray, shown: Sequence[str]
) -> dict[str, list[float]]:
    """The middle half of the sites, where there are many, and the values of those that are shown."""
    found: dict[str, list[float]] = {}
    known = values[np.isfinite(values)]
    if len(names) > FEW and known.size:
        low, middle, high = np.quantile(known, (0.25, 0.5, 0.75)).tolist()
        found["median site, and the middle half"] = [middle, low, high]
        found["largest of all"] = [float(known.max())]
    places = {name: k for k, name in enumerate(names)}
    return found | {name: [float(values[places[name]])] for name in shown if name in places}


def _since(now: Moment, before: Moment, column: str) -> np.ndarray:
    """What each site has counted since an earlier moment; nothing where it began anew or was not there."""
    values = np.asarray(now[column], float)
    if now["clients"] == before["clients"]:
        was = np.asarray(before[column], float)
    else:
        known = dict(zip(before["clients"], before[column], strict=True))
        was = np.array([known.get(name, np.nan) for name in now["clients"]])
    return np.nan_to_num(values - was)
