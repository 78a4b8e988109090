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


def first_line(error: BaseException, *, named: bool = False, most: int | None = None) -> str:
    """The first line of an error's text, cut after `most` letters, and the name of its class if it has none.

    With `named`, the name is before the text.

    >>> first_line(ValueError("no number\\nof this kind")), first_line(ValueError("no number"), named=True)
    ('no number', 'ValueError: no number')
    >>> first_line(MemoryError()), first_line(MemoryError(), named=True)
    ('MemoryError', 'MemoryError')
    """
    name = type(error).__name__
    text = next((line for line in str(error).splitlines() if line.strip()), "")
    if most is not None and len(text) > most:
        text = f"{text[:most]}..."
    return f"{name}: {text}" if named and text else text or name
