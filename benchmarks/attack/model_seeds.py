"""Small valid models, in every format that traincast reads, and what trainings of its own leave behind."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tempfile
import zipfile
from importlib import resources
from pathlib import Path
from typing import Any


def trace() -> bytes:
    """A model of the zoo, whose files are saved traces."""
    return resources.files("traincast").joinpath("data/zoo/mnist_cnn.trace").read_bytes()


def onnx() -> bytes:
    """A convolution, a pool, a reshape and a product."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    shapes = {"w": (4, 1, 3, 3), "b": (4,), "v": (4 * 4 * 4, 10)}
    weights = [numpy_helper.from_array(np.full(shape, 0.1, np.float32), name) for name, shape in shapes.items()]
    weights.append(numpy_helper.from_array(np.array([0, 64], np.int64), "shape"))
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["h"], kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("MaxPool", ["r"], ["p"], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Reshape", ["p", "shape"], ["f"]),
        helper.make_node("MatMul", ["f", "v"], ["y"]),
    ]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
        for name, shape in (("x", ["N", 1, 8, 8]), ("y", ["N", 10]))
    ]
    graph = helper.make_graph(nodes, "net", ends[:1], ends[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString(deterministic=True)


def keras() -> bytes:
    """As Keras 3 saves it, without the weights, which are not read."""
    layers: list[dict[str, Any]] = [
        _layer("InputLayer", batch_shape=[None, 8, 8, 1], dtype="float32", name="input"),
        _layer("Conv2D", filters=4, kernel_size=[3, 3], padding="same", activation="relu", name="conv"),
        _layer("MaxPooling2D", pool_size=[2, 2], name="pool"),
        _layer("Flatten", name="flat"),
        _layer("Dropout", rate=0.5, name="drop"),
        _layer("Dense", units=10, activation="softmax", name="dense"),
    ]
    config = {
        **_layer("Sequential", name="net", layers=layers, build_input_shape=[None, 8, 8, 1]),
        "build_config": {"input_shape": [None, 8, 8, 1]},
        "compile_config": {"optimizer": "sgd", "loss": "sparse_categorical_crossentropy", "metrics": ["accuracy"]},
    }
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in (("config.json", config), ("metadata.json", {"keras_version": "3.9.0"})):
            archive.writestr(zipfile.ZipInfo(name), json.dumps(content))
    return packed.getvalue()


def _layer(class_name: str, **config: Any) -> dict[str, Any]:
    module = "keras" if class_name == "Sequential" else "keras.layers"
    return {"module": module, "class_name": class_name, "config": config, "registered_name": None}


def hugging_face() -> bytes:
    config = {
        "architectures": ["BertForSequenceClassification"],
        "model_type": "bert",
        "vocab_size": 300,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "max_position_embeddings": 64,
        "type_vocab_size": 2,
        "initializer_range": 0.02,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
        "id2label": {"0": "no", "1": "yes"},
        "torch_dtype": "float32",
    }
    return json.dumps(config, indent=2).encode()


def hugging_face_images() -> bytes:
    config = {
        "architectures": ["ViTForImageClassification"],
        "model_type": "vit",
        "hidden_size": 32,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 64,
        "hidden_act": "gelu",
        "image_size": 16,
        "patch_size": 8,
        "num_channels": 3,
        "qkv_bias": True,
    }
    return json.dumps(config).encode()


def torch_weights() -> bytes:
    import torch

    file = io.BytesIO()
    torch.save({"conv.weight": torch.ones(2, 1, 3, 3), "fc.weight": torch.ones(4, 2), "fc.bias": torch.zeros(4)}, file)
    return file.getvalue()


def checkpoint() -> bytes:
    import torch

    from traincast.recipes.engine.checkpoint import save_checkpoint

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "checkpoint.pt"
        save_checkpoint(path, {"module": {"weight": torch.ones(4, 2)}, "step": 3, "epoch": 1})
        return path.read_bytes()


def safetensors() -> bytes:
    about = {"fc.weight": {"dtype": "F32", "shape": [4, 2], "data_offsets": [0, 32]}}
    header = json.dumps(about).encode()
    return struct.pack("<Q", len(header)) + header + struct.pack("<8f", *range(8))


def plain_pickle() -> bytes:
    return pickle.dumps({"data": [1, 2, 3], "labels": [0, 1], "batch_label": "one"}, protocol=2)


def picture() -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.linear_gradient("L").resize((16, 16)).save(file, "PNG")
    return file.getvalue()
