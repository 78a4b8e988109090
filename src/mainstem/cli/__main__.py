"""Entry point: `python -m mainstem.cli` is `mainstem`."""

from mainstem.cli import main

main()
