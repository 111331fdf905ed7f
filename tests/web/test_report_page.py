"""A report that a command has written, opened in a real browser like any file: offline, and drawn."""

from playwright.sync_api import expect

from traincast.__main__ import run


def test_a_written_page_draws_its_charts_and_says_where_it_comes_from(browser, tmp_path, capsys):
    path = tmp_path / "report.html"
    assert run(["explain", "mnist_cnn", "--on", "T4", "--batch", "64", "--html", str(path)]) == 0
    context = browser.new_context(viewport={"width": 1280, "height": 900}, offline=True)
    page = context.new_page()
    problems = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda one: problems.append(one.url) if not one.url.startswith(("file:", "data:")) else None)
    page.goto(path.as_uri())
    n_charts = page.locator(".chart").count()
    assert n_charts >= 2
    for number in range(n_charts):
        expect(page.locator(".chart").nth(number).locator("svg.main-svg").first).to_be_visible()
    expect(page.locator("footer")).to_contain_text("traincast explain mnist_cnn --on T4 --batch 64")
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280
    page.emulate_media(color_scheme="dark")
    expect(page.locator("body")).to_have_css("background-color", "rgb(13, 17, 23)")
    context.close()
    assert problems == []
