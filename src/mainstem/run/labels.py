"""Labels of runs in a table or a legend: the algorithm's name, and the parameters that differ."""

from collections.abc import Mapping, Sequence
from typing import Any

from mainstem.code_fingerprint import UNNAMED
from mainstem.report import figures
from mainstem.spec import CODE


def labels(specs: Sequence[Mapping[str, Any]]) -> list[str]:
    """A label for each spec; equal ones are numbered.

    >>> at = {"problem": {"name": "linear"}, "simulate": {}}
    >>> steps = [{**at, "algorithm": [{"name": "fedogd", "step": step}]} for step in (0.1, 0.5)]
    >>> labels([*steps, {**at, "algorithm": [{"name": "ofedavg", "step": 0.1}]}])
    ['fedogd step=0.1', 'fedogd step=0.5', 'ofedavg']
    """
    named: dict[str, list[Mapping[str, Any]]] = {}
    for spec in specs:
        named.setdefault(spec["algorithm"][0]["name"], []).append(spec["algorithm"][0])
    common = [_settings(spec) for spec in specs]
    found = []
    for spec, settings in zip(specs, common, strict=True):
        algorithm = spec["algorithm"][0]
        own = _differing(algorithm, named[algorithm["name"]])
        words = [algorithm["name"], *own, *_differing(settings, common)]
        found.append(" ".join(words))
    return figures.distinct(found)


def _settings(spec: Mapping[str, Any]) -> dict[str, Any]:
    """What besides the algorithm may differ between runs on one stream."""
    chosen = ("dtype", "network", "seed", "seeds", "weights")
    return {"problem": spec["problem"]} | {
        name: spec["simulate"][name] for name in chosen if name in spec["simulate"]
    }


def _differing(table: Mapping[str, Any], others: Sequence[Mapping[str, Any]]) -> list[str]:
    """The entries of a table in which the others differ from each other."""
    names = dict.fromkeys(name for other in others for name in other)
    differing = [
        name for name in names if any(other.get(name) != others[0].get(name) for other in others)
    ]
    return [f"{n}={short(table[n])}" for n in differing if n in table and n != CODE]


def _is_code(given: Any) -> bool:
    """Whether a value of a spec is the fingerprint of a function, which says nothing to a reader."""
    return isinstance(given, str) and (given.startswith(("code ", UNNAMED)) or " sha256 " in given)


def short(given: Any) -> str:
    """A value of a spec in one word: every(period=5) for the table of a part."""
    if isinstance(given, Mapping):
        stated = {k: v for k, v in given.items() if k != "name" and not _is_code(v)}
        inner = ", ".join(f"{k}={short(v)}" for k, v in stated.items())
        return f"{given['name']}({inner})" if "name" in given else f"({inner})"
    if isinstance(given, list):
        text = ", ".join(map(short, given[:4]))
        return f"[{text}{', ...' if len(given) > 4 else ''}]"
    return f"{given:.4g}" if isinstance(given, float) else str(given)
