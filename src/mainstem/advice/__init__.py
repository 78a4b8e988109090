"""Advice: an algorithm and its parameters for a stream, from measured constants and the theory."""

from mainstem.advice.ranking import Advice, Row, advise

__all__ = ["Advice", "Row", "advise"]
