"""All kinds of device work on one page: what the kernels of an op do, as far as their speed is concerned."""

from __future__ import annotations

from enum import IntEnum


class Work(IntEnum):
    """One kernel's work. Up to RECURRENT it is made of products, from ELEMENTWISE on of bytes."""

    LINEAR = 0
    BATCHED = 1
    CONVOLUTION = 2
    CONVOLUTION_INPUT = 3  # gradient of the input
    CONVOLUTION_WEIGHT = 4  # gradient of the weight
    GROUPED = 5
    GROUPED_INPUT = 6
    GROUPED_WEIGHT = 7
    DEPTHWISE = 8  # one filter a channel: too few products a byte for matrix units
    DEPTHWISE_INPUT = 9
    DEPTHWISE_WEIGHT = 10
    ATTENTION = 11  # fused
    ATTENTION_BACKWARD = 12
    RECURRENT = 13
    ELEMENTWISE = 14
    BATCH_NORM = 15
    BATCH_NORM_BACKWARD = 16
    BATCH_NORM_INFERENCE = 17
    LAYER_NORM = 18
    LAYER_NORM_BACKWARD = 19
    SOFTMAX = 20
    SOFTMAX_LONG = 21  # rows of more than 1,024 elements are read twice
    SOFTMAX_BACKWARD = 22
    REDUCTION = 23
    POOLING = 24
    POOLING_BACKWARD = 25
    EMBEDDING = 26
    EMBEDDING_BACKWARD = 27
    DROPOUT = 28
    COPY = 29
    STRIDED_COPY = 30  # transposes and other reads out of order
    FACTORY = 31
    OPTIMIZER = 32


FIRST_BYTES = Work.ELEMENTWISE
GROUPED_WORKS = (Work.GROUPED, Work.GROUPED_INPUT, Work.GROUPED_WEIGHT)
DEPTHWISE_WORKS = (Work.DEPTHWISE, Work.DEPTHWISE_INPUT, Work.DEPTHWISE_WEIGHT)
CONVOLUTION_WORKS = tuple(range(Work.CONVOLUTION, Work.ATTENTION))
N_WORKS = len(Work)
