"""Chromium, driven by Selenium: pages as a reader sees them."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

AXE = Path(__file__).parents[2] / "build/browser/node_modules/axe-core/axe.min.js"
PATIENCE = 30  # seconds until a page must be drawn, on a busy machine
DRAWN = (  # a report sets `report` when it is complete, the live page `live`; other pages have no place for one
    "return document.readyState === 'complete'"
    " && ((window.report ?? window.live) !== undefined || document.getElementById('page') === null);"
)
MISSING = (
    "install Chromium with its driver and axe-core: as root `tools/browser.sh` does it on Debian; elsewhere put "
    "`chromium` and `chromedriver` on the PATH, and run `npm install --prefix build/browser axe-core`"
)


def missing() -> str:
    """What the tests of pages lack on this machine, in words; in CI nothing may."""
    lacks = [name for name in ("chromium", "chromedriver") if shutil.which(name) is None]
    lacks += [] if AXE.exists() else ["axe-core"]
    if lacks and os.environ.get("CI"):
        raise pytest.UsageError(
            f"CI runs the tests of pages, and lacks {', '.join(lacks)}: {MISSING}"
        )
    return ", ".join(lacks)


class Browser:
    """A browser without a window."""

    def __init__(self, driver: str | None = None) -> None:
        """A browser that `driver` starts, by default `chromedriver`."""
        options = webdriver.ChromeOptions()
        options.binary_location = str(shutil.which("chromium"))
        for each in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage"):
            options.add_argument(f"--{each}")
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options, Service(driver or shutil.which("chromedriver")))

    def open(
        self, page: Path | str, width: int = 1280, dark: bool = False, height: int = 900
    ) -> None:
        """Opens a page at this width; what the logs have so far is dropped."""
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        self.driver.get("about:blank")  # an earlier page whose server has gone says so until then
        for kind in ("browser", "performance"):
            self.driver.get_log(kind)
        self.driver.get(page.absolute().as_uri() if isinstance(page, Path) else page)
        WebDriverWait(self.driver, PATIENCE).until(lambda driver: driver.execute_script(DRAWN))

    def run(self, script: str, *given: Any) -> Any:
        """The value of a script's `return`."""
        return self.driver.execute_script(script, *given)

    def messages(self) -> list[Any]:
        """What the page has written to the console: warnings and errors of the browser among it."""
        return list(self.driver.get_log("browser"))

    def requests(self) -> list[str]:
        """The addresses that the page has asked for."""
        events = [
            json.loads(each["message"])["message"] for each in self.driver.get_log("performance")
        ]
        sent = [each["params"] for each in events if each["method"] == "Network.requestWillBeSent"]
        return [each["request"]["url"] for each in sent]

    def faults(self) -> list[str]:
        """The serious faults of accessibility that axe-core finds."""
        self.run(AXE.read_text())
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run().then((all) => done(all.violations));"
        )
        return [
            f"{each['id']}: {each['nodes'][0]['html']}"
            for each in found
            if each["impact"] in ("serious", "critical")
        ]

    def inked(self, chart: int) -> int:
        """How many points of a chart's canvas are not empty."""
        return int(
            self.run(
                "const canvas = document.querySelectorAll('canvas')[arguments[0]];"
                "const {data} = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);"
                "let found = 0; for (let n = 3; n < data.length; n += 4) found += data[n] > 0; return found;",
                chart,
            )
        )

    def close(self) -> None:
        """Ends the browser."""
        self.driver.quit()
