"""From names, files and modules to models that really run."""

import json

import pytest
import torch
from torch import nn

import traincast as tc
from traincast.api.runnables import runnable_from, runnable_of
from traincast.errors import InputError, MemoryEndedError, MissingExtraError, UnknownModelError
from traincast.measurement.measure import measure_step

torch.set_num_threads(1)


def runs(model, **options):
    runnable = runnable_of(model, **options)
    result = measure_step(runnable, batch_size=2, n_steps=1)
    assert result.step_s > 0
    assert not any("loss was" in warning for warning in result.warnings)
    return runnable


def test_a_zoo_model_has_weights_and_random_pixels():
    runnable = runs("mnist_cnn")
    assert all(not parameter.is_meta for parameter in runnable.module.parameters())
    (pixels,) = runnable.make_inputs(3)
    assert pixels.shape[0] == 3
    assert pixels.std() > 0.5


def test_a_zoo_model_with_options_is_called_as_its_trace_is():
    assert runs("cifar_resnet20", n_classes=7).name == tc.load_model("cifar_resnet20", n_classes=7).name


def test_a_language_model_reads_tokens_from_all_over_its_vocabulary():
    runnable = runnable_of("lstm_lm")
    (tokens,) = runnable.make_inputs(4)
    assert tokens.unique().numel() > 20
    runnable.forward(runnable.module, (tokens[:, :3],))


def test_a_factory_of_the_users_own_file_brings_its_loss(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "import torch\n"
        "def net(width=4):\n"
        "    return torch.nn.Linear(width, 1), torch.zeros(3, width), lambda out, x: out.square().sum()\n"
    )
    assert runs(f"{file}:net").name == "mine:net"


def test_an_onnx_file_brings_its_weights(tmp_path):
    onnx = pytest.importorskip("onnx")
    from onnx import TensorProto, helper, numpy_helper

    weight = torch.randn(8, 3).numpy()
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width]) for name, width in (("x", 8), ("y", 3))
    ]
    graph = helper.make_graph([node], "g", ends[:1], ends[1:], [numpy_helper.from_array(weight, "w")])
    path = tmp_path / "net.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)
    (parameter,) = runs(path).module.parameters()
    assert torch.allclose(parameter.detach().T, torch.from_numpy(weight), atol=1e-4)  # a few small updates later


def test_a_hugging_face_config_is_built_and_initialised(tmp_path):
    pytest.importorskip("transformers")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    config = {"model_type": "bert", "vocab_size": 50, "max_position_embeddings": 32, **sizes}
    (tmp_path / "config.json").write_text(json.dumps(config))
    module = runs(tmp_path, seqlen=8).module
    assert type(module).__name__ == "BertForMaskedLM"
    assert float(module.bert.embeddings.word_embeddings.weight.detach().std()) == pytest.approx(0.02, rel=0.3)


def test_a_model_that_memory_has_no_room_for_is_told_in_one_sentence(monkeypatch):
    monkeypatch.setattr("traincast.frontend.models.training_step.build_for_training", lambda name: torch.empty(2**60))
    with pytest.raises(MemoryEndedError, match="Building gpt2-xl ran out of memory"):
        runnable_of("gpt2-xl")


def test_a_saved_trace_has_no_module_to_run(tmp_path):
    path = tmp_path / "net.trace"
    tc.load_model("mnist_cnn").save(path)
    with pytest.raises(InputError, match="a saved trace: it has shapes but no module to run"):
        runnable_of(path)


def test_a_module_on_meta_is_told_to_be_built_on_the_cpu():
    with pytest.raises(InputError, match=r"Linear has no weights to run with: 'weight' and 1 more are on the meta"):
        runnable_from(nn.Linear(2, 2, device="meta"), torch.zeros(1, 2))


def test_examples_on_meta_get_values():
    runnable = runnable_from(nn.Linear(2, 2), lambda n: torch.empty(n, 2, device="meta"))
    assert runnable.make_inputs(4).std() > 0
    from_tensors = runnable_from(nn.Linear(2, 2), (torch.empty(3, 2, device="meta"), torch.empty(7, device="meta")))
    assert [tuple(tensor.shape) for tensor in from_tensors.make_inputs(5)] == [(5, 2), (7,)]


def test_an_unknown_name_gets_near_names():
    with pytest.raises(UnknownModelError, match=r"No model named 'mnist_cn'. Close names: mnist_cnn"):
        runnable_of("mnist_cn")


@pytest.mark.parametrize(
    ("module", "example", "words"),
    [
        ("mnist_cnn", torch.zeros(1), "brings its own inputs"),
        (nn.Linear(1, 1), None, "needs an example"),
        (3, torch.zeros(1), "for a torch.nn.Module or a name, not for a int"),
        (nn.Linear(1, 1), 3, "no tensor with a batch dimension"),
    ],
)
def test_what_cannot_be_measured_is_told(module, example, words):
    with pytest.raises(InputError, match=words):
        tc.measure(module, example, batch_size=1)


def test_without_torch_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(MissingExtraError, match="needs the 'torch' extra"):
        runnable_of("mnist_cnn")
