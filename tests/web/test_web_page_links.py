"""Links to a choice: what they restore, and what they say that is not understood."""

import re

import pytest
from open_page import PATIENCE_MS, QUICK, SMALL, answered
from playwright.sync_api import expect


def test_a_shared_link_restores_the_choice(page, page_address, context):
    page.goto(page_address + SMALL)
    answered(page, "cifar_resnet20")
    page.get_by_role("spinbutton", name="Batch").fill("32")
    page.get_by_label("Precision").select_option("amp-fp16")
    page.get_by_label("Deadline, hours").fill("2.5")
    page.get_by_label("spot prices too").check()
    expect(page.locator("#forecast .subtitle")).to_contain_text("amp-fp16", timeout=PATIENCE_MS)
    expect(page).to_have_url(re.compile("deadline_h=2.5.*spot=1"), timeout=PATIENCE_MS)
    link = page.url
    other = context.new_page()
    other.goto(link)
    answered(other, "cifar_resnet20")
    assert other.get_by_role("spinbutton", name="Batch").input_value() == "32"
    assert other.get_by_label("Deadline, hours").input_value() == "2.5"
    assert other.get_by_label("spot prices too").is_checked()
    assert other.locator("#forecast .card").inner_text() == page.locator("#forecast .card").inner_text()
    other.close()


def test_the_link_that_is_copied_holds_what_was_typed_last(browser, page_address):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page = context.new_page()
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    page.get_by_role("spinbutton", name="Batch").fill("32")
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#status")).to_have_text("The link is copied: it restores this choice.")
    assert "batch_size=32" in page.evaluate("navigator.clipboard.readText()")
    context.close()


@pytest.mark.parametrize(
    ("link", "words"),
    [
        ("&precision=fp13", "Precision 'fp13'"),
        ("&provider=Nobody", "Provider 'Nobody'"),
        ("&n_samples=many", "Samples of one epoch 'many'"),
        ("&colour=red", "'colour'"),
        ("&spot=maybe", "spot 'maybe'"),
        ("".join(f"&on={number}xT4" for number in range(2, 10)), "'9xT4' (at most 8 places are compared)"),
    ],
)
def test_what_a_link_says_that_is_not_understood_is_told(page, page_address, link, words):
    page.goto(page_address + QUICK + link)
    sentence = f"Not all of this link is understood, and left out are: {words}."
    expect(page.locator("#link-problem")).to_have_text(sentence, timeout=PATIENCE_MS)
    answered(page, "cifar_resnet20")


def test_on_a_phone_what_a_link_loses_is_told_above_the_form(browser, page_address):
    context = browser.new_context(viewport={"width": 390, "height": 844})
    page = context.new_page()
    page.goto(page_address + QUICK + "&colour=red")
    expect(page.locator("#link-problem")).to_be_visible(timeout=PATIENCE_MS)
    assert page.locator("#link-problem").bounding_box()["y"] < page.locator("#model").bounding_box()["y"]
    context.close()


def test_back_and_forward_restore_the_choice_that_the_address_bar_tells(page, page_address):
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    batch = page.get_by_role("spinbutton", name="Batch")
    page.get_by_role("link", name="Memory").click()
    page.wait_for_url("**#memory")
    batch.fill("32")
    page.get_by_role("link", name="Layers").click()  # at once, and what was typed stays
    page.wait_for_url("**#layers")
    expect(page.locator("#forecast h3").first).to_have_text("cifar_resnet20 on T4, batch 32", timeout=PATIENCE_MS)
    answered(page, "cifar_resnet20")  # on a busy machine the next questions would find these before them
    page.go_back()
    page.wait_for_url("**#memory")
    page.go_back()
    page.wait_for_url(lambda url: "#" not in url)
    expect(page.locator("#forecast h3").first).to_have_text("cifar_resnet20 on T4, batch 64", timeout=PATIENCE_MS)
    assert batch.input_value() == "64"
    answered(page, "cifar_resnet20")
    page.go_forward()
    page.wait_for_url("**#memory")
    page.go_forward()
    page.wait_for_url("**#layers")
    expect(page.locator("#forecast h3").first).to_have_text("cifar_resnet20 on T4, batch 32", timeout=PATIENCE_MS)


def test_a_link_that_is_understood_is_not_remarked_on(page, page_address):
    page.goto(page_address + SMALL + "&provider=AWS&compiled=1&metric=loss&budget_usd=12.5")
    answered(page, "cifar_resnet20")
    expect(page.locator("#link-problem")).to_be_hidden()
