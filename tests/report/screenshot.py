"""Draws a page as an image: `python -m tests.report.screenshot PAGE IMAGE`, as `make figures` does."""

import sys
from pathlib import Path

from tests.report.browser import Browser


def main(page: str, image: str) -> None:
    """Writes the upper part of the page as PNG."""
    browser = Browser()
    browser.open(Path(page), height=1300)
    browser.driver.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => setTimeout(done, 200));"
    )
    browser.driver.save_screenshot(image)
    browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
