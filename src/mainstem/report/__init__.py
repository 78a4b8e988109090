"""Figures from numbers; nothing is recomputed here."""
