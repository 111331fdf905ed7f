"""Files on the page: models and logs that are chosen or dropped, and the target that a log is read for."""

import pytest
from open_page import BOTH, LOG, PATIENCE_MS, QUICK, SMALL, answered, card, drop_file
from playwright.sync_api import expect

import traincast as tc


def test_an_uploaded_model_is_forecast(page, page_address, tmp_path):
    tc.load_model("mnist_cnn").save(tmp_path / "mine.trace")
    page.goto(page_address + QUICK)
    page.get_by_label("or a file").set_input_files(tmp_path / "mine.trace")
    answered(page, "mine.trace")
    assert page.get_by_label("Name").input_value() == "mine.trace"
    expect(page.locator("#forecast h3").first).to_contain_text("mnist_cnn on T4")
    page.reload()
    answered(page, "mine.trace")


def test_a_bad_upload_is_a_sentence(page, page_address, tmp_path):
    (tmp_path / "weights.pt").write_bytes(b"\x80\x04garbage")
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    page.get_by_label("or a file").set_input_files(tmp_path / "weights.pt")
    sentence = "'weights.pt' is a pickle or an archive, and those are never opened here"
    expect(page.locator("#model-file-hint")).to_contain_text(sentence, timeout=PATIENCE_MS)
    expect(page.locator("#forecast h3").first).to_contain_text("cifar_resnet20 on T4")  # as the form still says


def test_a_dropped_log_shows_where_the_run_ends(page, page_address):
    page.goto(page_address + QUICK)
    page.get_by_label("Target").fill("0.8")
    page.get_by_role("spinbutton", name="Steps of the run").fill("2000")
    drop_file(page, "#drop", "run.csv", LOG)
    expect(page.locator("#converge h3").first).to_have_text("Where run.csv will end", timeout=PATIENCE_MS)
    expect(page.locator("#converge .chart svg.main-svg").first).to_be_visible()
    expect(page.locator("#converge table").first).to_contain_text("time until then")
    drop_file(page, "#drop", "empty.csv", "")
    expect(page.locator("#converge .problem")).to_have_text("'empty.csv' is empty.", timeout=PATIENCE_MS)


def test_a_file_may_be_dropped_anywhere(page, page_address):
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    drop_file(page, "header", "run.csv", LOG)
    expect(page.locator("#converge h3").first).to_have_text("Where run.csv will end", timeout=PATIENCE_MS)
    drop_file(page, "footer", "mine.trace", "no trace")
    expect(page.locator("#model-file-hint")).to_contain_text("'mine.trace' is not a saved trace", timeout=PATIENCE_MS)


def test_a_field_takes_what_is_dropped_on_it(page, page_address):
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    drop_file(page, "#curve-file", "earlier.csv", LOG)
    expect(page.locator("#curve-hint")).to_contain_text("earlier.csv is read", timeout=PATIENCE_MS)
    drop_file(page, "#model", "notes.csv", LOG)
    expect(page.locator("#model-file-hint")).to_contain_text("'notes.csv' is not a model", timeout=PATIENCE_MS)
    expect(page.locator("#converge h3")).to_have_count(0)


@pytest.mark.parametrize(("name", "content"), [("net.json", '{"model_type": "nope"}'), ("net", "traincast-trace 1")])
def test_a_model_may_be_dropped_under_any_name(page, page_address, name, content):
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    drop_file(page, "header", name, content)
    expect(page.locator("#model-file-hint")).to_have_class("hint wrong", timeout=PATIENCE_MS)
    expect(page.locator("#model-file-hint")).to_contain_text(name)


def test_the_last_of_two_logs_counts(page, page_address):
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    drop_file(page, "#drop", "first.csv", LOG)
    drop_file(page, "#drop", "second.csv", BOTH)
    expect(page.locator("#converge h3").first).to_have_text("Where second.csv will end", timeout=PATIENCE_MS)
    expect(page.locator("#status")).to_have_text("Read second.csv.", timeout=PATIENCE_MS)


def test_with_an_earlier_log_the_forecast_tells_when_the_target_is_reached(page, page_address, tmp_path, context):
    (tmp_path / "earlier.csv").write_text(LOG)
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    page.get_by_label("Target").fill("0.8")
    page.get_by_label("Log of an earlier run").set_input_files(tmp_path / "earlier.csv")
    expect(page.locator("#curve-hint")).to_have_text("Told by earlier.csv, as loss.", timeout=PATIENCE_MS)
    expect(card(page, "to-target")).to_be_visible(timeout=PATIENCE_MS)
    other = context.new_page()
    other.goto(page.url)
    expect(card(other, "to-target")).to_have_text(card(page, "to-target").text_content(), timeout=PATIENCE_MS)
    other.close()
    page.get_by_role("button", name="Forget the log").click()
    expect(card(page, "to-target")).to_have_count(0, timeout=PATIENCE_MS)


def test_with_a_target_accuracy_the_plan_is_one_to_it(page, page_address, tmp_path):
    (tmp_path / "earlier.csv").write_text(BOTH)
    page.goto(page_address + SMALL)
    answered(page, "cifar_resnet20")
    page.get_by_label("Target").fill("85 %")
    page.get_by_label("Log of an earlier run").set_input_files(tmp_path / "earlier.csv")
    expect(page.locator("#curve-hint")).to_have_text("Told by earlier.csv, as accuracy.", timeout=PATIENCE_MS)
    answered(page, "cifar_resnet20")
    expect(page.locator("#plan")).to_contain_text("reach an accuracy of 0.85", timeout=PATIENCE_MS)


def test_a_target_is_of_the_metric_that_is_chosen_and_of_the_accuracy_by_itself(page, page_address):
    page.goto(page_address + QUICK)
    drop_file(page, "#drop", "run.csv", BOTH)
    read = page.locator("#converge .subtitle")
    expect(read).to_contain_text("train loss", timeout=PATIENCE_MS)
    for target, metric, meant in (("0.9", "", "accuracy"), ("0.9", "loss", "loss"), ("90 %", "", "accuracy")):
        page.get_by_label("Metric").fill(metric)
        page.get_by_label("Target").fill(target)
        page.get_by_label("Target").press("Tab")
        expect(read).to_contain_text(f"train {meant}", timeout=PATIENCE_MS)
    page.get_by_label("Metric").fill("f1")  # which this log has as well
    page.get_by_label("Metric").press("Tab")
    expect(read).to_contain_text("train f1", timeout=PATIENCE_MS)


def test_a_target_that_is_no_number_is_told_so(page, page_address):
    page.goto(page_address + QUICK)
    answered(page, "cifar_resnet20")
    page.get_by_label("Target").fill("ninety")
    page.get_by_label("Target").press("Tab")
    expect(page.locator("#status")).to_have_text("Target: write a number such as 0.92, or 92 %.", timeout=PATIENCE_MS)


def test_a_log_that_has_grown_is_to_be_chosen_again(page, page_address, tmp_path):
    log = tmp_path / "run.csv"
    log.write_text(LOG)
    page.goto(page_address + QUICK)
    page.get_by_label("Drop a training log here").set_input_files(log)
    expect(page.locator("#converge h3").first).to_have_text("Where run.csv will end", timeout=PATIENCE_MS)
    log.write_text(LOG + "400,0.94,100\n")
    page.get_by_role("spinbutton", name="Steps of the run").fill("2000")
    page.get_by_role("spinbutton", name="Steps of the run").press("Tab")
    sentence = "run.csv has changed since it was chosen: choose it or drop it again."
    expect(page.locator("#converge .problem")).to_have_text(sentence, timeout=PATIENCE_MS)
