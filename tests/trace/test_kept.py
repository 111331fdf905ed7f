"""What is worked out about a model is kept, but never more than fits."""

import gc

import pytest

import traincast as tc
from traincast.trace.kept import Kept
from traincast.trace.lowering.lower import LOWERED, lower
from traincast.trace.settings import OPTIMIZERS, PRECISIONS, Settings


class Owner:
    pass


def test_a_value_is_made_once_until_it_is_the_oldest():
    kept, owner, made = Kept(25, len), Owner(), []

    def ask(name):
        kept.get(owner, name, lambda: made.append(name) or bytes(10))

    for name in ("a", "b", "a", "c", "a", "b"):  # only two fit: c takes the place of b
        ask(name)
    assert made == ["a", "b", "c", "b"]
    assert kept.n_bytes == 20


def test_what_is_too_large_is_given_and_not_kept():
    kept, owner = Kept(5, len), Owner()
    assert kept.get(owner, "a", lambda: bytes(10)) == bytes(10)
    assert kept.n_bytes == 0


def test_values_go_with_their_owner():
    kept, owner = Kept(100, len), Owner()
    kept.get(owner, "a", lambda: bytes(10))
    del owner
    gc.collect()
    other = Owner()
    kept.get(other, "b", lambda: bytes(3))
    assert kept.n_bytes == 3


def test_tf32_shares_the_ops_of_fp32_and_no_other_precision_does():
    trace = tc.load_model("mnist_cnn")
    graphs = {precision: lower(trace, settings=Settings(precision)) for precision in PRECISIONS}
    assert graphs["tf32"] is graphs["fp32"]
    assert len({id(graph) for graph in graphs.values()}) == len(PRECISIONS) - 1


@pytest.fixture
def room(monkeypatch):
    """So little that not all that a test asks for fits."""
    monkeypatch.setattr(LOWERED, "most_bytes", 100_000)


def test_all_ways_to_train_a_model_take_no_more_than_the_room_there_is(room):
    trace = tc.load_model("mnist_cnn")
    graphs = [lower(trace, settings=Settings(one, other)) for one in PRECISIONS for other in OPTIMIZERS]
    assert sum(graph.n_bytes for graph in graphs) > 2 * LOWERED.most_bytes
    assert 0 < LOWERED.n_bytes <= LOWERED.most_bytes
