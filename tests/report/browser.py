"""Debian's Chromium without a window: open a page, take pictures of it, and say what it did."""

import base64
import json
import tempfile
from contextlib import contextmanager
from pathlib import Path

DRIVER, BROWSER = Path("/usr/bin/chromedriver"), Path("/usr/bin/chromium")
SWITCHES = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-background-networking"),
    *("--disable-component-update", "--disable-sync", "--no-first-run", "--hide-scrollbars"),
)
OUTSIDE = ("http:", "https:", "ws:", "wss:", "ftp:")


@contextmanager
def browser():
    """A browser that logs its console and its requests."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    with tempfile.TemporaryDirectory() as folder:
        for switch in (*SWITCHES, f"--user-data-dir={folder}"):
            options.add_argument(switch)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
        try:
            yield driver
        finally:
            driver.quit()


def show(driver, path, width, scheme):
    """Open a page at a width and in a color scheme."""
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    driver.get(Path(path).resolve().as_uri())


def take_picture(driver, path, top=0, height=None):
    """Write a picture of the page, or of a part of it."""
    width = driver.execute_script("return innerWidth")
    height = height or driver.execute_script("return document.documentElement.scrollHeight")
    clip = {"x": 0, "y": top, "width": width, "height": height, "scale": 1}
    made = driver.execute_cdp_cmd(
        "Page.captureScreenshot", {"format": "png", "captureBeyondViewport": True, "clip": clip}
    )
    Path(path).write_bytes(base64.b64decode(made["data"]))


def console_messages(driver):
    """What the page wrote to the console."""
    return [entry["message"] for entry in driver.get_log("browser")]


def outside_requests(driver):
    """Addresses outside of this machine that were asked for."""
    events = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    sent = [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]
    return [address for address in sent if address.startswith(OUTSIDE)]
