"""The page in a real browser: what somebody does who has never read a manual."""

import re

import pytest
from open_page import PATIENCE_MS, QUICK, SMALL, answered, card
from playwright.sync_api import expect

import traincast as tc


def test_from_a_choice_to_every_chart(page, page_address):
    page.goto(page_address + SMALL)
    answered(page, "cifar_resnet20")
    expected = tc.forecast("cifar_resnet20", "T4", 64, n_samples=50_000, n_epochs=10, precision="fp32")
    assert card(page, "one-step").inner_text().split("\n")[0] == f"{1e3 * expected.step_s:.1f} ms"
    part = page.locator("#forecast td", has_text="forward").first
    assert part.text_content() == "\u00a0\u00a0forward"  # plain spaces would not set it in below the step
    for section in ("forecast", "plan", "explain", "layers", "scale", "memory"):
        expect(page.locator(f"#{section} .chart svg.main-svg").first).to_be_visible()
    expect(page.locator("#plan")).to_contain_text("cheapest")
    expect(page.locator("#explain figcaption", has_text="Roofline")).to_be_visible()
    page.get_by_role("spinbutton", name="Batch").fill("128")
    page.get_by_role("spinbutton", name="Batch").press("Enter")
    expect(page.locator("#forecast h3").first).to_have_text("cifar_resnet20 on T4, batch 128", timeout=PATIENCE_MS)


def test_by_keyboard_a_place_is_added_and_removed(page, page_address):
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    page.get_by_label("Device or machine").focus()
    page.keyboard.type("p3.2xlarge")
    page.keyboard.press("Enter")
    expect(page.locator("#forecast .card")).to_have_count(2, timeout=PATIENCE_MS)
    page.get_by_role("button", name="Remove T4").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#forecast .card")).to_have_count(1, timeout=PATIENCE_MS)
    expect(page.locator("#forecast .card h3")).to_have_text("p3.2xlarge: V100-SXM2-16GB")


def test_a_wrong_name_is_a_sentence(page, page_address):
    page.goto(page_address + "?model=resnet5&on=T4&batch_size=8&n_epochs=1")
    expect(page.locator("#forecast .problem")).to_contain_text(
        "No model named 'resnet5'. Close names:", timeout=PATIENCE_MS
    )


def test_names_are_shown_as_text(page, page_address):
    page.goto(page_address + "?model=%3Cimg+src%3Dx+onerror%3Dalert(1)%3E&on=T4")
    expect(page.locator("#forecast .problem")).to_contain_text("<img src=x onerror=alert(1)>", timeout=PATIENCE_MS)
    assert page.locator("#results img").count() == 0


def test_a_wrong_place_is_named_and_the_others_are_answered(page, page_address):
    page.goto(page_address + QUICK.replace("on=T4", "on=T5&on=T4&on=A10"))
    expect(page.locator("#status")).to_have_text("Answered for cifar_resnet20. No answer for T5.", timeout=PATIENCE_MS)
    expect(page.locator("#forecast .card h3")).to_have_text(["T4", "A10"])
    expect(page.locator("#forecast .problem")).to_contain_text("No device or machine named 'T5'.")
    expect(page.locator("#chosen .wrong")).to_have_text("T5×")
    expect(page.locator("#explain h3").first).to_contain_text("on T4")


def test_a_place_that_is_typed_counts_without_being_added(page, page_address):
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    page.get_by_label("Device or machine").fill("A10, V100-SXM2-16GB")
    page.get_by_role("button", name="Forecast").click()
    expect(page.locator("#forecast .card h3")).to_have_text(["T4", "A10", "V100-SXM2-16GB"], timeout=PATIENCE_MS)


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (1920, 1080), (768, 1024), (390, 844)])
def test_the_button_is_in_sight_and_no_answer_is_cut_off(browser, page_address, width, height):
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    page.goto(page_address + SMALL)
    answered(page, "cifar_resnet20")
    button = page.get_by_role("button", name="Forecast").bounding_box()
    assert button["y"] + button["height"] <= height
    rent = page.locator("#plan .scroll").first
    assert rent.evaluate("(one) => one.scrollWidth - one.clientWidth") <= 0
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    context.close()


def test_a_question_that_is_taken_back_is_not_waited_for(page, page_address):
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    page.route("**/api/forecast", lambda _: None)  # never answered
    page.get_by_role("spinbutton", name="Batch").fill("32")
    page.get_by_role("spinbutton", name="Batch").press("Tab")
    answer = page.locator("#forecast .answer")
    expect(answer).to_have_attribute("aria-busy", "true", timeout=PATIENCE_MS)
    page.get_by_role("button", name="Remove T4").click()
    expect(answer).to_have_text("Add a device or a machine first.", timeout=PATIENCE_MS)
    assert answer.get_attribute("aria-busy") is None
    assert "waiting" not in answer.get_attribute("class")


def test_a_server_that_is_gone_or_hangs_is_told_in_the_status_line(page, page_address):
    page.clock.install()
    page.goto(page_address + QUICK)
    page.clock.run_for(1_000)  # the page waits a moment for the next key
    answered(page, "cifar_resnet20")
    page.route("**/api/**", lambda route: None)  # neither answered nor refused
    _ask_for_batch(page, "96")
    expect(page.locator("#status")).to_have_text("Working it out …")
    page.clock.run_for(21_000)
    expect(page.locator("#status")).to_have_text(
        "No answer for 20 seconds: the server is busy, or cannot be reached any more."
    )
    page.unroute("**/api/**")  # lets what was held go on
    answered(page, "cifar_resnet20")
    page.route("**/api/**", lambda route: route.abort("connectionrefused"))
    _ask_for_batch(page, "128")
    expect(page.locator("#status")).to_have_text("The server cannot be reached: is it still running?")
    expect(page.locator("[aria-busy]")).to_have_count(0)


def _ask_for_batch(page, size):
    page.get_by_role("spinbutton", name="Batch").fill(size)
    page.get_by_role("button", name="Forecast").click()


def test_a_field_that_cannot_be_right_is_named_and_old_answers_go(page, page_address):
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    page.get_by_role("spinbutton", name="Batch").fill("0")
    page.get_by_role("spinbutton", name="Batch").press("Tab")
    expect(page.locator("#status")).to_have_text(re.compile("^Batch: .*1"), timeout=PATIENCE_MS)
    expect(page.locator("#forecast .problem")).to_have_text(re.compile("^Batch: "))
    expect(page.locator(".card")).to_have_count(0)
    page.get_by_role("spinbutton", name="Batch").fill("16")
    page.get_by_role("spinbutton", name="Batch").press("Tab")
    answered(page, "cifar_resnet20")


def test_a_plan_is_asked_for_the_step_that_is_chosen(page, page_address):
    page.goto(page_address + SMALL)
    answered(page, "cifar_resnet20")
    with page.expect_request("**/api/plan", timeout=PATIENCE_MS) as asked:
        page.get_by_label("under torch.compile").check()
    assert asked.value.post_data_json["compiled"] is True


def test_on_a_phone_nothing_runs_over_the_edge_by_day_and_by_night(browser, page_address):
    context = browser.new_context(viewport={"width": 360, "height": 740}, is_mobile=True, has_touch=True)
    page = context.new_page()
    page.goto(page_address + QUICK)
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


@pytest.mark.parametrize(("width", "height"), [(1280, 700), (390, 700)])
def test_a_field_that_gets_the_focus_is_in_sight(browser, page_address, width, height):
    context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    page = context.new_page()
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    page.get_by_label("Name").focus()
    hidden = []
    while (name := page.evaluate("document.activeElement.name || document.activeElement.id")) != "spot":
        page.keyboard.press("Tab")
        is_seen = (
            "(() => { const { x, y, width, height } = document.activeElement.getBoundingClientRect();"
            " return document.activeElement.contains(document.elementFromPoint(x + width / 2, y + height / 2)); })()"
        )
        if not page.evaluate(is_seen):
            hidden.append(name)
    assert hidden == []
    context.close()


def test_charts_are_described_and_their_buttons_within_reach(page, page_address):
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    chart = page.get_by_role("group", name="Throughput of cifar_resnet20")
    expect(chart.get_by_role("img", name="samples/s by GPUs: strong, batch 64, weak, 8 per GPU")).to_be_visible()
    chart.get_by_role("button", name="Download plot as a PNG").focus()
    expect(page.locator("#scale .modebar").first).to_have_css("opacity", "1")


_N_LINES = (
    "(all) => all.map((one) => { const words = document.createRange(); words.selectNodeContents(one);"
    " return words.getClientRects().length; })"
)


def test_on_the_smallest_phone_no_remark_runs_over_the_edge_and_no_word_is_broken(browser, page_address):
    context = browser.new_context(viewport={"width": 320, "height": 640}, is_mobile=True, has_touch=True)
    page = context.new_page()
    page.goto(page_address + SMALL + "&on=g5.xlarge&deadline_h=1")
    answered(page, "cifar_resnet20")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == 320
    n_lines = page.locator("#plan .side tbody th").evaluate_all(_N_LINES)
    assert set(n_lines) == {1}
    drawing = page.locator("#explain .chart", has_text="flop a byte").locator(".gridlayer").first
    assert drawing.bounding_box()["height"] > 150
    context.close()


def test_every_field_has_a_name_for_screen_readers(page, page_address):
    page.goto(page_address + QUICK)
    unnamed = page.evaluate(
        "[...document.querySelectorAll('input, select, button')]"
        ".filter((one) => !one.labels?.length && !one.textContent.trim() && !one.ariaLabel).map((one) => one.outerHTML)"
    )
    assert unnamed == []
    assert page.locator("#status").get_attribute("aria-live") == "polite"
