"""Many jobs on one cluster: simulated, or trained for real on Ray."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypedDict

from traincast.options.option import Option
from traincast.options.typed import NAMES, SECONDS

if TYPE_CHECKING:
    from traincast.launch.elastic_job import ElasticJob
    from traincast.scheduling.decision import Policy
    from traincast.scheduling.job import Job
    from traincast.scheduling.machines import Machines

INTERVAL_S = 60.0

Jobs = Annotated[
    "Sequence[Job] | str | Path",
    Option(help="CSV file of jobs: plain, models, with servers, workload, or trace.", is_argument=True),
]
JobsCluster = Annotated[
    "Machines | str",
    Option(help="Nodes x devices x type: 16x4xT4, 8x4xT4+2x8xV100.", flag="--cluster", metavar="NxDxTYPE"),
]
OnePolicy = Annotated["str | Policy", Option(help="Who decides which job has which devices.")]
Policies = Annotated[
    "Sequence[str | Policy]",
    Option(
        help="fifo, srtf, drf, tiresias, optimus, optimus-online (with parameter servers only), gavel, pollux, "
        "traincast, traincast-batch.",
        flag="--policy",
        typed=NAMES,
    ),
]
NSeeds = Annotated[int, Option(help="Number of seeds, for intervals.", at_least=1)]


class SimulateOptions(TypedDict, total=False):
    """The rules of a simulated cluster, whatever its policy."""

    tables: Annotated[
        str | Path | None, Option(help="Folder of measured steps and gradients of applications.", metavar="FOLDER")
    ]
    workload: Annotated[str | None, Option(help="Which workload of the file: realistic/1.", metavar="NAME")]
    interval_s: Annotated[
        float,
        Option(
            help="Seconds between decisions; 0: at each submission and end.",
            default=INTERVAL_S,
            flag="--interval",
            typed=SECONDS,
            at_least=0,
        ),
    ]
    restart_s: Annotated[
        float | None,
        Option(
            help="Seconds for which a job pauses when its devices change. Default: 30.",
            flag="--restart",
            typed=SECONDS,
            at_least=0,
            shows_default=False,
        ),
    ]
    work_error: Annotated[
        float, Option(help="Error of forecast remaining work: standard deviation of its log.", default=0.0, at_least=0)
    ]
    speed_error: Annotated[
        float, Option(help="Error of forecast speeds: standard deviation of their log.", default=0.0, at_least=0)
    ]
    failure_s: Annotated[
        float | None,
        Option(
            help="Mean seconds between two failures of a node. Default: no node fails.",
            flag="--failure",
            typed=SECONDS,
            above=0,
        ),
    ]
    repair_s: Annotated[
        float | None,
        Option(
            help="Seconds until a failed node is back. Default: 1800.",
            flag="--repair",
            typed=SECONDS,
            above=0,
            shows_default=False,
        ),
    ]
    checkpoint_s: Annotated[
        float | None,
        Option(
            help="Seconds between a job's checkpoints. Default: 600.",
            flag="--checkpoint",
            typed=SECONDS,
            above=0,
            shows_default=False,
        ),
    ]
    seed: Annotated[int, Option(help="Seed of errors, failures and observations.", default=0, at_least=0)]


ElasticJobs = Annotated[
    "Sequence[ElasticJob] | str | Path",
    Option(help="CSV file: name, submit_s, model, batch_size, n_epochs, n_devices, max_devices.", is_argument=True),
]
RunsFolder = Annotated[
    str | Path, Option(help="Folder for checkpoints, logs and the store.", flag="--out", metavar="FOLDER")
]
ElasticPolicy = Annotated[
    str, Option(help="fifo, srtf, drf, tiresias, optimus, gavel, pollux, traincast.", metavar="NAME")
]
DecisionIntervalS = Annotated[
    float, Option(help="Seconds between decisions.", flag="--interval", typed=SECONDS, above=0)
]
StartS = Annotated[
    float, Option(help="Seconds that a start is expected to take.", flag="--restart", typed=SECONDS, at_least=0)
]
_RAY = Option(help="Run on this Ray cluster; 'local' starts one.", flag="--on-ray", metavar="ADDRESS")
RayCluster = Annotated[str, _RAY]
MaybeRayCluster = Annotated[str | None, _RAY]  # None: in this process
LocalCpus = Annotated[int | None, Option(help="CPUs of a local cluster. Default: all of the machine.", at_least=1)]
