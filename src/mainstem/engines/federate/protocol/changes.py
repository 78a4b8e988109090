"""Changes of a run while it lives: what may change, and the next revision of its document.

Messages carry a digest of what may not change: problem, algorithm, pace, precision, seed, names of features and
labels. A run of the same name with another digest is another run.
"""

import copy
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mainstem import check, experiment
from mainstem.engines.federate.protocol.rules import CHANGEABLE
from mainstem.engines.federate.protocol.run_document import RunDocument, parse
from mainstem.errors import BadSpec


class Change(NamedTuple):
    """What an operator asks for."""

    set: Sequence[str] = ()  # key=value, such as federate.deadline=2 and algorithm.step=0.1
    add: Sequence[str] = ()  # names of clients
    remove: Sequence[str] = ()
    rename: Mapping[str, str] = {}  # new names, by the present ones

    def __str__(self) -> str:
        words = [*self.set, *(f"add {name}" for name in self.add)]
        words += [f"remove {name}" for name in self.remove]
        return ", ".join(words + [f"rename {old} to {new}" for old, new in self.rename.items()])


def changed(document: RunDocument, change: Change) -> RunDocument:
    """The next revision of a document. Refuses a change of what may not change."""
    if not any(change):
        raise BadSpec(f"{document.rules.run}: the change is empty")
    content = copy.deepcopy(dict(document.content))
    for each in change.set:
        experiment.apply(content, each)
    roster = list(content["federate"]["clients"])
    for parameter, names in (("remove", change.remove), ("rename", change.rename)):
        for name in names:
            if name not in roster:
                raise check.refuse("change", parameter, "name clients of the run", name)
    roster = [change.rename.get(name, name) for name in roster if name not in change.remove]
    content["federate"]["clients"] = [*roster, *change.add]
    return revised(document, content, change.rename)


def revised(
    document: RunDocument, content: Mapping[str, Any], rename: Mapping[str, str] = {}
) -> RunDocument:
    """The document with another content, as its next revision."""
    run = document.rules.run
    if differing := ", ".join(sorted(_differing(document.content, content))):
        raise BadSpec(
            f"{run}: {differing} cannot change while the run lives: choose another name for a new run"
        )
    found = parse(content, run)
    former = {new: document.formerly.get(old, old) for old, new in rename.items()}
    kept = {name: old for name, old in document.formerly.items() if name in found.clients}
    return found._replace(
        revision=document.revision + 1, formerly=kept | former, file=document.file
    )


def continued(stored: Mapping[str, Any], started: RunDocument) -> tuple[RunDocument, RunDocument]:
    """The document of a stored run, and the one with which it goes on when its hub is started with another.

    What was changed in the file since the last start is applied; what was changed while the run lived stays.
    """
    before = parse(stored["content"], started.rules.run)._replace(
        revision=stored["revision"], formerly=stored["formerly"], file=stored["file"]
    )
    content = merged(before.file, before.content, started.content)
    if content == before.content:
        return before, before._replace(file=started.content)
    return before, revised(before, content)._replace(file=started.content)


def merged(start: Mapping[str, Any], now: Mapping[str, Any], file: Mapping[str, Any]) -> Any:
    """The content of a run whose file was edited: what differs from `start` in the file is applied to `now`.

    >>> merged({"deadline": 1, "steps": 5}, {"deadline": 2, "steps": 5}, {"deadline": 1, "steps": 9})
    {'deadline': 2, 'steps': 9}
    """
    result = dict(now)
    for name in start.keys() | file.keys():
        before, after = start.get(name), file.get(name)
        if before == after:
            continue
        if (
            isinstance(before, Mapping)
            and isinstance(after, Mapping)
            and isinstance(now.get(name), Mapping)
        ):
            result[name] = merged(before, now[name], after)
        elif after is None:
            result.pop(name, None)
        else:
            result[name] = after
    return result


def _differing(before: Any, after: Any, where: str = "") -> Iterable[str]:
    """The places at which two contents differ, without those that may."""
    if not (isinstance(before, Mapping) and isinstance(after, Mapping)):
        if json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True):
            yield where
        return
    for name in before.keys() | after.keys():
        place = f"{where}.{name}" if where else name
        if place not in CHANGEABLE:
            yield from _differing(before.get(name), after.get(name), place)
