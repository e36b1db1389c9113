"""The report in a real browser, at the width of a phone and of a desktop, light and dark; run by check.py --browser.

Pictures of the pages are written to build/browser, to be looked at.
"""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calibayes.datasets import load_penguins
from calibayes.report import report_on_table
from tests.report.browser import (
    BROWSER,
    DRIVER,
    browser,
    console_messages,
    outside_requests,
    show,
    take_picture,
)
from tests.report.test_report import hostile_table

pytest.importorskip("selenium")
pytestmark = [
    pytest.mark.skipif("CALIBAYES_BROWSER" not in os.environ, reason="run by check.py --browser"),
    pytest.mark.skipif(
        not (BROWSER.exists() and DRIVER.exists()), reason="there is no Chromium with its driver"
    ),
]
PICTURES = Path(__file__).parents[2] / "build" / "browser"
WIDTHS = (390, 1280)
NOT_NAMED = """
return [...document.querySelectorAll("svg, img, canvas")].filter((picture) =>
  picture.getAttribute("aria-hidden") !== "true" &&
  !(picture.getAttribute("role") === "img" && picture.querySelector("title")?.textContent &&
    picture.querySelector("desc")?.textContent)).length
"""
BEYOND = """
const right = document.documentElement.clientWidth + 1;
return [...document.querySelectorAll("main *")].filter((part) =>
  !part.closest(".scroll, pre, svg, .hidden, details:not([open]), thead") && part.getBoundingClientRect().right > right)
  .map((part) => part.tagName + "." + part.className)
"""
COVERED = """
return [...document.querySelectorAll("svg[role=img] text")].filter((words) => {
  const box = words.getBoundingClientRect(), frame = words.closest("figure").getBoundingClientRect();
  return box.width && (box.left < frame.left || box.right > frame.right + 1);
}).map((words) => words.textContent)
"""
CONTRAST = """
const style = getComputedStyle(document.body), channels = (text) => text.match(/[0-9.]+/g).map(Number);
const light = (text) => { const [r, g, b] = channels(text).map((c) => {
  c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; }); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const ground = light(style.backgroundColor);
return [...document.querySelectorAll("h1, p, .note, a:not(.skip), th, figcaption, summary, dt")].map((part) => {
  const ink = light(getComputedStyle(part).color);
  return (Math.max(ink, ground) + 0.05) / (Math.min(ink, ground) + 0.05); }).reduce((a, b) => Math.min(a, b));
"""


def penguins():
    return report_on_table(*load_penguins(return_X_y=True), title="Penguins")


def adult():
    path = Path(os.environ.get("CALIBAYES_DATA", "")) / "adult.csv.gz"
    if not path.exists():
        pytest.skip("CALIBAYES_DATA has no adult.csv.gz")
    frame = pd.read_csv(path)
    return report_on_table(frame.drop(columns="target"), frame["target"], title="adult", n_jobs=2)


def hostile():
    return report_on_table(*hostile_table(), models=["KernelNB"], folds=2, title="</title><script>x</script>")


def wide():
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = pd.DataFrame(rng.normal(size=(300, 2000)) + y[:, None] * (rng.random(2000) < 0.01))
    return report_on_table(X, y, models=["GaussianNB", "KernelNB"], folds=2, title="2,000 columns")


@pytest.fixture(scope="module", params=[penguins, hostile, wide, adult], ids=lambda make: make.__name__)
def page(request, tmp_path_factory):
    PICTURES.mkdir(parents=True, exist_ok=True)
    report = request.param()
    assert len(report.html.encode()) < 2_000_000
    return request.param.__name__, report.save(tmp_path_factory.mktemp("report") / "report.html")


def test_the_page_is_in_order_at_every_width_and_color(page):
    name, path = page
    with browser() as driver:
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                show(driver, path, width, scheme)
                place = f"{name} at {width} pixels, {scheme}"
                assert driver.execute_script("return document.documentElement.scrollWidth") <= width, place
                assert driver.execute_script(BEYOND) == [], place
                assert driver.execute_script(COVERED) == [], place
                assert driver.execute_script(NOT_NAMED) == 0, place
                assert driver.execute_script(CONTRAST) > 4.5, place
                take_picture(driver, PICTURES / f"{name}-{width}-{scheme}.png")
        assert console_messages(driver) == []
        assert outside_requests(driver) == []


def test_the_switch_the_search_and_the_copy_button_work(page):
    _, path = page
    with browser() as driver:
        show(driver, path, 1280, "light")
        color = "return getComputedStyle(document.body).backgroundColor"
        before = driver.execute_script(color)
        driver.execute_script('document.getElementById("scheme").click()')
        assert driver.execute_script(color) != before
        field = driver.find_element("id", "search")
        first = driver.find_element("css selector", "#all-columns tbody th").text
        field.send_keys(first.replace("…", "")[:20])
        shown = driver.execute_script(
            'return [...document.querySelectorAll("#all-columns tbody tr")].filter((row) => !row.hidden).length'
        )
        total = driver.execute_script('return document.querySelectorAll("#all-columns tbody tr").length')
        assert 1 <= shown <= total
        field.send_keys(" no such column")
        assert driver.find_element("id", "search-count").text.startswith("0 of ")
        button = driver.find_element("css selector", "[data-copies]")
        driver.execute_script('arguments[0].scrollIntoView({behavior: "instant", block: "center"})', button)
        button.click()
        assert "from calibayes" in driver.execute_script("return getSelection().toString()")
        assert console_messages(driver) == []


def test_the_first_tab_stop_skips_to_the_content(page):
    _, path = page
    from selenium.webdriver.common.keys import Keys

    with browser() as driver:
        show(driver, path, 1280, "light")
        driver.find_element("tag name", "body").send_keys(Keys.TAB)
        assert driver.switch_to.active_element.text == "Skip to content"
        outline = "return getComputedStyle(document.activeElement).outlineStyle"
        assert driver.execute_script(outline) == "solid"
        driver.switch_to.active_element.send_keys(Keys.ENTER)
        assert driver.switch_to.active_element.get_attribute("id") == "content"
