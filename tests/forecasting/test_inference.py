"""Forward passes of a trained model: their time, peak throughput and what cannot be asked of them."""

import pytest

import traincast as tc
from traincast.errors import TraincastError


def test_a_forward_pass_has_no_other_phase_and_takes_less_than_a_training_step():
    trains = tc.forecast("vgg16", "K80", 1)
    predicts = tc.forecast("vgg16", "K80", 1, mode="inference")

    assert predicts.step_s == predicts.forward_s < trains.step_s
    assert (predicts.loss_s, predicts.backward_s, predicts.optimizer_s) == (0, 0, 0)
    assert predicts.peak_memory_bytes < trains.peak_memory_bytes
    assert predicts.to_dict()["mode"] == "inference"


def test_devices_side_by_side_exchange_nothing_and_wait_for_nobody():
    alone = tc.forecast("resnet18", "T4", 32, mode="inference")
    four = tc.forecast("resnet18", "4xT4", 128, mode="inference")

    assert four.step_s == pytest.approx(alone.step_s)
    assert four.bytes_sent == 0
    assert four.samples_per_s == pytest.approx(4 * alone.samples_per_s)


def test_all_four_questions_take_the_mode():
    scaled = tc.scale("resnet18", "T4", (1, 2), batch_size_per_gpu=8, mode="inference")
    assert scaled.weak.points[-1].efficiency_fraction == pytest.approx(1.0)
    planned = tc.plan("resnet18", n_samples=10**6, n_epochs=1, batch_size=64, mode="inference", max_gpus=2)
    assert planned.cheapest.question.is_inference
    explained = tc.explain("resnet18", "T4", 8, mode="inference")
    reasons = {one.name: one.reason for one in explained.advice.left_out}
    assert reasons["checkpointing"] == "inference keeps no activations"
    assert "learning rate" not in str(explained.to_dict())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"optimizer": "adam"}, "Inference updates no weights, so it has no optimizer: leave 'adam' out."),
        ({"accumulation_steps": 2}, "Inference accumulates no gradients: leave the accumulation steps out."),
        ({"strategy": "fsdp"}, "whole model on every device (strategy 'ddp'), not with 'fsdp'"),
        ({"tensor_parallel": 2}, "leave tensor and pipeline out"),
        ({"mode": "eval"}, "mode 'eval' is not known. Choose from: train, inference."),
    ],
)
def test_what_means_nothing_to_inference_is_refused(options, message):
    with pytest.raises(TraincastError) as error:
        tc.forecast("resnet18", "2xT4", 8, **{"mode": "inference", **options})
    assert message in str(error.value)
