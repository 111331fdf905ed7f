"""Blocks that repeat are one row of a table and one bar of a chart."""

from traincast.api.models import layers
from traincast.views.layers import document_of
from traincast.views.repeated_layers import folded


def test_thirty_two_blocks_are_one_row_each():
    answer = layers("llama-3.1-8b", 1, seqlen=1024)
    rows = {row.path: row for row in folded(answer.layers)}
    gate = rows["model.layers.0-31.mlp.gate_proj"]
    assert gate.n_equal == 32
    assert gate.layer.n_parameters == 32 * 4096 * 14336
    assert gate.layer.forward_flop == 32 * 2 * 1024 * 4096 * 14336
    assert len(rows) < 20


def test_the_rows_add_up_to_those_of_all_layers():
    for name in ("gpt2", "resnet50", "llama-1b"):
        answer = layers(name, 2)
        for what in ("n_parameters", "forward_flop", "backward_bytes"):
            whole = sum(getattr(layer, what) for layer in answer.layers)
            assert sum(getattr(row.layer, what) for row in folded(answer.layers)) == whole


def test_kinds_that_alternate_are_told_by_their_ends():
    paths = {row.path for row in folded(layers("gemma-3-1b", 1, seqlen=2048).layers)}
    assert "model.layers.0..25.self_attn" in paths or "model.layers.5..23.self_attn" in paths


def test_three_equal_layers_stay_three_rows():
    assert all(row.n_equal == 1 for row in folded(layers("alexnet", 1).layers))


def test_the_table_says_how_many_and_json_has_each():
    answer = layers("gpt2", 1)
    table = document_of(answer).tables[0]
    assert "transformer.h.0-11.attn.c_attn x 12" in [row[0] for row in table.rows]
    assert len(answer.to_dict()["layers"]) > 100


def test_the_largest_rows_alone_are_not_added_up():
    answer = layers("gpt2", 1, sort="flop", top=5)
    assert len(document_of(answer).tables[0].rows) == 5


def test_a_bar_stands_for_all_its_layers():
    chart = document_of(layers("llama-1b", 1)).charts[0]
    assert "model.layers.0-15.mlp.gate_proj x 16" in chart.series[0].x
