"""Places at which a test can have this process killed."""

import os
import signal

_WANTED = os.environ.get("MAINSTEM_DIE_AT", "")  # "hub after store:17", at its 17th time
_COUNT = {"times": 0}


def reach(place: str) -> None:
    """Die here, if this is the place and the time."""
    if not _WANTED:
        return
    where, _, when = _WANTED.rpartition(":")
    if where == place:
        _COUNT["times"] += 1
        if _COUNT["times"] == int(when):
            os.kill(os.getpid(), signal.SIGKILL)
