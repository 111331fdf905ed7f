"""What is written down at first sight stays as it is, and the page shows all of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lab.accuracy.modern.asking import Answer
from lab.accuracy.modern.constants import constants_of
from lab.accuracy.modern.repeats import language_repeats, repeats_of
from lab.accuracy.modern.scored_rows import FileCount, ScoredRows, language_set, of_language
from lab.accuracy.modern.sight_page import page, section, with_first_sight
from lab.accuracy.modern.sight_record import Record, appended, asked_of, read_record, sight_of, write_record
from traincast.errors import InputError
from traincast.kernels.refit.modern.language_files import row_of

ROOT = Path(__file__).parents[4]
WHEN = {"commit": "abc1234", "date": "2026-11-18"}


def scored(name="a set", n=4, factor=1.5):
    observed = np.linspace(1.0, 2.0, n)
    return ScoredRows(
        name=name,
        file="made_up.csv",
        observed=observed,
        predicted=factor * observed,
        log_sd=np.full(n, 0.1),
        baseline=observed / 2,
    )


@pytest.fixture
def answer(line):
    """Makes the answer about a line that took so many seconds."""

    def made(seconds, **changes):
        row = row_of(line(step_ms=str(1e3 * seconds), **changes), "made_up.csv")
        return Answer(row=row, step_s=seconds, log_sd=0.1, roofline_s=1.0)

    return made


def test_a_sight_has_the_errors_of_its_rows_and_those_of_one_factor_on_the_roofline():
    sight = sight_of(scored(), **WHEN)

    assert (sight.n, sight.n_inside) == (4, 0)
    assert sight.median_absolute_fraction == sight.bias_fraction == 0.5
    assert sight.baseline_ratio == 2.0
    assert sight.scaled_baseline_fraction == 0.0
    assert sight.p90_over_p10 == pytest.approx(np.exp(0.2 * 1.2816), abs=1e-3)


def test_a_set_that_was_seen_is_never_written_again_not_even_at_another_commit():
    record = appended(Record(), [sight_of(scored(), **WHEN)], [])
    later = sight_of(scored(factor=1.0), commit="def5678", date="2026-12-01")

    with pytest.raises(InputError, match="'a set' was first seen at commit abc1234 on 2026-11-18"):
        appended(record, [later], [])
    after = appended(record, [replace(later, name="another set")], [])
    assert after.sights[0] == record.sights[0]


def test_a_record_is_read_as_it_was_written(tmp_path, answer):
    path = tmp_path / "first_sight.json"
    constants = constants_of([answer(2.0), answer(2.2), answer(3.0, n_gpus="4")], **WHEN)
    asked = asked_of(FileCount(file="made_up.csv", n_rows=9, not_asked={"fp8": 5}), **WHEN)
    record = appended(Record(), [sight_of(scored(), **WHEN)], [asked], constants)

    write_record(path, record)

    assert read_record(path) == record
    assert read_record(tmp_path / "none.json") == Record()


def test_a_forecast_without_an_interval_has_no_coverage(tmp_path):
    rows = replace(scored(), log_sd=None, quantity="peak memory", rule="16 bytes a parameter")
    sight = sight_of(rows, **WHEN)
    path = tmp_path / "first_sight.json"

    write_record(path, appended(Record(), [sight_of(scored("timed"), **WHEN), sight], []))
    text = page(read_record(path), [])

    assert (sight.n_inside, sight.p90_over_p10) == (None, None)
    assert read_record(path).sights[1] == sight
    assert "**Peak memory**" in text
    assert "| a set | 4 | 50.0 | 50.0 | +50.0 | - | - | 16 bytes a parameter | 2.00 | 0.0 |" in text


def test_only_the_section_of_first_sights_is_replaced_in_the_page_on_accuracy():
    record = appended(Record(), [sight_of(scored(), **WHEN)], [])
    before = "# Accuracy\n\n## At first sight\n\nof yesterday\n\n## Next\n\nrest\n"

    after = with_first_sight(before, page(record, []))

    assert after.startswith("# Accuracy\n\n## At first sight\n")
    assert "of yesterday" not in after
    assert "| a set | 4 |" in after
    assert after.endswith("\n\n## Next\n\nrest\n")
    assert with_first_sight(after, page(record, [])) == after
    with pytest.raises(InputError, match="has no section 'At first sight'"):
        with_first_sight("# Accuracy\n", page(record, []))


def test_language_rows_are_sets_of_a_source_a_gpu_and_what_is_recomputed(line, answer):
    rows = [
        answer(2.0),
        answer(2.0, activation_checkpointing="full"),
        answer(2.0, source="someone else"),
        Answer(row=row_of(line(precision="fp8"), "made_up.csv"), refused="fp8"),
    ]

    sets, count = of_language("made_up.csv", rows)

    assert [each.name for each in sets] == [language_set(each) for each in rows[:3]]
    assert (count.n_rows, count.not_asked) == (4, {"fp8": 1})
    assert sets[0].name == "made up: A100-SXM4-80GB bf16, nothing recomputed"


def test_a_constant_is_carried_over_from_other_sources_on_the_same_ground_only(answer):
    own = [answer(2.0), answer(2.0)]
    other = [answer(3.0, source="other")]
    recomputed = [answer(5.0, source="third", activation_checkpointing="full")]

    first, second, third = constants_of([*own, *other, *recomputed], **WHEN)

    assert (first.ratio, first.roofline_median, first.roofline_carried) == (2.0, 0.0, 0.5)
    assert second.roofline_carried == pytest.approx(1 / 3, abs=1e-4)
    assert third.roofline_carried is None
    again = constants_of([*own, *other], **WHEN, known=[first])
    assert [each.name for each in again] == [second.name]
    assert again[0].roofline_carried == second.roofline_carried


def test_figures_that_agree_to_the_digit_are_one_measurement():
    assert repeats_of("twins", [("a", 1.0), ("a", 1.0)]) is None
    found = repeats_of("twins", [("a", 1.0), ("a", 1.1), ("b", 2.0), ("c", float("nan"))])

    assert (found.n_settings, found.n_rows) == (1, 2)
    assert found.median_fraction == pytest.approx(0.1)


def test_runs_that_differ_in_a_setting_are_no_repeats(line):
    usual = {"sharding": "fsdp=zero3;mixed_precision=PURE"}
    lines = [
        line(step_ms="1000"),
        line(step_ms="1100", micro_batch="4"),
        line(step_ms="1200", **usual),
        line(step_ms="1300", finetuning="full"),
        line(step_ms="1400", sharding="fsdp2=8"),
    ]
    found = language_repeats("made up", [row_of(each, "made_up.csv") for each in lines])

    assert found.n_rows == 2
    assert found.largest_fraction == pytest.approx(0.2)


def test_the_page_tells_every_set_and_accuracy_shows_its_table_with_a_link(answer):
    asked = asked_of(FileCount(file="made_up.csv", n_rows=9, not_asked={"fp8": 5}), **WHEN)
    constants = constants_of([answer(2.0)], **WHEN)
    record = appended(Record(), [sight_of(scored(), **WHEN)], [asked], constants)

    text = page(record, [repeats_of("twins", [("a", 1.0), ("a", 1.1)])])
    shown = "\n\n".join(section(text))

    assert "| a set | 4 | 50.0 | 50.0 | +50.0 | 0.0 (wrong) |" in text
    assert "| made_up.csv | fp8: 5 | - | 9 | 4 | 5 | abc1234 |" in text
    assert "| twins | 1 | 2 | 10.0 | 10.0 |" in text
    assert shown.startswith("## At first sight\n")
    assert "| a set | 4 |" in shown
    assert "made_up.csv" not in shown
    assert "(first_sight.md)" in shown
    assert section("") == []


def test_both_pages_show_what_is_written_down():
    record = read_record(ROOT / "benchmarks" / "first_sight.json")
    shown = (ROOT / "docs" / "first_sight.md").read_text(encoding="utf-8")
    accuracy = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")

    last = "\n## How good the measurements are"  # what repeats is read from the measurements themselves
    assert page(record, []).partition(last)[0] == shown.partition(last)[0]
    assert "\n\n".join(section(shown)) in accuracy
