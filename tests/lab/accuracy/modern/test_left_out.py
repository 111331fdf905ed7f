"""Rows of today's GPUs beside fits that did not see them: lines, constants, cases, coverage and the section."""

from dataclasses import replace

import numpy as np
import pytest

from lab.accuracy.modern.beside import LAST_PAGE, older_sets, worst_of
from lab.accuracy.modern.carried import best_constants
from lab.accuracy.modern.cases import Rooms, byte_cases, cases_of, language_cases
from lab.accuracy.modern.left_out import Case, Evidence, line_of, lines_of
from lab.accuracy.modern.left_out_page import BEGIN, END, coverage_table, line_table, older_table, replaced, section_of
from lab.accuracy.modern.situations import averages, coverages_of
from traincast.errors import InputError
from traincast.kernels.coefficients import Coefficients, shipped
from traincast.validation.splits import Split, units_of, wide_splits_of

A100, H100 = "A100-SXM4-80GB", "H100-SXM5-80GB"
HOPPER = Split("generation", ("Hopper",))


def slower(factor):
    """The shipped fit with memory that is slower by a factor: our rows are made of bytes."""
    values = dict(shipped().coefficients.values)
    return Coefficients(values | {"dram": values["dram"] - np.log(factor)})


def measured(block, factor):
    """The same rows as if they had taken longer by a factor."""
    return replace(block, observed_s=block.observed_s * factor)


def repeated(block, times):
    """The same rows so often."""
    n = block.n_rows
    return replace(
        block,
        kernels=block.kernels.select(np.tile(np.arange(len(block.row)), times)),
        row=np.concatenate([block.row + n * number for number in range(times)]),
        count=np.tile(block.count, times),
        device=np.tile(block.device, times),
        observed_s=np.tile(block.observed_s, times),
        floor_s=np.tile(block.floor_s, times),
        n_dispatched=np.tile(block.n_dispatched, times),
        tags={name: np.tile(values, times) for name, values in block.tags.items()},
    )


def large(block):
    """Rows that are next to nothing but bytes of the memory."""
    return block.take(block.kernels.sizes["bytes"] >= 1e10)


def evidence(splits=(), fits=(), refits=None):
    return Evidence(shipped(), tuple(splits), tuple(fits), refits or {})


@pytest.fixture
def language(build):
    """Large steps of two models on two GPUs, measured as we predict them."""
    block = large(build("language models made-up", [A100, H100], ["mpt-125m", "mpt-7b"], n_sizes=8))
    n = block.n_rows
    more = {
        "source": np.full(n, "made-up"),
        "recompute": np.tile(["none", "full"], n // 2),
        "seqlen": np.resize([512, 512, 32768, 32768], n),
        "model_flop": np.ones(n),
        "tokens": np.ones(n),
    }
    return replace(block, tags=block.tags | more)


def test_a_generation_is_left_out_with_all_its_gpus(build):
    block = build("products", [A100, H100, "H200-SXM"], n_sizes=1)
    assert HOPPER.rows(block).tolist() == [False, True, True]
    assert units_of(block.tags, "generation").tolist() == ["Ampere", "Hopper", "Hopper"]


def test_wide_splits_are_generations_and_the_sources_that_rows_name(build, language):
    plain = build("elementwise", ["T4"])
    names = [split.name for split in wide_splits_of([language, plain])]
    assert names == [
        "without generation Ampere",
        "without generation Hopper",
        "without generation Turing",
        "without source made-up",
    ]
    assert not Split("source", ("made-up",)).rows(plain).any()


def test_a_line_tells_the_errors_of_the_fit_that_did_not_see_the_rows(language):
    rows = language.take(language.tags["device"] == H100)
    seen = evidence([HOPPER], [slower(1.25)])
    case = Case(what="H100", blocks=(rows,), left_out="generation", told="all Hopper", limits={"median": 0.3})
    line = line_of(case, seen)
    assert line.summary.median_absolute_fraction == pytest.approx(0.25, abs=0.02)
    assert line.summary.bias_fraction > 0
    assert line.width > 1
    assert (line.left_out, line.is_met) == ("all Hopper", True)


def test_the_worse_of_shortcut_and_refit_is_held_to_the_target(language):
    rows = language.take(language.tags["device"] == H100)
    case = Case(what="H100", blocks=(rows,), left_out="generation", limits={"median": 0.3})
    alone = line_of(case, evidence([HOPPER], [slower(1.1)]))
    both = line_of(case, evidence([HOPPER], [slower(1.1)], {HOPPER: slower(1.5)}))
    assert alone.is_met
    assert alone.refitted_fraction is None
    assert not both.is_met
    assert both.refitted_fraction == pytest.approx(0.5, abs=0.05)
    assert line_of(replace(case, limits={}), evidence([HOPPER], [slower(9.0)])).is_met is None


def test_a_family_that_no_fit_saw_is_judged_by_the_fit_that_ships(build):
    block = large(build("timm inference made-up", [A100], ["resnet", "brand new"], n_sizes=6))
    seconds = evidence([Split("family", ("resnet",))], [slower(2.0)]).seconds(block, "family")
    off = dict(zip(block.tags["family"].tolist(), (seconds / block.observed_s).tolist(), strict=True))
    assert off["resnet"] == pytest.approx(2.0, abs=0.1)
    assert off["brand new"] == pytest.approx(1.0)


def test_a_constant_is_right_on_its_own_rows_and_off_where_it_is_carried_to(build):
    old = build("nvidia examples tf32", ["T4"], ["resnet50"])
    ours = measured(build("nvidia examples tf32", ["A10"], ["resnet50"]), 2.0)
    in_sample, carried = best_constants([ours], [old], "GPU")
    assert in_sample.median_fraction < 0.2
    assert carried.median_fraction == pytest.approx(0.5, abs=0.1)
    assert best_constants([ours], [], "GPU")[1] is None
    assert best_constants([ours], [old], "nothing")[1] is None


def test_language_models_are_judged_by_gpu_size_length_and_recomputation(language):
    cases = {(case.what, case.told or case.left_out): case for case in language_cases(Rooms({language.name: language}))}
    main = cases["language models, bf16, H100", "source"]
    assert main.limits == {"median": 0.08, "mean": 0.10}
    assert main.n_rows == 4
    assert cases["language models, bf16, H100", "all Hopper"].limits == {"median": 0.12}
    assert cases["language models, bf16, H100, recomputed", "source"].n_rows == 4
    assert set(main.blocks[0].tags["device"]) == {H100}
    assert cases["language models, bf16, H100, to 1,024 tokens", "source"].n_rows == 2


def test_cases_without_rows_have_no_line(build):
    rooms = Rooms({"timm inference RTX-4090 nchw": build("timm inference RTX-4090 nchw", ["RTX-4090"], ["vit"])})
    lines = lines_of(cases_of(rooms), evidence([Split("family", ("vit",))], [slower(1.0)]))
    assert {line.what for line in lines} == {"image models, eager nchw, RTX 4090, PyTorch 2.4"}


def test_byte_movers_are_judged_by_kind_as_soon_as_there_is_a_block_of_them(build):
    block = build("language kernels, eager", [A100, H100], ["loss", "rotary"])
    cases = list(byte_cases(Rooms({block.name: block})))
    assert [case.what for case in cases] == ["eager: loss", "eager: rotary"]
    assert all(case.limits == {"median": 0.15} for case in cases)
    assert {case.told for case in cases} == {""}
    alone = block.take(block.tags["device"] == A100)
    assert {case.told for case in byte_cases(Rooms({alone.name: alone}))} == {"GPU, the only one"}


def test_older_sets_stand_beside_their_last_figures(build):
    name = "transformers fp32"
    rooms = Rooms({name: large(build(name, ["T4"], ["gpt2"], n_sizes=6))})
    found = list(older_sets(rooms, evidence([Split("GPU", ("T4",))], [slower(1.5)])))
    assert found[0].growth_points == pytest.approx(50 - LAST_PAGE[name][1], abs=4)
    assert "Worse by more than 0.5 points: transformers fp32." in older_table(found)


def test_every_generation_left_out_counts_once_in_the_mean_coverage(language):
    both = evidence([HOPPER, Split("generation", ("Ampere",))], [slower(1.0), slower(50.0)])
    found = [each for each in coverages_of([language], both) if each.left_out == "generation"]
    assert [each.shares for each in found] == [(0.0, 1.0)]
    assert averages(found) == {"new generation": (0.5, 2)}


def test_sets_outside_of_their_share_are_named_and_every_set_has_its_width(language):
    many = replace(repeated(language, times=4), name="many rows")
    found = coverages_of([many], evidence([HOPPER], [slower(1.0)]))
    (new,) = [each for each in found if each.left_out == "generation"]

    assert not new.is_kept  # the fit of these rows is exact: all of them are inside
    assert new.width > 1.1
    text = coverage_table(found)
    assert "missed by many rows (new generation, generation left out)" in text
    assert f"| 100.0 (wrong) | {new.width:.2f} |" in text


def test_the_worst_rows_are_named_once(language):
    far = replace(language, observed_s=language.observed_s * np.where(np.arange(language.n_rows) == 3, 9.0, 1.0))
    case = Case(what="all", blocks=(far,), left_out="nothing")
    worst = worst_of([case, case], evidence())
    assert len(worst) == 1  # the others are not off at all
    assert worst[0].error_fraction == pytest.approx(1 / 9 - 1, abs=0.01)
    assert worst[0].row.startswith("mpt-125m")


def test_the_table_has_errors_constants_target_and_verdict(language):
    case = Case(what="H100", blocks=(language,), left_out="nothing", noise="1.3 % (n = 4)", limits={"median": 0.05})
    text = line_table([line_of(case, evidence())])
    assert "| H100 | nothing | 16 | 0.0 | 0.0 | +0.0 | 100.0 |" in text
    assert "| 1.3 % (n = 4) |" in text
    assert text.endswith("| - | median ≤ 5 % | met |")


def test_only_what_stands_between_the_markers_is_replaced():
    page = f"# Accuracy\n\n{BEGIN}\n\nold\n\n{END}\n\n## At first sight\n\nrest\n"
    assert section_of(page) == f"{BEGIN}\n\nold\n\n{END}"
    assert replaced(page, f"{BEGIN}new{END}") == f"# Accuracy\n\n{BEGIN}new{END}\n\n## At first sight\n\nrest\n"


def test_a_page_without_the_section_gets_it_before_first_sight():
    assert replaced("# Accuracy\n\n## At first sight\n\nrest\n", f"{BEGIN}new{END}") == (
        f"# Accuracy\n\n{BEGIN}new{END}\n\n## At first sight\n\nrest\n"
    )
    with pytest.raises(InputError, match="write the whole page once"):
        replaced("# Another page\n", f"{BEGIN}new{END}")
