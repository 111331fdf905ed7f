"""The public interface: its names, what it imports, and what it says to a wrong model."""

import json
import pkgutil
import subprocess
import sys

import pytest
import torch

import traincast
import traincast as tc
from traincast.errors import FileFormatError, InputError, TraincastError, UnknownDeviceError, UnknownModelError


def test_public_api_is_exactly_what_is_listed():
    modules = {module.name for module in pkgutil.iter_modules(traincast.__path__)}
    visible = {name for name in dir(traincast) if not name.startswith("_")}
    assert visible - modules == set(traincast.__all__)
    assert all(getattr(traincast, name) is not None for name in traincast.__all__)


def test_a_name_that_is_not_public_is_no_attribute():
    with pytest.raises(AttributeError, match="module 'traincast' has no attribute 'forecats'"):
        _ = traincast.forecats


def run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)


def test_importing_traincast_imports_neither_torch_nor_numpy():
    ran = run("import sys, traincast; print(sorted({'torch', 'numpy', 'scipy', 'pydantic'} & set(sys.modules)))")
    assert (ran.stdout, ran.stderr) == ("[]\n", "")


def test_without_torch_a_capture_says_what_to_install():
    ran = run(
        "import sys; sys.modules['torch'] = None\n"
        "import traincast\n"
        "try: traincast.load_model('resnet18', image_size=32)\n"
        "except traincast.TraincastError as error: print(error)"
    )
    assert ran.stdout == "resnet18 with image_size=32 needs the 'torch' extra: pip install 'traincast[torch]'.\n"


def said(model, **options):
    with pytest.raises(TraincastError) as caught:
        tc.load_model(model, **options)
    assert "\n" not in str(caught.value)
    return caught.value


def test_an_unknown_name_gets_near_names():
    error = said("resnet5")
    assert isinstance(error, UnknownModelError)
    assert str(error).startswith("No model named 'resnet5'. Close names: resnet50, ")
    assert "'traincast models' lists them" in str(error)


def test_a_name_like_nothing_gets_no_near_names():
    assert "Close names" not in str(said("zzzzzz"))


@pytest.mark.parametrize("path", ["no/such.trace", "such.onnx", "such.keras", "config.json", "no/such"])
def test_a_missing_path_is_named(path):
    error = said(path)
    assert isinstance(error, UnknownModelError)
    assert str(error).startswith(f"There is no file '{path}'.")


def test_a_file_of_an_unknown_kind_is_refused(tmp_path):
    path = tmp_path / "weights.bin"
    path.write_bytes(b"123")
    assert str(said(path)).startswith(f"'{path}' is not a model that traincast can read: give a zoo name")


def test_a_truncated_trace_is_refused_by_name(tmp_path):
    path = tmp_path / "net.trace"
    tc.load_model("mnist_cnn").save(path)
    path.write_bytes(path.read_bytes()[:-7])
    error = said(path)
    assert isinstance(error, FileFormatError)
    assert str(error).startswith(f"'{path}' is truncated or damaged")


@pytest.mark.parametrize(("text", "words"), [("{}", "it has no 'model_type'"), ("{", "it is not valid JSON")])
def test_a_json_file_that_is_no_config_is_refused(tmp_path, text, words):
    path = tmp_path / "config.json"
    path.write_text(text)
    error = said(path)
    assert isinstance(error, FileFormatError)
    assert words in str(error)


def test_a_python_file_without_a_factory_is_refused(tmp_path):
    path = tmp_path / "net.py"
    path.write_text("def build(): ...\n")
    assert "write the file and the function as file.py:factory" in str(said(path))
    assert "has no factory 'made'" in str(said(f"{path}:made"))


def test_a_saved_trace_takes_no_options(tmp_path):
    path = tmp_path / "net.trace"
    tc.load_model("mnist_cnn").save(path)
    assert (
        str(said(path, image_size=32)) == f"'{path}' is a saved trace and takes no options, but image_size was given."
    )


def test_options_that_a_model_does_not_take_are_refused(tmp_path):
    assert str(said("resnet18", seqlen=3)).startswith("resnet18 takes no option 'seqlen'")
    assert str(said("resnet18", image_size=0)).startswith("image_size=0 is not possible for resnet18")
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"model_type": "bert"}))
    assert "does not take the options batch" in str(said(path, batch=3))


def test_a_torch_module_is_sent_to_capture():
    error = said(torch.nn.Linear(2, 2))
    assert isinstance(error, InputError)
    assert "a torch module is captured with traincast.capture(module, example)" in str(error)


def test_a_trace_is_its_own_model():
    trace = tc.load_model("mnist_cnn")
    assert tc.load_model(trace) is trace
    assert tc.estimate_memory(trace, 2).peak_bytes == tc.estimate_memory("mnist_cnn", 2).peak_bytes


def test_a_factory_in_a_python_file_is_a_model(tmp_path):
    path = tmp_path / "own_net.py"
    path.write_text("import torch\ndef build(width=4):\n    return torch.nn.Linear(8, width), torch.zeros(2, 8)\n")
    assert tc.load_model(f"{path}:build").n_parameters == 36
    assert tc.load_model(f"{path}:build", width=5).n_parameters == 45


def test_an_unknown_device_is_refused():
    with pytest.raises(UnknownDeviceError, match="No device named 'T44'"):
        tc.estimate_memory("mnist_cnn", 2, on="T44")


def test_a_trace_shows_itself_in_a_notebook():
    shown = tc.load_model("mnist_cnn")._repr_html_()
    assert "<caption>Trace(&#x27;mnist_cnn&#x27;, 24,330 parameters, 48 ops, train)</caption>" in shown
    assert "<tr><th>Conv2d</th><td>3</td>" in shown
