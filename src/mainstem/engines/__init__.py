"""Where an algorithm runs. Every engine calls exactly the same functions."""
