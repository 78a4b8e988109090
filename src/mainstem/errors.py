"""Everything mainstem refuses, as one family: catch `MainstemError` to catch them all."""


class MainstemError(Exception):
    """A refusal whose text is one line that says what was wrong and what would be right."""


class BadParameter(MainstemError, ValueError):
    """A factory was given a value it does not take."""

    def __init__(self, text: str, parameter: str | None = None):
        super().__init__(text)
        self.parameter = parameter  # the one that was refused, if it was one of a factory's


class BadData(MainstemError, ValueError):
    """A stream, a file or a sample that cannot be learnt from."""


class BadSpec(MainstemError, ValueError):
    """An experiment file with an unknown key or name, or one that fits no factory."""


class BrokenRun(MainstemError, RuntimeError):
    """A run folder that is corrupted, half-written or of another experiment."""


class FinishedRun(BrokenRun):
    """A run folder that holds just this experiment, finished."""


class DataUnavailable(MainstemError, RuntimeError):
    """A dataset that could not be fetched, or whose content is not what it should be."""
