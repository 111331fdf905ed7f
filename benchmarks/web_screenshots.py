"""Pictures of the page and of a report for docs/:  python benchmarks/web_screenshots.py [--browser CHROMIUM]"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from traincast.__main__ import run
from web_speed import server, settle

IMAGES = Path(__file__).resolve().parents[1] / "docs" / "images"
DESKTOP = {"viewport": {"width": 1280, "height": 860}}
SCREENS: dict[str, dict[str, Any]] = {
    "desktop": DESKTOP,
    "dark": {**DESKTOP, "color_scheme": "dark"},
    "phone": {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True},
}
# A made-up run, so that the picture is the same every time.
LOG = "step,loss,seconds\n" + "".join(
    f"{step},{0.35 + 3.2 * (1 + step / 90) ** -0.8 + 0.03 * (step * 7 % 5 - 2):.4f},{0.4 * step:.1f}\n"
    for step in range(10, 900, 10)
)


def main() -> None:
    """Opens the page as it starts, and drops a log on it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--browser", default="/usr/bin/chromium")
    options = parser.parse_args()
    with server() as (url, process), sync_playwright() as driver:
        settle(process)
        browser = driver.chromium.launch(executable_path=options.browser, args=["--no-sandbox"])
        for name, screen in SCREENS.items():
            page = browser.new_context(**screen).new_page()
            page.goto(url)
            expect(page.locator("#status")).to_contain_text("Answered", timeout=60_000)
            if name == "phone":  # below the form, where the answers begin
                page.locator("#forecast").evaluate("(section) => section.scrollIntoView({behavior: 'instant'})")
            page.wait_for_timeout(400)
            page.screenshot(path=IMAGES / f"serve_{name}.png")
            if name == "desktop":
                drop_log(page)
        show_report(browser)
        browser.close()


def show_report(browser: Browser) -> None:
    """What a command writes, opened as a file."""
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # so that the command at the foot of the page is what a user would type
        assert run(["explain", "resnet50", "--on", "T4", "--batch", "64", "--html", "report.html"]) == 0
        page = browser.new_context(viewport={"width": 1280, "height": 1000}).new_page()
        page.goto((Path(folder) / "report.html").as_uri())
        expect(page.locator(".chart svg.main-svg").first).to_be_visible()
        page.wait_for_timeout(400)
        page.screenshot(path=IMAGES / "report.png", full_page=True)


def drop_log(page: Page) -> None:
    page.get_by_label("Target").fill("0.6")
    page.get_by_role("spinbutton", name="Steps of the run").fill("4000")
    page.get_by_role("spinbutton", name="USD per hour").fill("3.06")
    file = {"name": "run.csv", "mimeType": "text/csv", "buffer": LOG.encode()}
    page.get_by_label("Drop a training log").set_input_files(files=[file])
    expect(page.locator("#converge .chart svg.main-svg").first).to_be_visible(timeout=60_000)
    page.wait_for_timeout(400)
    page.locator("#converge").screenshot(path=IMAGES / "serve_log.png")


if __name__ == "__main__":
    main()
