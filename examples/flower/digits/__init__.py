"""Handwritten digits at five sites, in Flower."""
