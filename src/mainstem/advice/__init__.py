"""Good parameters for somebody who only has a stream: constants from a pilot, then the theory."""

from mainstem.advice.ranking import Advice, Row, advise

__all__ = ["Advice", "Row", "advise"]
