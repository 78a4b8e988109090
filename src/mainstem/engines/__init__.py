"""Engines that run an algorithm. Every engine calls exactly the same functions of it."""
