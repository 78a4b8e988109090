"""Exceptions of mainstem: all are subclasses of `MainstemError`."""


class MainstemError(Exception):
    """An error whose text is one line that states what was wrong and what would be right."""


class BadParameter(MainstemError, ValueError):
    """A factory was given a value that it does not accept."""

    def __init__(self, text: str, parameter: str | None = None):
        super().__init__(text)
        self.parameter = parameter  # the rejected parameter, if it is one of a factory


class BadData(MainstemError, ValueError):
    """A stream, a file or a sample that cannot be used."""


class BadSpec(MainstemError, ValueError):
    """An experiment file with an unknown key or name, or one that fits no factory."""


class BrokenRun(MainstemError, RuntimeError):
    """A run folder that is corrupted, incomplete, locked or of another experiment."""


class FinishedRun(BrokenRun):
    """A run folder that contains exactly this experiment, finished."""


class NotFinite(MainstemError, ArithmeticError):
    """A client's model or prediction that is not finite."""


class Diverged(UserWarning):
    """A run whose losses stopped being finite."""


class OnEdge(UserWarning):
    """A sweep whose best point lies on the edge of its grid."""


class LostHost(MainstemError, RuntimeError):
    """A host of a simulation on several hosts that is gone."""


class DataUnavailable(MainstemError, RuntimeError):
    """A dataset that could not be fetched, or whose content is not the expected one."""
