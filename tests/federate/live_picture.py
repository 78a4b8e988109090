"""Draws the live page of a run as an image: `python -m tests.federate.live_picture IMAGE`, in `make figures`."""

import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import mainstem as ms
from tests.report.browser import Browser

SITES = {"north": 0.08, "south": 0.12, "harbour": 0.3}  # seconds between two samples
SECONDS = 75.0
CONTENT = {
    "problem": {"name": "softmax", "features": 64, "classes": 10},
    "algorithm": {"name": "fedogd", "step": 0.3},
    "federate": {"run": "digits", "clients": [*SITES], "deadline": 1.0},
}


def live(url: str, secret: Path, site: str, end: float) -> None:
    """Learns until the end."""
    rows = ms.streams.digits(clients=1).rows()
    draw = np.random.default_rng(len(site))
    with ms.join(url, run="digits", client=site, credentials=secret, alone=0.1) as learner:
        while time.monotonic() < end:
            n = draw.integers(len(rows.hidden))
            learner.learn_one(rows.shown[n], rows.hidden[n])
            time.sleep(SITES[site])


def main(image: str) -> None:
    """Writes the upper part of the page as PNG."""
    pages: list[str] = []
    end = time.monotonic() + SECONDS
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        settings = {"dashboard": "127.0.0.1:0", "page_ready": pages.append}
        with ms.serve(CONTENT, folder=folder, **settings) as hub:
            given = hub.url, folder / "private.creds"
            sites = [threading.Thread(target=live, args=(*given, each, end)) for each in SITES]
            for each in sites:
                each.start()
            time.sleep(SECONDS / 2)
            hub.order("candidate")
            time.sleep(SECONDS / 2 - 10)
            browser = Browser()
            browser.open(f"{pages[0]}#run=digits", height=1700)
            time.sleep(4)
            browser.driver.save_screenshot(image)
            browser.close()
            for each in sites:
                each.join()


if __name__ == "__main__":
    main(*sys.argv[1:])
