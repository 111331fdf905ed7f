"""Rows that no set holds are named, with the reason."""

import numpy as np

from lab.accuracy.unscored import Unscored, UnscoredModel, unscored_of
from lab.accuracy.unscored_page import unscored_section
from traincast.validation.measured_set import MeasuredSet, Prediction

TIMM = "gpu,model,family,layout,batch_size,img_size,samples_per_s,step_ms\n"
LAMBDA = (
    "gpu,num_gpus,precision,precision_tag,tf32_allowed,model,batch_size,throughput,unit,suite,pytorch,system,runs,"
    "spread,flag,overcount\n"
)


def example(gpu, precision, model="resnet50", n_gpus=1):
    return f"{gpu},{n_gpus},{precision},x,0,{model},64,100,images/s,v0,1.4,m,1,,,\n"


def folder(tmp_path, timm, examples):
    (tmp_path / "e2e").mkdir()
    (tmp_path / "e2e" / "timm_train_rtx3090.csv").write_text(TIMM + "".join(timm))
    (tmp_path / "e2e" / "lambda.csv").write_text(LAMBDA + "".join(examples))
    return tmp_path


def test_models_without_a_trace_and_gpus_without_a_rate_are_named(tmp_path):
    timm = [f"RTX-3090,{name},x,nchw,8,224,10,800\n" for name in ("captured", "ese_vovnet99b_iabn", "unheard_of")]
    examples = [
        example("V100-SXM2-16GB", "fp32"),
        example("RTX-2080-MaxQ", "fp32"),
        example("RTX-2080-MaxQ", "fp16"),
        example("RTX-3080-Laptop", "fp16"),
        example("RTX-3080-Laptop", "fp16", n_gpus=2),
        example("V100-SXM2-16GB", "fp32", model="ssd"),
    ]
    (tmp_path / "timm-train--captured--224.trace").touch()
    found = unscored_of(folder(tmp_path, timm, examples), tmp_path, [], [])
    assert [model.name for model in found.models] == ["ese_vovnet99b_iabn", "unheard_of"]
    assert "inplace_abn" in found.models[0].reason
    assert found.models[1].reason == "no trace was captured"
    assert [(gpu.name, gpu.precision, gpu.n_rows, gpu.is_whole) for gpu in found.gpus] == [
        ("RTX-2080-MaxQ", "amp-fp16", 1, False),
        ("RTX-3080-Laptop", "amp-fp16", 1, True),
    ]
    assert found.gpus[1].reason.startswith("the device table has no fp32 rate (laptop;")
    text = "\n\n".join(unscored_section(found, []))
    assert "Training steps of 1 of 3 image models are scored" in text
    assert "NVIDIA examples on 2 of 3 GPU types are scored" in text
    assert "not scored: ssd." in text


def test_models_captured_later_are_told_with_what_they_would_change():
    scored = MeasuredSet(
        name="timm train nchw",
        observed_s=np.ones(3),
        tags={"device": np.array(["RTX-3090"] * 3)},
        predictions=(Prediction(method="traincast", left_out="family", seconds=np.array([1.1, 0.9, 1.1])),),
    )
    later = UnscoredModel(name="densenet264", reason="renamed", errors={"nchw": -0.5})
    unscored = Unscored(models=(later,), n_models=4, gpus=(), n_gpus=1, examples=())
    text = "\n\n".join(unscored_section(unscored, [scored]))
    assert "| densenet264 | renamed | -50.0 | - |" in text
    assert "timm train nchw would have a median of 10.0 % and a mean of 20.0 %" in text
    assert unscored_section(None, [scored]) == []
