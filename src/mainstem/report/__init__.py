"""Figures of results; nothing is recomputed here."""
