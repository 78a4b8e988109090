"""Files that a process can do without for a while: logs once that one cannot be written, and once that it can."""

from collections.abc import Callable

from mainstem.engines.federate import event_log


class Writer:
    """Writes what is named `what`. A full disk, a read-only folder or too few descriptors stop nothing."""

    def __init__(self, what: str):
        self._what = what
        self.failed: OSError | None = None  # why the last write has failed

    def __call__(self, write: Callable[[], object]) -> None:
        """Calls `write`."""
        try:
            write()
        except OSError as error:
            if self.failed is None:
                reason = error.strerror or str(error)
                text = f"{self._what} cannot be written: {reason}: the run goes on without"
                event_log.error("file_not_written", text)
            self.failed = error
            return
        if self.failed is not None:
            event_log.warning("file_written_again", f"{self._what} is written again")
        self.failed = None
