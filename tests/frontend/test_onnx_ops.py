"""Every ONNX op that is read gives what ONNX's own reference implementation gives, one node at a time."""

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from step_on_meta import run_on_meta

import traincast as tc
from traincast.errors import CaptureError, FileFormatError
from traincast.frontend.onnx_model.reader import read_onnx

RANDOM = np.random.default_rng(0)
IMAGE, TABLE = (2, 4, 6, 6), (2, 3, 5)


def f32(*shape):
    return RANDOM.uniform(-1.0, 1.0, shape).astype(np.float32)


def i64(*values):
    return np.array(values, dtype=np.int64)


def case(op, *extra, shape=TABLE, opset=20, first=0, low=-1.0, n_outputs=1, **attributes):
    name = f"{op}-{opset}" + "".join(f"-{value}" for value in attributes.values())
    return pytest.param(op, extra, shape, opset, first, low, n_outputs, attributes, id=name.replace(" ", ""))


UNARY = "Abs Neg Exp Floor Ceil Round Sign Sin Cos Tan Atan Sinh Cosh Tanh Asinh Erf Sigmoid Relu Softplus"
UNARY += " Softsign HardSwish Mish Identity Gelu HardSigmoid LeakyRelu Elu Celu Selu ThresholdedRelu"
UNARY += " Asin Acos Atanh Clip"
POSITIVE = "Log Sqrt Reciprocal"
BINARY = "Add Sub Mul Div Pow"
REDUCTIONS = "ReduceSum ReduceMean ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp"
CASES = [
    *(case(op) for op in UNARY.split()),
    *(case(op, low=0.1) for op in POSITIVE.split()),
    case("Acosh", low=1.1),
    case("Gelu", approximate="tanh"),
    case("HardSigmoid", alpha=1 / 6, beta=0.5),
    case("Clip", np.float32(-0.3), np.float32(0.4)),
    case("Clip", np.float32(0), np.float32(6)),
    case("Clip", opset=6, min=-0.5, max=0.5),
    *(case(op, f32(3, 5), low=0.1) for op in BINARY.split()),
    *(case(op, np.float32(0.7), low=0.1) for op in BINARY.split()),
    case("Sub", f32(5), first=1),
    case("Mod", np.float32(0.3), fmod=1),
    case("Max", f32(5), f32(1)),
    case("Min", f32(5)),
    case("Sum", f32(5), f32(3, 1)),
    case("Mean", f32(5), f32(3, 1)),
    *(case(op, axis=axis) for op in ("Softmax", "LogSoftmax") for axis in (-1, 1)),
    case("Softmax", opset=11, axis=2),
    *(case(op, i64(1, 2), low=0.1) for op in REDUCTIONS.split()),
    case("ReduceLogSum", i64(-1), low=0.1, keepdims=0),
    case("ReduceMean", keepdims=0, axes=[1], opset=13),
    case("ReduceSum", keepdims=1),
    case("ReduceSum", noop_with_empty_axes=1),
    case("CumSum", np.int64(1), exclusive=1, reverse=1),
    case("CumSum", np.int64(2)),
    case("TopK", i64(2), n_outputs=2, axis=1),
    case("LpNormalization", p=2, axis=1, shape=IMAGE),
    case("MatMul", f32(5, 7)),
    case("MatMul", f32(2, 5, 7)),
    case("MatMul", f32(4, 3), first=1),
    case("Gemm", f32(5, 7), f32(7), shape=(2, 5)),
    case("Gemm", f32(7, 5), f32(7), shape=(2, 5), transB=1),
    case("Gemm", f32(7, 5), shape=(2, 5), transB=1),
    case("Gemm", f32(5, 7), f32(1, 7), shape=(2, 5), alpha=0.5, beta=2.0),
    case("Einsum", f32(5, 7), equation="bij,jk->bik"),
    case("Reshape", i64(0, -1)),
    case("Transpose", perm=[0, 2, 1]),
    case("Flatten", axis=2),
    case("Flatten", axis=1, shape=IMAGE),
    case("Squeeze", i64(1), shape=(2, 1, 5)),
    case("Squeeze", shape=(2, 1, 5), opset=11, axes=[1]),
    case("Unsqueeze", i64(1, -1)),
    case("Unsqueeze", opset=11, axes=[0, 2]),
    case("Concat", f32(2, 4, 5), axis=1),
    case("Split", i64(1, 2), n_outputs=2, axis=1),
    case("Split", n_outputs=2, axis=2, num_outputs=2),
    case("Split", opset=11, n_outputs=2, axis=1, split=[2, 1]),
    case("Slice", i64(1), i64(2**62), i64(2)),
    case("Slice", i64(0, 1), i64(3, 4), i64(1, 2), i64(2, 1)),
    case("Slice", i64(-1), i64(-(2**62)), i64(2), i64(-1)),
    case("Slice", i64(3), i64(0), i64(-1), i64(-2)),
    case("Slice", opset=9, starts=[1], ends=[3], axes=[1]),
    case("Expand", i64(2, 2, 3, 5)),
    case("Tile", i64(1, 2, 3)),
    case("Pad", i64(0, 1, 2, 0, 0, 1), np.float32(0.5)),
    case("Pad", i64(0, 0, 1, 1, 0, 0, 2, 1), shape=IMAGE, mode="reflect"),
    case("Pad", i64(0, 0, 1, 1, 0, 0, 2, 1), shape=IMAGE, mode="edge"),
    case("Pad", opset=2, pads=[0, 0, 1, 0, 0, 1], value=0.25),
    case("Gather", i64(1, 0), axis=1),
    case("Gather", np.array(1), axis=2),
    case("Gather", i64(1, -1), axis=2),
    case("GatherElements", np.zeros((2, 3, 2), np.int64), axis=2),
    case("ScatterElements", np.ones((2, 3, 1), np.int64), f32(2, 3, 1), axis=2),
    case("ScatterND", i64(0, 1).reshape(2, 1), f32(2, 3, 5)),
    case("DepthToSpace", blocksize=2, shape=IMAGE, mode="DCR"),
    case("DepthToSpace", blocksize=2, shape=IMAGE, mode="CRD"),
    case("SpaceToDepth", blocksize=2, shape=IMAGE),
    case("Trilu", np.array(1), upper=1),
    case("Trilu", upper=0),
    case("MaxPool", shape=IMAGE, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]),
    case("MaxPool", shape=IMAGE, kernel_shape=[2, 2], strides=[2, 2], pads=[0, 0, 1, 1]),
    case("MaxPool", shape=IMAGE, kernel_shape=[3, 3], strides=[2, 2], auto_pad="SAME_UPPER"),
    case("AveragePool", shape=IMAGE, kernel_shape=[2, 2], strides=[2, 2]),
    case("AveragePool", shape=IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1], count_include_pad=1),
    case("AveragePool", shape=IMAGE, kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    case("GlobalAveragePool", shape=IMAGE),
    case("GlobalMaxPool", shape=IMAGE),
    case("Conv", f32(6, 4, 3, 3), f32(6), shape=IMAGE, pads=[1, 1, 1, 1]),
    case("Conv", f32(6, 2, 3, 3), shape=IMAGE, group=2, strides=[2, 2], dilations=[2, 1]),
    case("Conv", f32(6, 4, 3, 3), f32(6), shape=IMAGE, pads=[0, 1, 2, 1]),
    case("Conv", f32(6, 4, 3, 3), shape=IMAGE, strides=[2, 2], auto_pad="SAME_UPPER"),
    case("Conv", f32(6, 4, 2, 2), shape=IMAGE, auto_pad="SAME_LOWER"),
    case("Conv", f32(6, 3, 3), shape=TABLE, pads=[1, 1]),
    case("ConvTranspose", f32(4, 3, 3, 3), f32(3), shape=IMAGE, strides=[2, 2], output_padding=[1, 1]),
    case("BatchNormalization", f32(4), f32(4), f32(4), np.abs(f32(4)), shape=IMAGE),
    case("LayerNormalization", f32(5), f32(5)),
    case("LayerNormalization", f32(3, 5), f32(3, 5), axis=1),
    case("LayerNormalization", f32(5)),
    case("RMSNormalization", f32(5), opset=23),
    case("InstanceNormalization", f32(4), f32(4), shape=IMAGE),
    case("GroupNormalization", f32(4), f32(4), shape=IMAGE, num_groups=2, opset=21),
    case("PRelu", f32(4, 1, 1), shape=IMAGE),
    case("LRN", shape=IMAGE, size=3),
    case("MeanVarianceNormalization", shape=IMAGE),
    case(
        "Resize",
        None,
        np.array([1, 1, 2, 2], np.float32),
        shape=IMAGE,
        coordinate_transformation_mode="asymmetric",
        nearest_mode="floor",
    ),
    case("Resize", None, None, i64(2, 4, 9, 12), shape=IMAGE, mode="linear"),
    case(
        "Resize",
        None,
        np.array([1, 1, 2, 2], np.float32),
        shape=IMAGE,
        mode="linear",
        coordinate_transformation_mode="align_corners",
    ),
    case("Swish", opset=24),
    case("LSTM", f32(1, 16, 5), f32(1, 16, 4), f32(1, 32), shape=(6, 2, 5), n_outputs=3, hidden_size=4),
    case(
        "GRU",
        f32(1, 12, 5),
        f32(1, 12, 4),
        f32(1, 24),
        shape=(6, 2, 5),
        n_outputs=2,
        hidden_size=4,
        linear_before_reset=1,
    ),
    case("RNN", f32(1, 4, 5), f32(1, 4, 4), f32(1, 8), shape=(6, 2, 5), n_outputs=2, hidden_size=4),
]


def one_node(op, extra, shape, opset, first, n_outputs, attributes):
    names = [f"c{index}" if value is not None else "" for index, value in enumerate(extra)]
    names.insert(first, "x")
    outputs = [f"y{index}" for index in range(n_outputs)]
    node = helper.make_node(op, names, outputs, name="node", **attributes)
    constants = [numpy_helper.from_array(np.asarray(v), f"c{i}") for i, v in enumerate(extra) if v is not None]
    batch_first = ["batch", *shape[1:]] if op not in ("LSTM", "GRU", "RNN") else shape
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, batch_first)
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph([node], "g", [given], results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])


@pytest.mark.parametrize(("op", "extra", "shape", "opset", "first", "low", "n_outputs", "attributes"), CASES)
def test_one_node_gives_what_the_reference_gives(tmp_path, op, extra, shape, opset, first, low, n_outputs, attributes):
    model = one_node(op, extra, shape, opset, first, n_outputs, attributes)
    onnx.save(model, tmp_path / "node.onnx")
    inputs = RANDOM.uniform(low, low + 2.0 if low > 1 else 0.9, shape).astype(np.float32)
    expected = ReferenceEvaluator(model).run(None, {"x": inputs})
    module = read_onnx(tmp_path / "node.onnx", with_weights=True).module.eval()
    with torch.no_grad():
        given = module(torch.from_numpy(inputs))
    given = given if isinstance(given, tuple) else (given,)
    for mine, reference in zip(given, expected, strict=True):
        np.testing.assert_allclose(mine.numpy(), reference, rtol=1e-4, atol=1e-5)


def test_before_opset_13_a_softmax_goes_over_all_axes_from_its_axis_on(tmp_path):
    onnx.save(one_node("Softmax", (), TABLE, 11, 0, 1, {"axis": 1}), tmp_path / "node.onnx")
    probabilities = read_onnx(tmp_path / "node.onnx").module(torch.randn(TABLE))
    torch.testing.assert_close(probabilities.sum(dim=(1, 2)), torch.ones(2))


def two_nodes(tmp_path, nodes, outputs, constants=(), *, shape=("batch", 3, 5), opset=20):
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, list(shape))
    results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
    graph = helper.make_graph(nodes, "g", [given], results, [numpy_helper.from_array(v, k) for k, v in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    onnx.save(model, tmp_path / "graph.onnx")
    return model, tmp_path / "graph.onnx"


@pytest.mark.parametrize("op", ["Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"])
def test_comparisons_choose_as_the_reference_does(tmp_path, op):
    nodes = [
        helper.make_node(op, ["x", "half"], ["c"]),
        helper.make_node("Not", ["c"], ["n"]),
        helper.make_node("Or", ["n", "c"], ["o"]),
        helper.make_node("And", ["o", "n"], ["a"]),
        helper.make_node("Xor", ["a", "row"], ["w"]),
        helper.make_node("Where", ["w", "x", "half"], ["y"]),
    ]
    constants = [("half", np.float32(0.5).reshape(())), ("row", np.array([True, False, True, False, True]))]
    model, path = two_nodes(tmp_path, nodes, ["y"], constants)
    inputs = f32(2, 3, 5)
    expected = ReferenceEvaluator(model).run(None, {"x": inputs})[0]
    np.testing.assert_allclose(read_onnx(path).module(torch.from_numpy(inputs)).numpy(), expected)


def test_shape_arithmetic_follows_the_batch_without_touching_the_device(tmp_path):
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["b"], axis=0),
        helper.make_node("Mul", ["b", "three"], ["b3"]),
        helper.make_node("Unsqueeze", ["b3", "zero1"], ["u"]),
        helper.make_node("Concat", ["u", "minus"], ["t"], axis=0),
        helper.make_node("Reshape", ["x", "t"], ["r"]),
        helper.make_node("Range", ["zero", "b3", "one"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["f", "one1"], ["column"]),
        helper.make_node("Add", ["r", "column"], ["y"]),
    ]
    constants = [("zero", np.array(0)), ("one", np.array(1)), ("three", np.array(3)), ("minus", i64(-1))]
    model, path = two_nodes(tmp_path, nodes, ["y"], [*constants, ("zero1", i64(0)), ("one1", i64(1))])
    step = read_onnx(path)
    inputs = f32(4, 3, 5)
    expected = ReferenceEvaluator(model).run(None, {"x": inputs})[0]
    np.testing.assert_allclose(step.module(torch.from_numpy(inputs)).numpy(), expected)
    assert list(step.module.parameters()) == []


def test_attention_with_fewer_key_heads_gives_what_the_reference_gives(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "kv"], ["k"]),
        helper.make_node("Attention", ["x", "k", "k"], ["y"], q_num_heads=4, kv_num_heads=2, is_causal=1),
    ]
    model, path = two_nodes(tmp_path, nodes, ["y"], [("kv", f32(8, 4))], shape=("batch", 3, 8), opset=23)
    inputs = f32(2, 3, 8)
    expected = ReferenceEvaluator(model).run(None, {"x": inputs})[0]
    step = read_onnx(path, with_weights=True)
    with torch.no_grad():
        np.testing.assert_allclose(step.module(torch.from_numpy(inputs)).numpy(), expected, rtol=1e-4, atol=1e-5)
    assert run_on_meta(step, 3).flop > 0


def test_a_loss_in_the_graph_is_the_loss_of_the_step(tmp_path):
    labels = helper.make_tensor_value_info("labels", TensorProto.INT64, ["batch"])
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 5])
    result = helper.make_tensor_value_info("loss", TensorProto.FLOAT, [])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["scores"]),
        helper.make_node("SoftmaxCrossEntropyLoss", ["scores", "labels"], ["loss"]),
    ]
    graph = helper.make_graph(nodes, "g", [given, labels], [result], [numpy_helper.from_array(f32(5, 3), "w")])
    path = tmp_path / "loss.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)]), path)
    step = read_onnx(path)
    inputs, targets = step.example(4)
    assert (inputs.shape, targets.shape, targets.dtype) == ((4, 5), (4,), torch.int64)
    assert run_on_meta(step, 4).output.shape == ()


@pytest.mark.parametrize(
    ("op", "constant", "trained"),
    [
        ("Add", f32(5), True),
        ("Add", f32(1, 3, 5), True),
        ("Add", np.triu(np.full((3, 5), -1e9, np.float32), 1), False),
        ("Add", np.float32(0.5).reshape(1), False),
        ("Mul", f32(5), True),
        ("Mul", f32(3, 5), False),
        ("Sub", f32(5), False),
        ("Div", f32(5), False),
    ],
)
def test_biases_and_scales_are_trained_but_masks_and_tables_are_not(tmp_path, op, constant, trained):
    _, path = two_nodes(tmp_path, [helper.make_node(op, ["x", "c"], ["y"])], ["y"], [("c", constant)])
    n_parameters = sum(parameter.numel() for parameter in read_onnx(path).module.parameters())
    assert n_parameters == (constant.size if trained else 0)


def test_arithmetic_on_weights_alone_makes_one_weight(tmp_path):
    nodes = [
        helper.make_node("Slice", ["w", "zero", "half", "zero"], ["top"]),
        helper.make_node("Slice", ["w", "half", "end", "zero"], ["bottom"]),
        helper.make_node("Concat", ["bottom", "top"], ["swapped"], axis=0),
        helper.make_node("MatMul", ["x", "swapped"], ["y"]),
    ]
    constants = [("w", f32(6, 4)), ("zero", i64(0)), ("half", i64(3)), ("end", i64(6))]
    model, path = two_nodes(tmp_path, nodes, ["y"], constants, shape=("batch", 6))
    assert [tuple(p.shape) for p in read_onnx(path).module.parameters()] == [(4, 6)]
    inputs = f32(2, 6)
    expected = ReferenceEvaluator(model).run(None, {"x": inputs})[0]
    with torch.no_grad():
        got = read_onnx(path, with_weights=True).module(torch.from_numpy(inputs))
    np.testing.assert_allclose(got.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("Softmax", {"axis": 7}),
        ("Flatten", {"axis": 7}),
        ("ReduceMean", {"axes": [7]}),
        ("Gather", {"axis": 7}),
        ("Gather", {"axis": -3}),
    ],
)
def test_an_axis_that_a_tensor_does_not_have_is_told(tmp_path, op, attributes):
    weight, picked = numpy_helper.from_array(f32(16, 16), "w"), numpy_helper.from_array(i64(0, 1), "picked")
    inputs = ["h", "picked"] if op == "Gather" else ["h"]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["h"]),
        helper.make_node(op, inputs, ["y"], name="odd", **attributes),
    ]
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 16])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "broken", [given], [made], [weight, picked])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "broken.onnx")
    axis = attributes.get("axis", 7)
    with pytest.raises(CaptureError, match=rf"The {op} 'odd' asks for axis {axis} of a tensor with 2 dimensions"):
        tc.load_model(tmp_path / "broken.onnx")


def broken_model(tmp_path, nodes):
    given = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 16])
    made = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "broken", [given], [made])
    path = tmp_path / "broken.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


@pytest.mark.parametrize(
    ("ends", "words"),
    [
        ([("x", "h"), ("y", "y")], r"node 'second' reads 'y', which nothing before it makes\."),
        ([("h", "y"), ("x", "h")], r"node 'first' reads 'h', which nothing before it makes\."),
        ([("x", "y"), ("x", "y")], r"node 'second' makes 'y' a second time\."),
    ],
)
def test_a_graph_that_goes_in_a_circle_or_back_is_refused(tmp_path, ends, words):
    nodes = [
        helper.make_node("Relu", [given], [made], name=name)
        for name, (given, made) in zip(("first", "second"), ends, strict=True)
    ]
    with pytest.raises(FileFormatError, match=words):
        tc.load_model(broken_model(tmp_path, nodes))


def test_an_attribute_whose_tensor_has_no_type_is_told(tmp_path):
    node = helper.make_node("Relu", ["x"], ["y"])
    node.attribute.add(name="odd", type=onnx.AttributeProto.TENSOR)
    with pytest.raises(FileFormatError, match=r"broken\.onnx holds a node or tensor that cannot be read"):
        tc.load_model(broken_model(tmp_path, [node]))


@pytest.mark.parametrize("dims", [[], [4], [4, 16, 3, 3, 3, 3]])
def test_a_weight_that_does_not_fit_its_convolution_is_told(tmp_path, dims):
    path = broken_model(tmp_path, [helper.make_node("Conv", ["x", "w"], ["y"], name="first", kernel_shape=[3, 3])])
    model = onnx.load(path)
    model.graph.initializer.append(TensorProto(name="w", data_type=TensorProto.FLOAT, dims=dims))
    onnx.save(model, path)
    with pytest.raises(FileFormatError, match=r"The ONNX node 'first' \(Conv\) has weights or attributes that do not"):
        tc.load_model(path)


@pytest.mark.parametrize(
    ("data_type", "words"),
    [
        (TensorProto.INT4, "numbers of type int4, which torch"),
        (TensorProto.UINT16, "numbers of type torch.uint16, for"),
    ],
)
def test_numbers_that_cannot_be_computed_with_are_told(tmp_path, data_type, words):
    path = broken_model(tmp_path, [helper.make_node("Add", ["x", "b"], ["y"], name="first")])
    model = onnx.load(path)
    model.graph.initializer.append(helper.make_tensor("b", data_type, [16], [1] * 16))
    onnx.save(model, path)
    with pytest.raises(CaptureError, match=words):
        tc.capture(tc.load_model(path), torch.randn(2, 16))


@pytest.mark.parametrize(
    ("dims", "words"),
    [
        ([-4], r"the tensor 'b' has a dimension below 0: \(-4,\)\."),
        ([4, 1 << 62, 3], r"the tensor 'b' is larger than any model: \(4, 4611686018427387904, 3\)\."),
    ],
)
def test_a_tensor_of_no_size_that_can_be_is_told(tmp_path, dims, words):
    path = broken_model(tmp_path, [helper.make_node("Add", ["x", "b"], ["y"])])
    model = onnx.load(path)
    model.graph.initializer.append(TensorProto(name="b", data_type=TensorProto.FLOAT, dims=dims))
    onnx.save(model, path)
    with pytest.raises(FileFormatError, match=words):
        tc.load_model(path)
