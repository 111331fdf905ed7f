"""For each class the top K images among those whose top P classes contain it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import InputError
from traincast.recipes.teacher_student.selection import likeliest, select


def pairs(selection):
    return list(zip(selection.images.tolist(), selection.labels.tolist(), strict=True))


def by_hand(table, k, p):
    """The definition, one class and one image at a time."""
    chosen = []
    for label in range(len(table[0])):
        candidates = []
        for image, row in enumerate(table):
            best = sorted(range(len(row)), key=lambda each: (-row[each], each))[:p]
            if label in best:
                candidates.append((-row[label], image))
        chosen += [(image, label) for _, image in sorted(candidates)[:k]]
    return chosen


@st.composite
def questions(draw):
    n_classes, n_images = draw(st.integers(1, 5)), draw(st.integers(1, 12))
    few_values = st.integers(0, 4).map(float)  # so that scores are often equal
    table = draw(
        st.lists(st.lists(few_values, min_size=n_classes, max_size=n_classes), min_size=n_images, max_size=n_images)
    )
    return table, draw(st.integers(1, n_images + 2)), draw(st.integers(1, n_classes))


@given(questions())
def test_the_selection_is_the_definition_worked_out_by_hand(question):
    table, k, p = question
    assert pairs(select(likeliest(torch.tensor(table), p=len(table[0])), k=k, p=p)) == by_hand(table, k, p)


@given(questions())
def test_keeping_only_p_classes_of_an_image_loses_nothing(question):
    table, k, p = question
    all_kept, few_kept = (likeliest(torch.tensor(table), p=kept) for kept in (len(table[0]), p))
    assert pairs(select(all_kept, k=k, p=p)) == pairs(select(few_kept, k=k, p=p))


@given(questions())
def test_a_larger_k_only_adds_images(question):
    table, k, p = question
    scores = likeliest(torch.tensor(table), p=p)
    assert set(pairs(select(scores, k=k, p=p))) <= set(pairs(select(scores, k=k + 1, p=p)))


def test_an_image_may_serve_two_classes():
    scores = likeliest(torch.tensor([[0.6, 0.4, 0.0], [0.1, 0.2, 0.7]]), p=2)
    selection = select(scores, k=1, p=2)
    assert pairs(selection) == [(0, 0), (0, 1), (1, 2)]
    assert (len(selection), selection.n_images) == (3, 2)


def test_with_p_1_an_image_serves_its_likeliest_class_alone():
    scores = likeliest(torch.tensor([[0.6, 0.4], [0.7, 0.3], [0.2, 0.8]]), p=1)
    assert pairs(select(scores, k=5, p=1)) == [(1, 0), (0, 0), (2, 1)]


@pytest.mark.parametrize(("k", "p"), [(0, 1), (1, 0), (1, 3)])
def test_k_or_p_out_of_range_is_said(k, p):
    with pytest.raises(InputError, match=f"P between 1 and the 2 classes that were kept, not {k} and {p}"):
        select(likeliest(torch.tensor([[0.6, 0.4, 0.0]]), p=2), k=k, p=p)
