"""A Hugging Face config.json becomes a training step on meta: the right class, inputs, labels and loss."""

import json
import os
import subprocess
import sys

import pytest
import torch
from step_on_meta import run_on_meta

from traincast.errors import CaptureError, FileFormatError, InputError, MissingExtraError, UnknownModelError
from traincast.frontend.capturing.capture import capture
from traincast.frontend.hugging_face.config import read_config

ENCODER = {
    "vocab_size": 96,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 24,
}
DECODER = {**ENCODER, "num_key_value_heads": 2}
GPT = {"vocab_size": 96, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 24}
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
PATCHES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
PATCHES |= {"image_size": 32, "patch_size": 8}
CONFIGS = {
    "bert": ENCODER,
    "roberta": {**ENCODER, "max_position_embeddings": 26},
    "distilbert": {"vocab_size": 96, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64},
    "albert": {**ENCODER, "embedding_size": 16},
    "deberta-v2": ENCODER,
    "gpt2": GPT,
    "gpt_neox": ENCODER,
    "llama": DECODER,
    "mistral": DECODER,
    "qwen2": DECODER,
    "gemma": {**DECODER, "head_dim": 8},
    "phi": ENCODER,
    "opt": {**ENCODER, "ffn_dim": 64, "word_embed_proj_dim": 32},
    "falcon": {"vocab_size": 96, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4},
    "bloom": {"vocab_size": 96, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    "t5": {"vocab_size": 96, "d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
    "bart": SEQ2SEQ,
    "mixtral": {**DECODER, "num_local_experts": 4},
    "qwen2_moe": {**DECODER, "num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 16},
    "vit": PATCHES,
    "resnet": {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1], "layer_type": "basic"},
    "convnext": {"hidden_sizes": [8, 16], "depths": [1, 1], "num_stages": 2},
    "swin": {"image_size": 32, "embed_dim": 8, "depths": [2, 2], "num_heads": [2, 2], "window_size": 4},
    "whisper": {**SEQ2SEQ, "max_source_positions": 20, "max_target_positions": 12, "pad_token_id": 0},
    "wav2vec2": {**PATCHES, "vocab_size": 32, "conv_dim": [16] * 7},
}


@pytest.fixture
def config_file(tmp_path):
    def write(model_type, **settings):
        path = tmp_path / f"{model_type}.json"
        path.write_text(json.dumps({"model_type": model_type, **CONFIGS.get(model_type, {}), **settings}))
        return path

    return write


# transformers' DeBERTa scripts three helpers when it is imported, and torch has deprecated scripting.
@pytest.mark.filterwarnings(r"ignore:`torch\.jit\.script` is deprecated:DeprecationWarning")
@pytest.mark.parametrize("model_type", CONFIGS)
def test_every_common_model_type_trains_on_meta_and_more_on_a_larger_batch(config_file, model_type):
    step = read_config(config_file(model_type), head="classification" if model_type == "wav2vec2" else None)
    two, three = (run_on_meta(step, batch_size) for batch_size in (2, 3))
    assert two.loss.shape == ()
    assert two.loss is two.output.loss
    assert two.flop < three.flop <= 1.5 * two.flop
    assert {parameter.device.type for parameter in step.module.parameters()} == {"meta"}
    assert set(two.without_gradient) <= {"wav2vec2.masked_spec_embed"}


@pytest.mark.parametrize(
    ("model_type", "head", "inputs"),
    [
        ("bert", "mlm", {"input_ids": (3, 24), "labels": (3, 24)}),
        ("bert", "qa", {"input_ids": (3, 24), "start_positions": (3,), "end_positions": (3,)}),
        ("bert", "classification", {"input_ids": (3, 24), "labels": (3,)}),
        ("bert", "token-classification", {"input_ids": (3, 24), "labels": (3, 24)}),
        ("bert", "pretraining", {"input_ids": (3, 24), "labels": (3, 24), "next_sentence_label": (3,)}),
        ("bert", "base", {"input_ids": (3, 24)}),
        ("gpt2", "causal", {"input_ids": (3, 24), "labels": (3, 24)}),
        ("gpt2", "classification", {"input_ids": (3, 24), "labels": (3,)}),
        ("bart", "base", {"input_ids": (3, 24), "decoder_input_ids": (3, 24)}),
        ("vit", "classification", {"pixel_values": (3, 3, 32, 32), "labels": (3,)}),
        ("whisper", "seq2seq", {"input_features": (3, 80, 40), "labels": (3, 12)}),
    ],
)
def test_the_head_decides_the_labels(config_file, model_type, head, inputs):
    step = read_config(config_file(model_type), head=head)
    assert {name: tuple(tensor.shape) for name, tensor in step.example(3).items()} == inputs
    assert torch.isfinite(torch.tensor(run_on_meta(step, 3).flop))


def test_the_class_that_the_config_names_wins_over_the_usual_task(config_file):
    named = read_config(config_file("bert", architectures=["BertForQuestionAnswering"]))
    assert type(named.module).__name__ == "BertForQuestionAnswering"
    assert type(read_config(config_file("bert")).module).__name__ == "BertForMaskedLM"
    assert type(read_config(config_file("bert"), head="qa").module).__name__ == "BertForQuestionAnswering"
    unknown = read_config(config_file("bert", architectures=["MyOwnBert"]))
    assert type(unknown.module).__name__ == "BertForMaskedLM"


@pytest.mark.parametrize("model_type", ["bert", "llama", "mixtral"])
def test_a_config_is_captured_without_having_to_assume_anything_about_values(config_file, model_type):
    step = read_config(config_file(model_type))
    trace = capture(step.module, step.example, loss=step.loss)
    assert trace.assumptions == ()
    assert trace.forward_flop(3) == run_on_meta(step, 3).forward_flop


def test_tied_weights_are_counted_once(config_file):
    tied = read_config(config_file("gpt2", tie_word_embeddings=True)).module
    untied = read_config(config_file("gpt2", tie_word_embeddings=False)).module
    n_parameters = [sum(parameter.numel() for parameter in model.parameters()) for model in (tied, untied)]
    assert n_parameters[1] - n_parameters[0] == 96 * 32


def test_balanced_experts_do_the_work_of_the_experts_that_each_token_chooses(config_file):
    one = run_on_meta(read_config(config_file("mixtral", num_experts_per_tok=1)), 2)
    two = run_on_meta(read_config(config_file("mixtral", num_experts_per_tok=2)), 2)
    n_tokens, width, inner, n_layers = 2 * 24, 32, 64, 2
    per_choice = 2 * n_tokens * (width * 2 * inner + inner * width) * n_layers
    assert two.forward_flop - one.forward_flop == per_choice
    assert two.flop - one.flop == 3 * per_choice


def test_a_sequence_that_experts_cannot_share_equally_is_refused(config_file):
    with pytest.raises(InputError, match="multiple of 3"):
        read_config(config_file("qwen2_moe"), seqlen=20)
    assert read_config(config_file("qwen2_moe", max_position_embeddings=25)).example(2)["input_ids"].shape == (2, 24)


def test_seqlen_defaults_to_the_positions_and_at_most_512(config_file):
    assert read_config(config_file("llama")).example(2)["input_ids"].shape == (2, 24)
    long = config_file("llama", max_position_embeddings=4096)
    assert read_config(long).example(2)["input_ids"].shape == (2, 512)
    assert read_config(long, seqlen=2048).example(2)["input_ids"].shape == (2, 2048)
    assert read_config(config_file("t5"), seqlen=700).example(2)["labels"].shape == (2, 700)
    assert read_config(config_file("roberta")).example(2)["input_ids"].shape == (2, 24)
    with pytest.raises(InputError, match="seqlen 25 is more than the 24 positions"):
        read_config(config_file("bert"), seqlen=25)


def test_image_size_and_classes_change_the_model(config_file):
    step = read_config(config_file("vit"), image_size=64, n_classes=10)
    assert step.example(2)["pixel_values"].shape == (2, 3, 64, 64)
    assert step.module.classifier.out_features == 10
    assert step.module.vit.embeddings.position_embeddings.shape[1] == 64 + 1
    assert read_config(config_file("resnet")).example(2)["pixel_values"].shape == (2, 3, 224, 224)


def test_options_of_another_kind_of_model_are_refused(config_file):
    with pytest.raises(InputError, match="takes images; set image_size"):
        read_config(config_file("vit"), seqlen=10)
    with pytest.raises(InputError, match="takes no images"):
        read_config(config_file("bert"), image_size=10)
    with pytest.raises(InputError, match="has no classes"):
        read_config(config_file("gpt2"), n_classes=10)
    with pytest.raises(InputError, match="seqlen must be at least 1"):
        read_config(config_file("gpt2"), seqlen=0)
    with pytest.raises(InputError, match=r"No head named 'lm'.*mlm, causal"):
        read_config(config_file("gpt2"), head="lm")
    with pytest.raises(InputError, match=r"gpt2 model has no head 'mlm'; it has base, .*causal"):
        read_config(config_file("gpt2"), head="mlm")


def test_ten_billion_parameters_take_no_memory_and_stay_fp32(config_file):
    sizes = {
        "hidden_size": 5120,
        "num_hidden_layers": 40,
        "num_attention_heads": 40,
        "intermediate_size": 13824,
    }
    path = config_file("llama", **sizes, num_key_value_heads=40, vocab_size=32000, dtype="bfloat16")
    module = read_config(path).module
    assert sum(parameter.numel() for parameter in module.parameters()) == 13_015_864_320
    assert {parameter.dtype for parameter in module.parameters()} == {torch.float32}
    assert not any(parameter.device.type != "meta" for parameter in module.parameters())


def test_transformers_still_finds_packed_rows_in_tensors_that_have_values(config_file):
    from transformers import masking_utils

    read_config(config_file("llama"))
    packed = masking_utils.find_packed_sequence_indices(torch.tensor([[0, 1, 2, 0, 1]]))
    assert packed.tolist() == [[0, 0, 0, 1, 1]]


def test_a_folder_is_read_by_its_config(tmp_path):
    folder = tmp_path / "tiny-bert"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **ENCODER}))
    assert read_config(folder).name == "tiny-bert (BertForMaskedLM)"
    assert read_config(folder / "config.json").name == "tiny-bert (BertForMaskedLM)"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"model_type": "be', "not valid JSON"),
        ("\x00\x01\x02", "not valid JSON"),
        ("[1, 2]", "no 'model_type'"),
        ('{"hidden_size": 3}', "no 'model_type'"),
        ('{"model_type": 3}', "no 'model_type'"),
        ('{"model_type": "bert", "hidden_size": "wide"}', "not a valid BertConfig.*expected int, got str"),
        (
            '{"model_type": "bert", "num_attention_heads": 5}',
            "num_attention_heads = 5 does not divide hidden_size = 768",
        ),
        ('{"model_type": "gpt2", "n_head": 7}', "n_head = 7 does not divide n_embd = 768"),
        ('{"model_type": "gpt2", "n_layer": -1}', "n_layer is -1, and it should be from 0 to 1,000"),
        ('{"model_type": "gpt2", "n_layer": 1000000000}', "n_layer is 1,000,000,000, and it should be from 0"),
        ('{"model_type": "gpt2", "vocab_size": 0}', "vocab_size is 0, and it should be from 1 to"),
        ('{"model_type": "t5", "d_ff": 0}', "d_ff is 0, and it should be from 1 to"),
    ],
)
def test_a_file_that_is_no_config_is_named_in_one_line(tmp_path, text, says):
    path = tmp_path / "config.json"
    path.write_text(text)
    with pytest.raises(FileFormatError, match=says) as raised:
        read_config(path)
    assert str(path) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_what_cannot_be_built_says_why_and_what_to_do(config_file, tmp_path):
    with pytest.raises(UnknownModelError, match="There is no file"):
        read_config(tmp_path / "absent.json")
    with pytest.raises(CaptureError, match=r"no model type 'mystery'.*never runs.*traincast\.capture"):
        read_config(config_file("mystery", auto_map={"AutoModel": "evil.Model"}))
    with pytest.raises(CaptureError, match=r"BertForMultipleChoice.*choose a head"):
        read_config(config_file("bert", architectures=["BertForMultipleChoice"]))
    with pytest.raises(CaptureError, match="CLIPModel trains on more than text"):
        read_config(config_file("clip", architectures=["CLIPModel"]))


def test_without_transformers_the_message_names_the_extra(config_file, monkeypatch):
    path = config_file("bert")
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'traincast\[hf\]'"):
        read_config(path)


@pytest.mark.parametrize("names", [[[]], [1.5], "BertModel", {"a": 1}])
def test_architectures_that_are_no_names_are_refused(config_file, names):
    with pytest.raises(FileFormatError, match="'architectures' should be a list of names"):
        read_config(config_file("bert", architectures=names))


def test_a_padding_word_outside_the_vocabulary_is_told(config_file):
    with pytest.raises(CaptureError, match=r"could not build Bert\S+ on meta: Padding_idx must be within"):
        read_config(config_file("bert", pad_token_id=2**31))


def test_an_image_with_one_side_is_told(config_file):
    with pytest.raises((CaptureError, FileFormatError), match=r"vit\.json"):
        read_config(config_file("vit", image_size=[32]))


@pytest.mark.parametrize("value", ["[" * 100_000, "9" * 5000])
def test_json_that_nobody_means_is_no_config(tmp_path, value):
    path = tmp_path / "config.json"
    path.write_text('{"model_type": "bert", "vocab_size": ' + value)
    with pytest.raises(FileFormatError, match="is not valid JSON"):
        read_config(path)


def test_a_torchvision_that_does_not_fit_torch_is_one_sentence(tmp_path):
    """transformers finds it installed and imports it with the first model that could use it."""
    (tmp_path / "torchvision").mkdir()
    (tmp_path / "torchvision" / "__init__.py").write_text("raise RuntimeError('operator torchvision::nms missing')\n")
    (tmp_path / "torchvision-0.1.dist-info").mkdir()
    metadata = "Metadata-Version: 2.1\nName: torchvision\nVersion: 0.1\n"
    (tmp_path / "torchvision-0.1.dist-info" / "METADATA").write_text(metadata)
    (tmp_path / "config.json").write_text('{"model_type": "bert", "architectures": ["BertForMaskedLM"]}')
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "traincast", "memory", str(tmp_path / "config.json"), "--batch", "4"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "operator torchvision::nms missing. A package that it uses does not fit" in done.stderr
    assert done.stderr.count("\n") == 1
