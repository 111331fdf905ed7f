"""A config.json is captured by way of a few of its blocks, and the trace is the one of all of them."""

import json

import pytest

import traincast as tc
from traincast.frontend.capturing.capture import capture_step
from traincast.frontend.hugging_face.config import read_config
from traincast.trace.folding.folded import fold_of
from traincast.trace.folding.same import differences

pytest.importorskip("transformers")

_NARROW = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 4, "vocab_size": 100}
CONFIGS = {
    "llama": {**_NARROW, "num_key_value_heads": 2, "num_hidden_layers": 9},
    "bert": {**_NARROW, "num_hidden_layers": 8},
    "gemma3_text": {**_NARROW, "num_key_value_heads": 1, "head_dim": 16, "num_hidden_layers": 38, "sliding_window": 8},
    "t5": {"d_model": 32, "d_ff": 64, "d_kv": 8, "num_heads": 4, "num_layers": 7, "vocab_size": 100},
}


def _written(tmp_path, kind):
    folder = tmp_path / "models--someone--something" / "snapshots" / "0123abcd"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps({"model_type": kind, **CONFIGS[kind]}))
    return folder


@pytest.mark.parametrize("kind", ["llama", "bert"])
def test_a_folder_of_a_local_cache_is_captured_by_its_blocks(tmp_path, kind):
    folder = _written(tmp_path, kind)
    made, whole = tc.load_model(str(folder), seqlen=24), capture_step(read_config(folder, seqlen=24))
    assert fold_of(made) is not None
    assert differences(made.graph, whole.graph) == []
    assert [parameter.name for parameter in made.parameters] == [parameter.name for parameter in whole.parameters]
    assert made.n_parameters == whole.n_parameters


def test_blocks_of_two_kinds_are_told_apart_by_the_config(tmp_path):
    made = tc.load_model(str(_written(tmp_path, "gemma3_text")), seqlen=24)
    (stack,) = fold_of(made)[0].stacks
    assert stack.period == 6


def test_a_model_whose_first_block_differs_is_the_same_step_all_the_same(tmp_path):
    """T5 keeps its table of relative positions in the first block."""
    folder = _written(tmp_path, "t5")
    made, whole = tc.load_model(str(folder), seqlen=24), capture_step(read_config(folder, seqlen=24))
    assert differences(made.graph, whole.graph) == []
