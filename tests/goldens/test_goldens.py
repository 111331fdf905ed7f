"""Stored answers, asked again: no number that a user sees moves unnoticed.

A change that is meant to move them renews them with `python tests/goldens/renew.py`, which says what moved.
"""

import pytest
from asking import FOLDER, folded, leaves, read_answers
from changes import ABSENT, Change, changes_between
from questions import expanded, questions_by_command
from renew import goldens, report

RENEW = "If that is meant: python tests/goldens/renew.py (--check only shows what moved)."
GOLDENS = goldens()


@pytest.mark.parametrize("name", GOLDENS)
def test_the_stored_answers_are_given_again(name):
    changes = changes_between(read_answers(name), GOLDENS[name]())
    if changes:
        shown = "\n".join(str(change) for change in changes[:10])
        pytest.fail(f"{len(changes)} values moved:\n{shown}\n{'...' * (len(changes) > 10)}\n{RENEW}", pytrace=False)


def test_there_is_a_file_a_golden_and_no_other():
    assert {path.stem for path in FOLDER.glob("*.json")} == set(GOLDENS)


def test_no_question_is_asked_twice_and_there_are_enough():
    asked = [question for questions in questions_by_command().values() for question in questions]
    assert len(set(asked)) == len(asked) >= 400


def test_braces_are_expanded_as_in_a_shell():
    assert expanded("a {b,c d} --gpus {1\\,2,4}") == [
        "a b --gpus 1,2",
        "a b --gpus 4",
        "a c d --gpus 1,2",
        "a c d --gpus 4",
    ]


STORED = {"q": {"step_s": 2.0, "n": 10**12, "fits": True, "notes": ["one", "two"], "rows": [{"s": 1.0}]}}


@pytest.mark.parametrize(
    ("fresh", "expected"),
    [
        ({"step_s": 2.0 * (1 + 1e-10)}, None),
        ({"step_s": 2.0 * (1 + 1e-8)}, ("step_s", 2.0, 2.0 * (1 + 1e-8))),
        ({"n": 10**12 + 1}, ("n", 10**12, 10**12 + 1)),  # a count is exact
        ({"fits": 1}, ("fits", True, 1)),
        ({"step_s": None}, ("step_s", 2.0, None)),
        ({"notes": ["two", "one"]}, ("notes", ["one", "two"], ["two", "one"])),
        ({"rows": [{"s": 1.0}, {"s": 2.0}]}, ("rows[1].s", ABSENT, 2.0)),
        ({"more": None}, ("more", ABSENT, None)),
    ],
)
def test_what_moved_is_named_with_both_values(fresh, expected):
    changes = changes_between(STORED, {"q": STORED["q"] | fresh})
    assert [(change.key, change.old, change.new) for change in changes] == ([] if expected is None else [expected])


def test_a_key_or_a_question_that_is_gone_counts():
    assert [change.key for change in changes_between({"q": {"a": 1, "b": 2}}, {"q": {"a": 1}})] == ["b"]
    assert [str(change) for change in changes_between({"q": 1}, {"r": 1})] == [
        "q: no longer asked",
        "r: a new question",
    ]


def test_noise_around_zero_is_none_but_a_microsecond_is_seen():
    assert changes_between({"q": {"s": 1.5e-16}}, {"q": {"s": 3e-16}}) == []
    assert len(changes_between({"q": {"s": 0.0}}, {"q": {"s": 1e-6}})) == 1


def test_a_long_list_is_held_by_its_first_rows_and_the_sum_of_every_number():
    rows = [{"op": "conv", "by": {"s": place}} for place in range(10)]
    answer = folded({"version": "0.1", "ops": rows, "notes": ["a"] * 10})
    assert answer == {"ops": {"first": rows[:3], "n": 10, "sums": {"by.s": 45}}, "notes": ["a"] * 10}
    assert leaves(answer)["ops.sums.by.s"] == 45


def test_the_report_has_the_median_the_largest_change_and_the_worst_question():
    stored = {f"q{n}": {"step_s": 1.0, "fixed_s": 1.0, "says": "none"} for n in range(4)}
    steps = (1.01, 1.02, 1.5, 1.0)
    fresh = {f"q{n}": {"step_s": step_s, "fixed_s": 1.0, "says": "some"} for n, step_s in enumerate(steps)}
    text = report("forecast", 4, changes_between(stored, fresh))
    assert text.splitlines()[0] == "forecast: 4 of 4 answers moved"
    assert text.splitlines()[2].split() == ["step_s", "3", "+2.00", "%", "+50.00", "%", "q2"]
    assert "fixed_s" not in text
    assert "  says: 4 x, as in q0\n    - none\n    + some" in text


def test_the_report_is_short_unless_all_is_asked_for():
    stored = {"q": {f"n{place}_s": 1.0 for place in range(40)}}
    fresh = {"q": {f"n{place}_s": 1.0 + place for place in range(40)}}
    assert len(report("q", 1, changes_between(stored, fresh)).splitlines()) == 18
    assert len(report("q", 1, changes_between(stored, fresh), most=100).splitlines()) == 41


def test_sentences_that_differ_in_their_numbers_alone_are_told_once():
    stored = {f"q{n}": {"notes": ["same", f"takes {n} s"]} for n in range(3)}
    fresh = {f"q{n}": {"notes": ["same", f"takes {n} ms", "new"]} for n in range(3)}
    text = report("q", 3, changes_between(stored, fresh))
    assert "  notes: 3 x, as in q0\n    - takes 0 s\n    + takes 0 ms new" in text
    assert "same" not in text


def test_a_change_says_by_how_much():
    assert str(Change("forecast x", "step_s", 2.0, 1.9)) == "forecast x\n    step_s: 2.0 -> 1.9 (-5.00 %)"
