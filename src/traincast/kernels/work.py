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
    UNEVEN = 33  # 16-bit operands of different shape, layout or dtype: loaded one element at a time
    SOFTMAX_HUGE = 34  # rows that the cache loses before they are read again: three reads and a write
    RMS_NORM = 35  # fused, as layer norm is
    RMS_NORM_BACKWARD = 36
    LABEL_LOSS = 37  # the loss of each row's label: one block of threads for all rows
    # Kernels that a compiler or a library of tuned kernels writes: inputs are read once, outputs written once.
    TUNED_ELEMENTWISE = 38
    TUNED_NORM = 39
    TUNED_NORM_BACKWARD = 40
    TUNED_LOSS = 41
    TUNED_EMBEDDING = 42
    COMPILED_NORM_BACKWARD = 43  # generated code passes over input and gradient again for the weight's gradient
    CAST = 44  # between 16 and 32 bits


FIRST_BYTES = Work.ELEMENTWISE
GROUPED_WORKS = (Work.GROUPED, Work.GROUPED_INPUT, Work.GROUPED_WEIGHT)
DEPTHWISE_WORKS = (Work.DEPTHWISE, Work.DEPTHWISE_INPUT, Work.DEPTHWISE_WEIGHT)
ATTENTION_WORKS = (Work.ATTENTION, Work.ATTENTION_BACKWARD)  # fused: they have rules of their own
CONVOLUTION_WORKS = tuple(range(Work.CONVOLUTION, Work.ATTENTION))
ELEMENT_WORKS = (Work.UNEVEN, Work.CAST)  # one element at a time: its instructions, where its bytes take less
# Threads work on each element for long, or on few bytes at once: the slower of instructions and bytes.
OVERLAPPED_WORKS = (*ELEMENT_WORKS, Work.DROPOUT, Work.BATCH_NORM, Work.BATCH_NORM_BACKWARD)
NORM_WORKS = (Work.LAYER_NORM, Work.LAYER_NORM_BACKWARD, Work.RMS_NORM, Work.RMS_NORM_BACKWARD)  # one block a row
N_WORKS = len(Work)
