"""The page in a real browser: what somebody does who has never read a manual."""

import re

import pytest
from playwright.sync_api import expect

import traincast as tc

_PATIENCE_MS = 30_000
_SMALL = "?model=cifar_resnet20&on=T4&batch_size=64&n_samples=50000&n_epochs=10&precision=fp32"
_QUICK = "?model=cifar_resnet20&on=T4&batch_size=64&n_epochs=1"  # without samples there is no plan to wait for
_LOG = "step,loss,seconds\n" + "".join(
    f"{step},{0.5 + 4.0 / (1 + step / 50):.5f},{0.25 * step:.2f}\n" for step in range(10, 400, 10)
)


@pytest.fixture(scope="module")
def context(browser):
    made = browser.new_context(viewport={"width": 1280, "height": 900})
    yield made
    made.close()


@pytest.fixture
def page(context):
    """A page whose errors, and whose calls to anybody else, fail the test."""
    problems = []
    opened = context.new_page()
    opened.on("pageerror", lambda error: problems.append(str(error)))
    opened.on("console", lambda one: problems.append(one.text) if "Content Security" in one.text else None)
    opened.on("request", lambda one: problems.append(one.url) if not _is_local(one.url) else None)
    yield opened
    opened.close()
    assert problems == []


def _is_local(url):
    return url.startswith(("http://127.0.0.1:", "data:", "blob:"))


def answered(page, name):
    expect(page.locator("#status")).to_have_text(f"Answered for {name}.", timeout=_PATIENCE_MS)


def card(page, label):
    return page.locator(f"#forecast .card dd.{label}").first


def drop_file(page, selector, name, content):
    """As if a file were dragged there from the desktop."""
    carried = page.evaluate_handle(
        "([name, content]) => { const carried = new DataTransfer(); carried.items.add(new File([content], name));"
        " return carried; }",
        [name, content],
    )
    page.dispatch_event(selector, "drop", {"dataTransfer": carried})


def test_from_a_choice_to_every_chart(page, page_address):
    page.goto(page_address + _SMALL)
    answered(page, "cifar_resnet20")
    expected = tc.forecast("cifar_resnet20", "T4", 64, n_samples=50_000, n_epochs=10, precision="fp32")
    assert card(page, "one-step").inner_text().split("\n")[0] == f"{1e3 * expected.step_s:.1f} ms"
    for section in ("forecast", "plan", "explain", "layers", "scale", "memory"):
        expect(page.locator(f"#{section} .chart svg.main-svg").first).to_be_visible()
    expect(page.locator("#plan")).to_contain_text("cheapest")
    expect(page.locator("#explain figcaption", has_text="Roofline")).to_be_visible()
    page.get_by_role("spinbutton", name="Batch").fill("128")
    page.get_by_role("spinbutton", name="Batch").press("Enter")
    expect(page.locator("#forecast h3").first).to_have_text("cifar_resnet20 on T4, batch 128", timeout=_PATIENCE_MS)


def test_by_keyboard_a_place_is_added_and_removed(page, page_address):
    page.goto(page_address + _QUICK)
    answered(page, "cifar_resnet20")
    page.get_by_label("Device or machine").focus()
    page.keyboard.type("p3.2xlarge")
    page.keyboard.press("Enter")
    expect(page.locator("#forecast .card")).to_have_count(2, timeout=_PATIENCE_MS)
    page.get_by_role("button", name="Remove T4").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#forecast .card")).to_have_count(1, timeout=_PATIENCE_MS)
    expect(page.locator("#forecast .card h3")).to_have_text("p3.2xlarge: V100-SXM2-16GB")


def test_a_shared_link_restores_the_choice(page, page_address, context):
    page.goto(page_address + _SMALL)
    answered(page, "cifar_resnet20")
    page.get_by_role("spinbutton", name="Batch").fill("32")
    page.get_by_label("Precision").select_option("amp-fp16")
    page.get_by_label("Deadline, hours").fill("2.5")
    page.get_by_label("spot prices too").check()
    expect(page.locator("#forecast .subtitle")).to_contain_text("amp-fp16", timeout=_PATIENCE_MS)
    expect(page).to_have_url(re.compile("deadline_h=2.5.*spot=1"), timeout=_PATIENCE_MS)
    link = page.url
    other = context.new_page()
    other.goto(link)
    answered(other, "cifar_resnet20")
    assert other.get_by_role("spinbutton", name="Batch").input_value() == "32"
    assert other.get_by_label("Deadline, hours").input_value() == "2.5"
    assert other.get_by_label("spot prices too").is_checked()
    assert other.locator("#forecast .card").inner_text() == page.locator("#forecast .card").inner_text()
    other.close()


def test_an_uploaded_model_is_forecast(page, page_address, tmp_path):
    tc.load_model("mnist_cnn").save(tmp_path / "mine.trace")
    page.goto(page_address + _QUICK)
    page.get_by_label("or a file").set_input_files(tmp_path / "mine.trace")
    answered(page, "mine.trace")
    assert page.get_by_label("Name").input_value() == "mine.trace"
    expect(page.locator("#forecast h3").first).to_contain_text("mnist_cnn on T4")
    page.reload()
    answered(page, "mine.trace")


def test_a_bad_upload_is_a_sentence(page, page_address, tmp_path):
    (tmp_path / "weights.pt").write_bytes(b"\x80\x04garbage")
    page.goto(page_address + _QUICK)
    page.get_by_label("or a file").set_input_files(tmp_path / "weights.pt")
    sentence = "'weights.pt' is a pickle or an archive, and those are never opened here"
    expect(page.locator("#forecast .problem")).to_contain_text(sentence, timeout=_PATIENCE_MS)
    expect(page.locator("#status")).to_contain_text(sentence)


def test_a_wrong_name_is_a_sentence(page, page_address):
    page.goto(page_address + "?model=resnet5&on=T4&batch_size=8&n_epochs=1")
    expect(page.locator("#forecast .problem")).to_contain_text(
        "No model named 'resnet5'. Close names:", timeout=_PATIENCE_MS
    )


def test_names_are_shown_as_text(page, page_address):
    page.goto(page_address + "?model=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E&on=T4")
    expect(page.locator("#forecast .problem")).to_contain_text("<img src=x onerror=alert(1)>", timeout=_PATIENCE_MS)
    assert page.locator("#results img").count() == 0


def test_a_dropped_log_shows_where_the_run_ends(page, page_address):
    page.goto(page_address + _QUICK)
    page.get_by_role("spinbutton", name="Target").fill("0.8")
    page.get_by_role("spinbutton", name="Steps of the run").fill("2000")
    drop_file(page, "#drop", "run.csv", _LOG)
    expect(page.locator("#converge h3").first).to_have_text("Where run.csv will end", timeout=_PATIENCE_MS)
    expect(page.locator("#converge .chart svg.main-svg").first).to_be_visible()
    expect(page.locator("#converge table").first).to_contain_text("time until then")
    drop_file(page, "#drop", "empty.csv", "")
    expect(page.locator("#converge .problem")).to_have_text("'empty.csv' is empty.", timeout=_PATIENCE_MS)


def test_with_an_earlier_log_the_forecast_tells_when_the_target_is_reached(page, page_address, tmp_path, context):
    (tmp_path / "earlier.csv").write_text(_LOG)
    page.goto(page_address + _QUICK)
    answered(page, "cifar_resnet20")
    page.get_by_role("spinbutton", name="Target").fill("0.8")
    page.get_by_label("Log of an earlier run").set_input_files(tmp_path / "earlier.csv")
    expect(page.locator("#curve-hint")).to_have_text("Told by earlier.csv.", timeout=_PATIENCE_MS)
    expect(card(page, "to-target")).to_be_visible(timeout=_PATIENCE_MS)
    other = context.new_page()
    other.goto(page.url)
    expect(card(other, "to-target")).to_have_text(card(page, "to-target").text_content(), timeout=_PATIENCE_MS)
    other.close()


def test_a_log_that_has_grown_is_to_be_chosen_again(page, page_address, tmp_path):
    log = tmp_path / "run.csv"
    log.write_text(_LOG)
    page.goto(page_address + _QUICK)
    page.get_by_label("Drop a training log here").set_input_files(log)
    expect(page.locator("#converge h3").first).to_have_text("Where run.csv will end", timeout=_PATIENCE_MS)
    log.write_text(_LOG + "400,0.94,100\n")
    page.get_by_role("spinbutton", name="Steps of the run").fill("2000")
    page.get_by_role("spinbutton", name="Steps of the run").press("Tab")
    sentence = "run.csv has changed since it was chosen: choose it or drop it again."
    expect(page.locator("#converge .problem")).to_have_text(sentence, timeout=_PATIENCE_MS)


def test_a_question_that_is_taken_back_is_not_waited_for(page, page_address):
    page.goto(page_address + _QUICK)
    answered(page, "cifar_resnet20")
    page.route("**/api/forecast", lambda _: None)  # never answered
    page.get_by_role("spinbutton", name="Batch").fill("32")
    page.get_by_role("spinbutton", name="Batch").press("Tab")
    answer = page.locator("#forecast .answer")
    expect(answer).to_have_attribute("aria-busy", "true", timeout=_PATIENCE_MS)
    page.get_by_role("button", name="Remove T4").click()
    expect(answer).to_have_text("Add a device or a machine first.", timeout=_PATIENCE_MS)
    assert answer.get_attribute("aria-busy") is None
    assert "waiting" not in answer.get_attribute("class")


def test_a_field_that_cannot_be_right_is_named_and_old_answers_go(page, page_address):
    page.goto(page_address + _QUICK)
    answered(page, "cifar_resnet20")
    page.get_by_role("spinbutton", name="Batch").fill("0")
    page.get_by_role("spinbutton", name="Batch").press("Tab")
    expect(page.locator("#status")).to_have_text(re.compile("^Batch: .*1"), timeout=_PATIENCE_MS)
    expect(page.locator("#forecast .problem")).to_have_text(re.compile("^Batch: "))
    expect(page.locator(".card")).to_have_count(0)
    page.get_by_role("spinbutton", name="Batch").fill("16")
    page.get_by_role("spinbutton", name="Batch").press("Tab")
    answered(page, "cifar_resnet20")


def test_a_plan_is_asked_for_the_step_that_is_chosen(page, page_address):
    page.goto(page_address + _SMALL)
    answered(page, "cifar_resnet20")
    with page.expect_request("**/api/plan", timeout=_PATIENCE_MS) as asked:
        page.get_by_label("under torch.compile").check()
    assert asked.value.post_data_json["compiled"] is True


def test_on_a_phone_nothing_runs_over_the_edge_by_day_and_by_night(browser, page_address):
    context = browser.new_context(viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    page = context.new_page()
    page.goto(page_address + _QUICK)
    answered(page, "cifar_resnet20")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    label = page.locator("#forecast .chart .xtick text").first
    for scheme, paper, ink in (
        ("light", "rgb(255, 255, 255)", "rgb(27, 31, 36)"),
        ("dark", "rgb(13, 17, 23)", "rgb(230, 237, 243)"),
    ):
        page.emulate_media(color_scheme=scheme)
        expect(page.locator("body")).to_have_css("background-color", paper)
        expect(label).to_have_css("fill", ink)
    context.close()


def test_every_field_has_a_name_for_screen_readers(page, page_address):
    page.goto(page_address + _QUICK)
    unnamed = page.evaluate(
        "[...document.querySelectorAll('input, select, button')]"
        ".filter((one) => !one.labels?.length && !one.textContent.trim() && !one.ariaLabel).map((one) => one.outerHTML)"
    )
    assert unnamed == []
    assert page.locator("#status").get_attribute("aria-live") == "polite"
