"""`traincast measure`: what does a step really take on this machine?"""

from traincast.cli.measure_options import (
    AllReduce,
    DefaultMalloc,
    EpochSamples,
    LoaderWorkers,
    MaybeBatch,
    MaybeModel,
    Processes,
    Repeat,
    RunCompiled,
    Steps,
    StoreFile,
    TorchDevice,
    UsedOptimizer,
    UsedPrecision,
)
from traincast.cli.measure_processes import is_several, refuse, run_processes
from traincast.cli.measure_question import Outputs, Question
from traincast.cli.measure_step import StepFlags, run_step
from traincast.cli.measure_sweep import run_sweep
from traincast.cli.measure_sweep_options import Data, Epochs, MaxStepS, SampleMs, SampleWaits, Sweep, SweepFlags
from traincast.cli.options import AsJson, Head, HtmlFile, ImageSize, NClasses, PngFile, SeqLen, model_options


def measure(
    model: MaybeModel = None,
    batch: MaybeBatch = None,
    optimizer: UsedOptimizer = "sgd",
    precision: UsedPrecision = "fp32",
    device: TorchDevice = "cpu",
    steps: Steps = None,
    compiled: RunCompiled = False,
    default_malloc: DefaultMalloc = False,
    repeat: Repeat = 1,
    epoch_samples: EpochSamples = None,
    workers: LoaderWorkers = None,
    processes: Processes = None,
    all_reduce: AllReduce = False,
    sweep: Sweep = None,
    max_step_s: MaxStepS = None,
    data_source: Data = None,
    sample_ms: SampleMs = None,
    sample_waits: SampleWaits = False,
    epochs: Epochs = None,
    store: StoreFile = None,
    n_classes: NClasses = None,
    image_size: ImageSize = None,
    seqlen: SeqLen = None,
    head: Head = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """What does a step really take on this machine, and what did we forecast?

    Examples: traincast measure cifar_resnet20 --batch 64 --optimizer adam; traincast measure mnist_cnn --batch 32
    --repeat 3 --store runs.db; traincast measure mnist_cnn --batch 32 --epoch-samples 2000 --workers 2;
    traincast measure cifar_resnet20 --sweep batch; traincast measure mnist_cnn --batch 32 --sweep optimizers --epochs
    5; traincast measure cifar_resnet20 --batch 64 --processes 2; traincast measure --processes 2 --all-reduce
    """
    question = Question(
        model=model,
        batch_size=batch,
        optimizer=optimizer,
        precision=precision,
        device=device,
        n_steps=steps,
        options=model_options(n_classes=n_classes, image_size=image_size, seqlen=seqlen, head=head),
    )
    outputs = Outputs(store=store, as_json=as_json, html=html, png=png)
    of_step = StepFlags(
        compiled=compiled,
        default_malloc=default_malloc,
        repeat=repeat,
        epoch_samples=epoch_samples,
        workers=workers,
        data=None if epoch_samples is None else data_source,
    )
    of_sweep = SweepFlags(
        max_step_s=max_step_s,
        data=data_source if epoch_samples is None else None,
        sample_ms=sample_ms,
        sample_waits=sample_waits,
        epochs=epochs,
    )
    of_sweep.check(sweep, of_step.given())
    if is_several(processes, all_reduce=all_reduce):
        refuse({"--sweep": sweep is not None, **of_step.given()})
        run_processes(question, outputs, n_processes=processes, all_reduce=all_reduce)
    elif sweep is not None:
        run_sweep(sweep, question, of_sweep, outputs)
    else:
        run_step(question, of_step, outputs)
