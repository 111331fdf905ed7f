"""Text for terminals and pipes."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.report.document import Document
from traincast.report.table import Column, Table
from traincast.report.text import to_text

NAME = Column(key="name", header="layer")
TIME = Column(key="step_s", header="time", show="duration")


def a_document(*names, notes=()):
    rows = tuple((name, 0.0123) for name in names)
    return Document(title="Layers", tables=(Table(title="Layers", columns=(NAME, TIME), rows=rows),), notes=notes)


def test_a_small_table_is_plain_aligned_text():
    assert to_text(a_document("conv1", "layer1.0.conv1"), width=80) == (
        "Layers\n\nlayer              time\nconv1           12.3 ms\nlayer1.0.conv1  12.3 ms\n"
    )


def test_a_pipe_gets_one_line_per_row_however_long():
    name = "encoder." * 40
    assert f"{name}  12.3 ms" in to_text(a_document(name)).splitlines()


def test_a_narrow_terminal_folds_names_and_keeps_every_letter():
    lines = to_text(a_document("x" * 100), width=40).splitlines()
    assert max(len(line) for line in lines) <= 40
    assert sum(line.count("x") for line in lines) == 100


def test_numbers_are_never_cut_even_where_the_terminal_is_too_narrow():
    columns = tuple(Column(key=f"n_{i}", header=f"number {i}", show="integer") for i in range(12))
    row = tuple(123_456_789 + i for i in range(12))
    document = Document(title="Wide", tables=(Table(title="", columns=columns, rows=(row,)),))
    text = to_text(document, width=80)
    assert all(f"123,456,{789 + i}" in text for i in range(12))
    assert all(f"number {i}" in text for i in range(12))


def test_notes_wrap_with_their_later_lines_indented():
    text = to_text(a_document("a", notes=("word " * 20,)), width=40)
    note = text.split("\n\n")[-1].splitlines()
    assert note[0].startswith("- word")
    assert all(line.startswith("  word") for line in note[1:])
    assert len(note) > 1


def test_a_table_without_rows_says_so():
    assert "(no rows)" in to_text(a_document(), width=80)


def test_a_table_title_is_left_out_only_where_it_repeats_the_page():
    table = Table(title="By kind", columns=(NAME,), rows=(("a",),))
    assert "By kind" in to_text(Document(title="Memory", tables=(table,)))


def test_colour_is_for_terminals_only():
    assert "\x1b[" in to_text(a_document("a"), width=80, color=True)
    assert "\x1b[" not in to_text(a_document("a"), width=80)


def test_names_from_files_cannot_steer_the_terminal_or_the_renderer():
    text = to_text(a_document("\x1b[31mred", "[bold]b[/bold]", "a\nb", ":smile:"), width=80)
    assert "\x1b" not in text
    assert "\\x1b[31mred" in text
    assert "[bold]b[/bold]" in text
    assert "a\\nb" in text
    assert ":smile:" in text


@pytest.mark.parametrize("width", [20, 80, 200])
@given(names=st.lists(st.text(st.characters(codec="ascii"), max_size=60), min_size=1, max_size=5))
def test_no_number_is_lost_at_any_width(width, names):
    assert to_text(a_document(*names), width=width).count("12.3 ms") >= len(names)


def a_wide_table(n_rows, *, same_name=False):
    columns = (NAME, *(Column(key=f"n_{i}", header=f"number {i}", show="integer") for i in range(12)))
    rows = tuple(("conv" if same_name else f"conv{n}", *(123_456_789 + i for i in range(12))) for n in range(n_rows))
    return Document(title="Wide", tables=(Table(title="", columns=columns, rows=rows),))


def test_a_table_wider_than_the_terminal_goes_on_below_with_the_names_of_its_rows():
    lines = to_text(a_wide_table(2), width=80).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.startswith("conv1") for line in lines) == sum(line.startswith("layer") for line in lines) > 1
    assert sum(line.count("number") for line in lines) == 12


def test_parts_of_a_wide_table_repeat_the_columns_that_tell_rows_apart():
    batch = Column(key="batch", header="batch", show="integer")
    rest = tuple(Column(key=f"n_{i}", header=f"number {i}", show="integer") for i in range(9))
    rows = tuple(("T4", batch_size, *range(9)) for batch_size in (64, 128))
    text = to_text(Document(title="", tables=(Table(title="", columns=(NAME, batch, *rest), rows=rows),)), width=60)
    heads = [line for line in text.splitlines() if line.startswith("layer")]
    assert len(heads) > 1
    assert all(line.startswith("layer  batch") for line in heads)


def test_a_pipe_gets_wide_tables_whole():
    assert sum(line.startswith("conv") for line in to_text(a_wide_table(3, same_name=True)).splitlines()) == 3


def test_the_verdict_comes_first_then_tables_warnings_notes_and_assumptions():
    document = replace(
        a_document("a", notes=("a note",)), verdict="Fits.", warnings=("slow",), assumptions=("steady prices",)
    )
    lines = [line for line in to_text(document).splitlines() if line]
    assert lines[:2] == ["Layers", "Fits."]
    assert lines[-4:] == ["- Warning: slow", "- a note", "Assumptions", "- steady prices"]
