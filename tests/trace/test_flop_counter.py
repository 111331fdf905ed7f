"""Our flop are those of PyTorch's own counter, model by model."""

import json

import pytest
import torch
from counted_step import counted_flop

import traincast as tc
from traincast.frontend.capturing.capture import capture_step
from traincast.frontend.hugging_face.config import read_config
from traincast.frontend.models.registry import ZOO
from traincast.frontend.models.training_step import build_for_training

# PyTorch forgets the groups in the backward of a grouped convolution and counts it many times over.
GROUPED = {
    "mobilenet_v2": "features.0.0",
    "efficientnet_b0": "features.0.0",
    "resnext50_32x4d": "conv1",
    "resnext101_32x8d": "conv1",
    "resnext101_32x4d": "conv1",
    "resnext101_32x16d": "conv1",
}

ENCODER = {
    "vocab_size": 96,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 26,
}
DECODER = {**ENCODER, "num_key_value_heads": 2}
SEQ2SEQ = {
    "vocab_size": 96,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 64,
    "decoder_ffn_dim": 64,
    "max_position_embeddings": 24,
}
CONFIGS = {
    "llama": DECODER,
    "mistral": DECODER,
    "qwen2": DECODER,
    "gemma": {**DECODER, "head_dim": 8},
    "phi": ENCODER,
    "gpt_neox": ENCODER,
    "opt": {**ENCODER, "ffn_dim": 64, "word_embed_proj_dim": 32},
    "falcon": {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    "bloom": {"vocab_size": 96, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "t5": {"vocab_size": 96, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
    "bart": SEQ2SEQ,
    "roberta": ENCODER,
    "distilbert": {"vocab_size": 96, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "albert": {**ENCODER, "embedding_size": 16},
}


def zoo_flop(name):
    with torch.device("meta"):
        module, example, loss = build_for_training(name)
        inputs = example(2)
    return counted_flop(module, inputs, loss)


@pytest.mark.parametrize("name", [name for name in ZOO if name not in GROUPED])
def test_a_zoo_model_has_the_flop_that_pytorch_counts(name):
    trace = tc.load_model(name)
    assert (trace.forward_flop(2), trace.backward_flop(2)) == zoo_flop(name)


@pytest.mark.parametrize(("name", "stem"), GROUPED.items())
def test_with_grouped_convolutions_backward_is_twice_forward_but_for_the_gradient_of_the_image(name, stem):
    trace = tc.load_model(name)
    first = next(layer for layer in trace.layers(2) if layer.path == stem)
    assert trace.forward_flop(2) == zoo_flop(name)[0]
    assert trace.backward_flop(2) == 2 * trace.forward_flop(2) - first.forward_flop


@pytest.mark.parametrize("model_type", CONFIGS)
def test_a_hugging_face_model_has_the_flop_that_pytorch_counts(tmp_path, model_type):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": model_type, **CONFIGS[model_type]}))
    step = read_config(path, seqlen=12)
    trace = capture_step(step)
    with torch.device("meta"):
        inputs = step.example(4)
    assert (trace.forward_flop(4), trace.backward_flop(4)) == counted_flop(step.module, inputs, step.loss)
