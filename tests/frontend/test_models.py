"""The zoo: published sizes, the options that change them, and real steps of the small ones."""

import functools
import math
import subprocess
import sys
from decimal import Decimal
from typing import NamedTuple

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from traincast.errors import InputError, UnknownModelError
from traincast.frontend.models import bert, gpt2, llama, training_step
from traincast.frontend.models.cifar_resnet import PaddedShortcut
from traincast.frontend.models.efficientnet import StochasticDepth
from traincast.frontend.models.registry import ZOO
from traincast.frontend.models.training_step import build_for_training

NAMES = [
    "alexnet",
    "vgg11",
    "vgg16",
    "vgg19",
    "nin",
    "overfeat",
    "googlenet",
    "inception_v3",
    "resnet18",
    "resnet34",
    "resnet50",
    "resnet101",
    "resnet152",
    "resnext50_32x4d",
    "resnext101_32x8d",
    "resnext101_32x4d",
    "resnext101_32x16d",
    "cifar_resnet18",
    "cifar_resnet20",
    "cifar_resnet32",
    "cifar_resnet44",
    "cifar_resnet56",
    "cifar_resnet110",
    "densenet121",
    "mobilenet_v2",
    "efficientnet_b0",
    "vit_b_16",
    "lstm_lm",
    "bert-base",
    "bert-large",
    "gpt2",
    "gpt2-medium",
    "gpt2-large",
    "gpt2-xl",
    "llama-1b",
    "mnist_cnn",
    "mnist_cnn_2conv",
    "cifar10_cnn",
    "patchcamelyon_cnn",
]
IMAGE_NAMES = [name for name, model in ZOO.items() if model.task == "image"]
PUBLISHED_GMACS = [name for name, model in ZOO.items() if model.gmacs is not None]

# Layers as torchvision calls them, with the shapes of its state dict.
TORCHVISION_LAYERS = [
    ("alexnet", "features.10.weight", (256, 256, 3, 3)),
    ("alexnet", "classifier.6.bias", (1000,)),
    ("vgg11", "features.18.weight", (512, 512, 3, 3)),
    ("vgg16", "features.28.weight", (512, 512, 3, 3)),
    ("vgg19", "classifier.0.weight", (4096, 25088)),
    ("googlenet", "conv1.bn.running_mean", (64,)),
    ("googlenet", "inception4e.branch3.1.conv.weight", (128, 32, 3, 3)),
    ("inception_v3", "Conv2d_4a_3x3.conv.weight", (192, 80, 3, 3)),
    ("inception_v3", "Mixed_6c.branch7x7dbl_2.conv.weight", (160, 160, 7, 1)),
    ("inception_v3", "Mixed_7c.branch3x3dbl_3b.bn.weight", (384,)),
    ("resnet18", "layer1.0.conv1.weight", (64, 64, 3, 3)),
    ("resnet50", "layer2.0.downsample.0.weight", (512, 256, 1, 1)),
    ("resnet152", "layer3.35.bn3.weight", (1024,)),
    ("resnext50_32x4d", "layer1.0.conv2.weight", (128, 4, 3, 3)),
    ("resnext101_32x8d", "layer4.2.conv2.weight", (2048, 64, 3, 3)),
    ("resnext101_32x8d", "layer3.22.bn2.running_var", (1024,)),
    ("densenet121", "features.denseblock3.denselayer24.conv2.weight", (32, 128, 3, 3)),
    ("densenet121", "features.transition1.conv.weight", (128, 256, 1, 1)),
    ("mobilenet_v2", "features.1.conv.0.0.weight", (32, 1, 3, 3)),
    ("mobilenet_v2", "features.17.conv.3.running_var", (320,)),
    ("efficientnet_b0", "features.2.0.block.2.fc1.weight", (4, 96, 1, 1)),
    ("efficientnet_b0", "features.8.1.bias", (1280,)),
    ("vit_b_16", "encoder.pos_embedding", (1, 197, 768)),
    ("vit_b_16", "encoder.layers.encoder_layer_11.self_attention.in_proj_weight", (2304, 768)),
    ("vit_b_16", "encoder.layers.encoder_layer_0.mlp.3.weight", (768, 3072)),
    ("vit_b_16", "heads.head.weight", (1000, 768)),
]


class Step(NamedTuple):
    n_parameters: int
    forward_macs: float
    loss_shape: tuple[int, ...]
    without_gradient: list[str]


@functools.cache
def step(name):
    """What a training step of two samples, with default options and on meta, is made of."""
    with torch.device("meta"):
        module, example, loss = build_for_training(name)
        inputs = example(2)
        counter = FlopCounterMode(display=False)
        with counter:
            output = module(*inputs)
        value = loss(output, inputs)
        value.backward()
    without_gradient = [path for path, parameter in module.named_parameters() if parameter.grad is None]
    return Step(n_parameters(module), counter.get_total_flops() / 2 / 2, value.shape, without_gradient)


def n_parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def on_meta(name, **options):
    with torch.device("meta"):
        module, example, _ = build_for_training(name, **options)
        return module, module(*example(2))


def test_the_zoo_knows_these_models_in_this_order():
    assert list(ZOO) == NAMES


def test_listing_the_zoo_and_checking_options_needs_no_torch():
    program = """
import sys
from traincast.frontend.models.registry import ZOO
ZOO["resnet50"].complete(n_classes=10)
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("name", NAMES)
def test_a_model_has_exactly_its_published_parameters(name):
    assert step(name).n_parameters == ZOO[name].n_parameters


@pytest.mark.parametrize("name", PUBLISHED_GMACS)
def test_a_forward_pass_multiplies_as_often_as_published(name):
    published = ZOO[name].gmacs
    half_its_last_digit = 10.0 ** Decimal(str(published)).as_tuple().exponent / 2
    assert step(name).forward_macs / 1e9 == pytest.approx(published, rel=0, abs=0.01 * published + half_its_last_digit)


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_takes_part_in_the_training_step(name):
    assert step(name).loss_shape == ()
    assert step(name).without_gradient == []


@pytest.mark.parametrize(("name", "layer", "shape"), TORCHVISION_LAYERS)
def test_a_torchvision_model_keeps_torchvisions_layer_names(name, layer, shape):
    with torch.device("meta"):
        weights = ZOO[name].build().state_dict()

    assert weights[layer].shape == shape


def test_without_torch_building_a_model_says_which_extra_it_needs():
    program = """
import sys
sys.modules["torch"] = None
from traincast.errors import MissingExtraError
from traincast.frontend.models.registry import ZOO
try:
    ZOO["mnist_cnn"].build()
except MissingExtraError as error:
    assert "pip install 'traincast[torch]'" in str(error), error
else:
    raise AssertionError("built without torch")
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_model_names_its_source():
    for model in ZOO.values():
        assert model.title
        assert model.source
        assert (model.gmacs is None) == (model.gmacs_source is None)


@pytest.mark.parametrize("name", IMAGE_NAMES)
def test_an_image_model_answers_with_the_classes_asked_for_at_its_smallest_image(name):
    smallest = ZOO[name].rules["image_size"].at_least

    _, logits = on_meta(name, n_classes=7, image_size=smallest)

    assert logits.shape == (2, 7)


@pytest.mark.parametrize("name", IMAGE_NAMES)
def test_an_image_below_the_smallest_is_refused_in_words(name):
    rule = ZOO[name].rules["image_size"]
    given = rule.at_least - rule.multiple_of

    with pytest.raises(InputError, match=rf"image_size={given} .* {name}.* from {rule.at_least} to"):
        build_for_training(name, image_size=given)


@pytest.mark.parametrize(("name", "smallest"), [("inception_v3", 75), ("alexnet", 63), ("vgg16", 32)])
def test_the_smallest_image_is_the_one_where_a_layer_would_lose_its_input(name, smallest):
    with torch.device("meta"):
        module = ZOO[name].build()
        assert ZOO[name].rules["image_size"].at_least == smallest
        with pytest.raises(RuntimeError):
            module(torch.zeros(2, 3, smallest - 1, smallest - 1))


def test_ten_classes_change_the_last_layer_of_a_resnet_and_nothing_else():
    with torch.device("meta"):
        usual, small = ZOO["resnet50"].build(), ZOO["resnet50"].build(n_classes=10)

    assert small.fc.weight.shape == (10, 2048)
    assert n_parameters(usual) - n_parameters(small) == 990 * (2048 + 1)


def test_a_larger_image_costs_a_resnet_more_work_but_no_parameters():
    def macs(image_size):
        with torch.device("meta"), FlopCounterMode(display=False) as counter:
            module, example, _ = build_for_training("resnet18", image_size=image_size)
            module(*example(2))
        return n_parameters(module), counter.get_total_flops()

    (n_small, small), (n_large, large) = macs(64), macs(128)
    assert n_small == n_large
    assert large == pytest.approx(4 * small, rel=0.01)


def test_a_larger_image_gives_a_vision_transformer_more_positions():
    module, _ = on_meta("vit_b_16", image_size=384)

    assert module.encoder.pos_embedding.shape == (1, 24 * 24 + 1, 768)


def test_a_larger_image_widens_the_first_linear_layer_of_overfeat():
    module, _ = on_meta("overfeat", image_size=231 + 32)

    assert module.classifier[1].in_features == 1024 * 7 * 7


@pytest.mark.parametrize(
    ("name", "vocabulary"), [("lstm_lm", 10_000), ("bert-base", 2), ("gpt2", 50_257), ("llama-1b", 128_256)]
)
def test_the_sequence_length_sets_how_many_positions_are_answered(name, vocabulary):
    _, logits = on_meta(name, seqlen=12)

    assert logits.shape == (2, 12, vocabulary)


def test_bert_with_a_masked_word_head_ties_its_output_to_the_embedding():
    with torch.device("meta"):
        module, example, loss = build_for_training("bert-base", head="mlm", seqlen=8)
        inputs = example(2)
        logits = module(*inputs)

    assert n_parameters(module) == 109_514_298
    assert module.cls["predictions"].decoder.weight is module.bert.embeddings.word_embeddings.weight
    assert logits.shape == (2, 8, 30_522)
    assert loss(logits, inputs).shape == ()


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("resnet50", {"seqlen": 8}, "resnet50 takes no option 'seqlen'; it takes n_classes, image_size."),
        ("gpt2", {"n_classes": 8}, "gpt2 takes no option 'n_classes'; it takes seqlen."),
        ("resnet50", {"n_classes": 0}, "n_classes=0 .* resnet50: .* a whole number from 1 to 1,000,000."),
        ("resnet50", {"n_classes": "ten"}, "n_classes='ten' .* a whole number from 1 to 1,000,000."),
        ("resnet50", {"n_classes": True}, "n_classes=True .* a whole number from 1 to 1,000,000."),
        ("bert-base", {"head": "ner"}, "head='ner' .* bert-base: .* one of qa, mlm."),
        ("bert-large", {"seqlen": 513}, "seqlen=513 .* bert-large: .* a whole number from 1 to 512."),
        ("gpt2-xl", {"seqlen": 1025}, "seqlen=1025 .* gpt2-xl: .* a whole number from 2 to 1,024."),
        ("gpt2", {"seqlen": 1}, "seqlen=1 .* from 2 to 1,024."),
        ("vit_b_16", {"image_size": 230}, "image_size=230 .* vit_b_16: .* a multiple of 16 from 16 to 1,000,000."),
    ],
)
def test_an_option_that_cannot_be_is_refused_in_words(name, options, words):
    with pytest.raises(InputError, match=words):
        build_for_training(name, **options)


def test_an_unknown_name_is_answered_with_close_ones():
    with pytest.raises(UnknownModelError, match=r"No zoo model named 'resnet51'. Close names: .*resnet50"):
        build_for_training("resnet51")


def test_equal_logits_lose_the_logarithm_of_the_number_of_choices():
    ids = (torch.zeros(3, 5, dtype=torch.long),)

    assert training_step.label_loss(torch.zeros(3, 10), ids).item() == pytest.approx(math.log(10))
    assert training_step.label_loss(torch.zeros(3, 5, 7), ids).item() == pytest.approx(math.log(7))
    assert training_step.next_token_loss(torch.zeros(3, 5, 7), ids).item() == pytest.approx(math.log(7))
    assert training_step.span_loss(torch.zeros(3, 5, 2), ids).item() == pytest.approx(math.log(5))
    assert training_step.binary_loss(torch.zeros(3, 1), ids).item() == pytest.approx(math.log(2))


def test_a_causal_model_that_knows_the_following_token_loses_nothing():
    ids = torch.tensor([[0, 1, 2, 3]])
    certain = 50.0 * torch.nn.functional.one_hot(torch.tensor([[1, 2, 3, 0]]), 4)

    assert training_step.next_token_loss(certain, (ids,)).item() == pytest.approx(0.0, abs=1e-6)


def test_the_loss_of_half_precision_logits_is_computed_in_float32():
    loss = training_step.next_token_loss(torch.zeros(1, 3, 4, dtype=torch.bfloat16), (torch.zeros(1, 3).long(),))

    assert loss.dtype == torch.float32


@pytest.mark.parametrize(
    ("name", "options"),
    [("mnist_cnn", {}), ("cifar_resnet20", {"image_size": 16}), ("lstm_lm", {"seqlen": 5})],
)
def test_a_few_real_steps_have_finite_gradients_everywhere_and_lower_the_loss(name, options):
    torch.manual_seed(0)
    module, example, loss = build_for_training(name, **options)
    inputs = tuple(torch.randn_like(x) if x.is_floating_point() else x for x in example(4))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.05)
    losses = []
    for _ in range(4):
        optimizer.zero_grad()
        value = loss(module(*inputs), inputs)
        value.backward()
        assert all(parameter.grad.isfinite().all() for parameter in module.parameters())
        optimizer.step()
        losses.append(value.item())

    assert losses[-1] < losses[0]


def test_a_network_starts_with_activations_of_ordinary_size():
    torch.manual_seed(0)
    module = ZOO["resnet18"].build(n_classes=10)

    logits = module(torch.randn(4, 3, 64, 64))

    assert 0.01 < logits.std().item() < 10


def test_stochastic_depth_drops_or_doubles_whole_samples_and_keeps_their_mean():
    torch.manual_seed(0)
    layer = StochasticDepth(0.5)

    kept = layer(torch.ones(1000, 2, 3, 3))

    assert set(kept.unique().tolist()) == {0.0, 2.0}
    assert all(len(sample.unique()) == 1 for sample in kept[:20])
    assert kept.mean().item() == pytest.approx(1.0, abs=0.1)
    assert torch.equal(layer.eval()(kept), kept)


def test_the_parameter_free_shortcut_takes_every_second_pixel_and_pads_channels_with_zeros():
    image = torch.arange(16.0).reshape(1, 1, 4, 4)

    shortcut = PaddedShortcut(1, 3)(image)

    assert shortcut[0, 1].tolist() == [[0.0, 2.0], [8.0, 10.0]]
    assert shortcut[0, 0].count_nonzero() == shortcut[0, 2].count_nonzero() == 0


SMALL = {"hidden": 32, "n_layers": 2, "n_heads": 4, "vocabulary": 50}


@pytest.mark.parametrize(
    ("build", "sizes"),
    [
        (gpt2.Gpt2, gpt2.Gpt2Sizes(**SMALL)),
        (llama.Llama, llama.LlamaSizes(**SMALL, n_kv_heads=2, feed_forward=64)),
    ],
    ids=["gpt2", "llama"],
)
def test_a_causal_model_never_sees_the_tokens_to_come(build, sizes):
    module = build(sizes)
    ids = torch.tensor([[3, 1, 4, 1, 5], [3, 1, 4, 9, 2]])

    logits = module.eval()(ids)

    torch.testing.assert_close(logits[0, :3], logits[1, :3])
    assert not torch.allclose(logits[0, 3], logits[1, 3])


def test_bert_does_not_see_the_padding_that_its_mask_hides():
    module = bert.BertForQuestionAnswering(bert.BertSizes(**SMALL, feed_forward=64)).eval()
    ids = torch.tensor([[3, 1, 4, 1, 5], [3, 1, 4, 9, 2]])
    mask = torch.tensor([[1, 1, 1, 0, 0]]).expand(2, -1)

    hidden, seen = module(ids, attention_mask=mask), module(ids)

    torch.testing.assert_close(hidden[0, :3], hidden[1, :3])
    assert not torch.allclose(seen[0, :3], seen[1, :3])


def test_rotating_query_and_key_alike_leaves_what_depends_on_their_distance():
    sizes = llama.LlamaSizes(**SMALL, n_kv_heads=2, feed_forward=64)
    cosines, sines = llama.RotaryEmbedding(sizes)(torch.zeros(1, 10, 32))
    torch.manual_seed(0)
    query, key = torch.randn(8), torch.randn(8)

    def score(at, other):
        turned = [llama.rotate(x, (cosines[i], sines[i])) for x, i in ((query, at), (key, other))]
        return torch.dot(*turned).item()

    assert score(2, 5) == pytest.approx(score(6, 9), rel=1e-4)
    assert score(2, 5) != pytest.approx(score(2, 6), rel=1e-2)


def test_gpt2_starts_its_residual_branches_narrower_the_deeper_it_is():
    torch.manual_seed(0)
    block = gpt2.Gpt2(gpt2.Gpt2Sizes(hidden=64, n_layers=8, n_heads=4, vocabulary=50)).transformer.h[0]

    assert block.mlp.c_fc.weight.std().item() == pytest.approx(0.02, rel=0.1)
    assert block.mlp.c_proj.weight.std().item() == pytest.approx(0.02 / math.sqrt(16), rel=0.1)
