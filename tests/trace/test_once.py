"""What is worked out once for each graph."""

import gc
import importlib.resources
import weakref

import pytest

from traincast.trace.file import read_trace
from traincast.trace.once import once_per_graph


@pytest.fixture
def graph():
    return read_trace(importlib.resources.files("traincast") / "data/zoo/resnet18.trace").graph


def test_an_answer_is_found_once_for_each_graph_even_where_it_is_none(graph):
    asked = []
    find = once_per_graph(lambda graph: asked.append(graph.n_ops))
    assert find(graph) is find(graph) is None
    assert asked == [graph.n_ops]


def test_two_questions_about_a_graph_are_kept_apart(graph):
    n_ops, n_names = once_per_graph(lambda graph: graph.n_ops), once_per_graph(lambda graph: len(graph.names))
    assert (n_ops(graph), n_names(graph), n_ops(graph)) == (graph.n_ops, len(graph.names), graph.n_ops)


def test_an_answer_goes_with_its_graph(graph):
    class Answer:
        pass

    find = once_per_graph(lambda _: Answer())
    held = read_trace(importlib.resources.files("traincast") / "data/zoo/resnet18.trace").graph
    gone = weakref.ref(find(held))
    assert gone() is not None
    del held
    gc.collect()
    assert gone() is None
