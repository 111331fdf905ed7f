"""The models that traincast knows by name, with their published sizes. It does not import torch.

A member's GMACs are the multiply-adds of one forward sample at the default options, in billions, as published
and with the source's digits. torchvision's documentation calls them GFLOPS and rounds them further than the
metadata of its weights, from which they are taken here; they count convolutions and matrix products only.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from traincast.errors import UnknownModelError, close_names
from traincast.frontend.models.zoo_model import MOST, LossName, Option, ZooModel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["ZOO", "ZooModel", "find"]

TORCHVISION = "torchvision 0.28, metadata of the weights"
TIMM = "timm, model cards of resnext101_32x4d.gluon_in1k and resnext101_32x16d.fb_ssl_yfcc100m_ft_in1k"
Member = tuple[str, str, int, float | None]  # name, title, parameters, published GMACs


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """What models of one file have in common."""

    module: str
    source: str
    rules: Mapping[str, Option]
    task: str = "image"
    loss: LossName = "labels"
    n_channels: int | None = 3
    gmacs_source: str | None = TORCHVISION

    def members(self, *members: Member) -> Iterator[ZooModel]:
        for name, title, n_parameters, gmacs in members:
            yield ZooModel(
                name=name,
                title=title,
                source=self.source,
                task=self.task,
                loss=self.loss,
                module=self.module,
                rules=self.rules,
                n_parameters=n_parameters,
                n_channels=self.n_channels,
                gmacs=gmacs,
                gmacs_source=None if gmacs is None else self.gmacs_source,
            )


def images(size: int = 224, *, smallest: int = 1, n_classes: int = 1000) -> dict[str, Option]:
    """Options of a network that pools to a fixed size, so that its parameters do not depend on the image.

    `smallest` is the least image at which every layer still has an input.
    """
    return {
        "n_classes": Option(default=n_classes),
        "image_size": Option(default=size, at_least=smallest, in_module=False),
    }


def fixed_images(size: int, *, smallest: int, n_classes: int = 1000, multiple_of: int = 1) -> dict[str, Option]:
    """Options of a network with a layer that is sized for its image."""
    image_size = Option(default=size, at_least=smallest, multiple_of=multiple_of)
    return {"n_classes": Option(default=n_classes), "image_size": image_size}


def tokens(seqlen: int, *, at_least: int = 1, at_most: int = MOST) -> dict[str, Option]:
    return {"seqlen": Option(default=seqlen, at_least=at_least, at_most=at_most, in_module=False)}


def convolution_networks() -> Iterator[ZooModel]:
    yield from Family(module="alexnet", source="Krizhevsky 2014, arXiv 1404.5997", rules=images(smallest=63)).members(
        ("alexnet", "AlexNet (torchvision)", 61_100_840, 0.714)
    )
    yield from Family(
        module="vgg", source="Simonyan and Zisserman 2015, arXiv 1409.1556", rules=images(smallest=32)
    ).members(
        ("vgg11", "VGG-11 (torchvision)", 132_863_336, 7.609),
        ("vgg16", "VGG-16 (torchvision)", 138_357_544, 15.47),
        ("vgg19", "VGG-19 (torchvision)", 143_667_240, 19.632),
    )
    yield from Family(
        module="nin",
        source="Lin et al. 2014, arXiv 1312.4400; Caffe model zoo nin_imagenet",
        rules=images(smallest=39),
    ).members(("nin", "Network in Network (ImageNet)", 7_595_176, None))
    yield from Family(
        module="overfeat",
        source="Sermanet et al. 2014, arXiv 1312.6229; padding as in soumith/convnet-benchmarks",
        rules=fixed_images(231, smallest=71),
    ).members(("overfeat", "OverFeat (fast)", 145_920_872, None))
    yield from Family(
        module="googlenet", source="Szegedy et al. 2015, arXiv 1409.4842", rules=images(smallest=15)
    ).members(("googlenet", "GoogLeNet (torchvision, no auxiliary heads)", 6_624_904, 1.498))
    yield from Family(
        module="inception", source="Szegedy et al. 2016, arXiv 1512.00567", rules=images(299, smallest=75)
    ).members(("inception_v3", "Inception-v3 (torchvision, no auxiliary head)", 23_834_568, 5.713))


def residual_networks() -> Iterator[ZooModel]:
    yield from Family(module="resnet", source="He et al. 2016, arXiv 1512.03385", rules=images()).members(
        ("resnet18", "ResNet-18 (torchvision)", 11_689_512, 1.814),
        ("resnet34", "ResNet-34 (torchvision)", 21_797_672, 3.664),
        ("resnet50", "ResNet-50 v1.5 (torchvision)", 25_557_032, 4.089),
        ("resnet101", "ResNet-101 v1.5 (torchvision)", 44_549_160, 7.801),
        ("resnet152", "ResNet-152 v1.5 (torchvision)", 60_192_808, 11.514),
    )
    grouped = "Xie et al. 2017, arXiv 1611.05431"
    yield from Family(module="resnext", source=grouped, rules=images()).members(
        ("resnext50_32x4d", "ResNeXt-50 32x4d (torchvision)", 25_028_904, 4.23),
        ("resnext101_32x8d", "ResNeXt-101 32x8d (torchvision)", 88_791_336, 16.414),
    )
    wider = f"{grouped}; sizes as in facebookresearch/semi-supervised-ImageNet1K-models"
    yield from Family(module="resnext", source=wider, rules=images(), gmacs_source=TIMM).members(
        ("resnext101_32x4d", "ResNeXt-101 32x4d", 44_177_704, 8.0),
        ("resnext101_32x16d", "ResNeXt-101 32x16d", 194_026_792, 36.3),
    )
    yield from Family(
        module="cifar_resnet",
        source="He et al. 2016, arXiv 1512.03385; as in kuangliu/pytorch-cifar",
        rules=images(32, n_classes=10),
    ).members(("cifar_resnet18", "ResNet-18 for CIFAR (3x3 stem)", 11_173_962, None))
    yield from Family(
        module="cifar_resnet",
        source="He et al. 2016, arXiv 1512.03385, section 4.2",
        rules=images(32, n_classes=10),
    ).members(
        ("cifar_resnet20", "ResNet-20 for CIFAR (option A)", 269_722, None),
        ("cifar_resnet32", "ResNet-32 for CIFAR (option A)", 464_154, None),
        ("cifar_resnet44", "ResNet-44 for CIFAR (option A)", 658_586, None),
        ("cifar_resnet56", "ResNet-56 for CIFAR (option A)", 853_018, None),
        ("cifar_resnet110", "ResNet-110 for CIFAR (option A)", 1_727_962, None),
    )


def later_image_networks() -> Iterator[ZooModel]:
    yield from Family(
        module="densenet", source="Huang et al. 2017, arXiv 1608.06993", rules=images(smallest=29)
    ).members(("densenet121", "DenseNet-121 (torchvision)", 7_978_856, 2.834))
    yield from Family(module="mobilenet", source="Sandler et al. 2018, arXiv 1801.04381", rules=images()).members(
        ("mobilenet_v2", "MobileNetV2 (torchvision)", 3_504_872, 0.301)
    )
    yield from Family(module="efficientnet", source="Tan and Le 2019, arXiv 1905.11946", rules=images()).members(
        ("efficientnet_b0", "EfficientNet-B0 (torchvision)", 5_288_548, 0.386)
    )
    yield from Family(
        module="vit",
        source="Dosovitskiy et al. 2021, arXiv 2010.11929",
        rules=fixed_images(224, smallest=16, multiple_of=16),
    ).members(("vit_b_16", "ViT-B/16 (torchvision)", 86_567_656, 17.564))


def language_models() -> Iterator[ZooModel]:
    yield from Family(
        module="lstm",
        source="Zaremba et al. 2014, arXiv 1409.2329, medium",
        task="language",
        n_channels=None,
        rules=tokens(35),
    ).members(("lstm_lm", "Word-level LSTM language model", 19_780_400, None))
    yield from Family(
        module="bert",
        source="Devlin et al. 2019, arXiv 1810.04805",
        task="qa",
        loss="span",
        n_channels=None,
        rules={**tokens(384, at_most=512), "head": Option(default="qa", choices=("qa", "mlm"))},
    ).members(
        ("bert-base", "BERT base", 108_893_186, None),
        ("bert-large", "BERT large", 334_094_338, None),
    )
    # The loss shifts by one token: a sequence of one has nothing to predict.
    yield from Family(
        module="gpt2",
        source="Radford et al. 2019, Language models are unsupervised multitask learners",
        task="language",
        loss="next-token",
        n_channels=None,
        rules=tokens(1024, at_least=2, at_most=1024),
    ).members(
        ("gpt2", "GPT-2 (124M)", 124_439_808, None),
        ("gpt2-medium", "GPT-2 medium", 354_823_168, None),
        ("gpt2-large", "GPT-2 large", 774_030_080, None),
        ("gpt2-xl", "GPT-2 XL", 1_557_611_200, None),
    )
    yield from Family(
        module="llama",
        source="Touvron et al. 2023, arXiv 2302.13971; sizes of Llama 3.2 1B",
        task="language",
        loss="next-token",
        n_channels=None,
        rules=tokens(2048, at_least=2, at_most=131_072),
    ).members(("llama-1b", "Llama-style decoder (Llama 3.2 1B)", 1_235_814_400, None))


def seed_networks() -> Iterator[ZooModel]:
    source = "Keras networks of published layer-time measurements; the output is logits"
    mnist = fixed_images(28, smallest=22, n_classes=10)
    yield from Family(module="plain_cnn", source=source, n_channels=1, rules=mnist).members(
        ("mnist_cnn", "MNIST network with 3 convolutions", 24_330, None)
    )
    mnist_2conv = fixed_images(28, smallest=10, n_classes=10)
    yield from Family(module="plain_cnn", source=source, n_channels=1, rules=mnist_2conv).members(
        ("mnist_cnn_2conv", "MNIST network with 2 convolutions", 113_386, None)
    )
    cifar = fixed_images(32, smallest=22, n_classes=10)
    yield from Family(module="plain_cnn", source=source, rules=cifar).members(
        ("cifar10_cnn", "CIFAR-10 network with 3 convolutions", 288_746, None)
    )
    patches = fixed_images(96, smallest=64, n_classes=1)
    yield from Family(module="plain_cnn", source=source, loss="binary", rules=patches).members(
        ("patchcamelyon_cnn", "PatchCamelyon network with 6 convolutions", 19_941_381, None)
    )


def all_models() -> Iterator[ZooModel]:
    yield from convolution_networks()
    yield from residual_networks()
    yield from later_image_networks()
    yield from language_models()
    yield from seed_networks()


ZOO: Mapping[str, ZooModel] = MappingProxyType({model.name: model for model in all_models()})


def find(name: str) -> ZooModel:
    """The zoo model of that name."""
    if name not in ZOO:
        raise UnknownModelError(f"No zoo model named '{name}'.{close_names(name, ZOO)}")
    return ZOO[name]
