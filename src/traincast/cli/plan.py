"""`traincast plan`: what should I rent?"""

from typing import Annotated

import typer

from traincast.cli.options import (
    AsJson,
    Compiled,
    DevicesFile,
    Head,
    Host,
    HtmlFile,
    ImageSize,
    InputSamplesPerS,
    Layout,
    Method,
    Model,
    NClasses,
    NEpochs,
    Optimizer,
    PngFile,
    Ppp,
    SeqLen,
    model_options,
)
from traincast.cli.plan_options import (
    AsJob,
    BatchSize,
    BatchSizes,
    Budget,
    CheckpointRate,
    Confidence,
    Curve,
    Deadline,
    InterruptionsPerDay,
    MaxGpus,
    MaxNodes,
    NoiseScale,
    Precisions,
    PricesFile,
    Provider,
    Setup,
    Spot,
    Strategies,
    TargetAccuracy,
    batch_range,
    megabytes,
)


def plan(
    model: Model,
    n_samples: Annotated[int, typer.Option("--samples", help="Samples of one epoch.")],
    n_epochs: NEpochs = 1,
    deadline: Deadline = None,
    budget: Budget = None,
    confidence: Confidence = "0.8",
    target_accuracy: TargetAccuracy = None,
    curve: Curve = None,
    batch_size: BatchSize = None,
    batch_sizes: BatchSizes = None,
    noise_scale: NoiseScale = None,
    precision: Precisions = None,
    optimizer: Optimizer = None,
    strategy: Strategies = None,
    provider: Provider = None,
    spot: Spot = False,
    prices: PricesFile = None,
    max_gpus: MaxGpus = 64,
    max_nodes: MaxNodes = 8,
    setup: Setup = "5min",
    interruptions_per_day: InterruptionsPerDay = None,
    checkpoint_rate: CheckpointRate = None,
    as_job: AsJob = None,
    layout: Layout = "nchw",
    compiled: Compiled = False,
    method: Method = "traincast",
    ppp: Ppp = None,
    host: Host = None,
    input_samples_per_s: InputSamplesPerS = None,
    n_classes: NClasses = None,
    image_size: ImageSize = None,
    seqlen: SeqLen = None,
    head: Head = None,
    devices_file: DevicesFile = None,
    as_json: AsJson = False,
    html: HtmlFile = None,
    png: PngFile = None,
) -> None:
    """What should I rent: the cheapest under a deadline, the fastest under a budget?

    Examples: traincast plan resnet50 --samples 1281167 --epochs 90 --deadline 24h --batch-size 256; traincast plan gpt2
    --samples 9765625 --budget 500 --spot --as sky > job.yaml
    """
    from traincast.api.models import load_model
    from traincast.api.planning import CHECKPOINT_BYTES_PER_S
    from traincast.api.planning import plan as ask
    from traincast.cli.durations import seconds_of
    from traincast.cli.fractions import fraction_of
    from traincast.cli.show import show, write_files
    from traincast.errors import InputError
    from traincast.planning.outputs import check_kind, job_text
    from traincast.views.plan import document_of

    if as_job is not None:
        check_kind(as_job)
        if as_json:
            raise InputError("--as prints a job and --json the plan: leave one of them out.")
    options = model_options(n_classes=n_classes, image_size=image_size, seqlen=seqlen, head=head)
    found = ask(
        load_model(model, **options),
        n_samples=n_samples,
        n_epochs=n_epochs,
        deadline_s=None if deadline is None else seconds_of(deadline, "--deadline"),
        budget_usd=budget,
        confidence=fraction_of(confidence, "--confidence", such_as="90% or 0.9"),
        target_accuracy=target_accuracy,
        curve=curve,
        batch_size=batch_size,
        batch_sizes=None if batch_sizes is None else batch_range(batch_sizes),
        noise_scale=noise_scale,
        precision=precision,
        optimizer=optimizer,
        strategy=strategy,
        provider=provider,
        spot=spot,
        prices=prices,
        max_gpus=max_gpus,
        max_nodes=max_nodes,
        setup_s=0.0 if setup.strip() in ("0", "0s") else seconds_of(setup, "--setup"),
        interruptions_per_day=interruptions_per_day,
        checkpoint_bytes_per_s=CHECKPOINT_BYTES_PER_S if checkpoint_rate is None else megabytes(checkpoint_rate),
        layout=layout,
        compiled=compiled,
        method=method,
        ppp=ppp,
        host=host,
        input_samples_per_s=input_samples_per_s,
        devices=devices_file,
    )
    if as_job is not None:
        typer.echo(job_text(found.job(), as_job), nl=False)
        write_files(document_of(found), html=html, png=png)
        return
    show(document_of(found), as_json=as_json, html=html, png=png, data=found.to_dict() if as_json else None)
