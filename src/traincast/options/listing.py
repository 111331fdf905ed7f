"""What is listed: models, devices and machines that are known by name, and records of a store."""

from pathlib import Path
from typing import Annotated

from traincast.options.option import Option
from traincast.options.typed import GIBIBYTES

PartOfModelName = Annotated[
    str, Option(help="Part of a name, such as resnet.", is_argument=True, shows_default=False, is_on_page=False)
]
PartOfDeviceName = Annotated[
    str, Option(help="Part of a name, such as v100.", is_argument=True, shows_default=False, is_on_page=False)
]
Vendor = Annotated[str | None, Option(help="Only this vendor: NVIDIA, AMD, Google.")]
Arch = Annotated[str | None, Option(help="Only this architecture: Volta, Ampere, CDNA2.")]
MinMemoryBytes = Annotated[
    float,
    Option(
        help="Only devices with at least this much memory.", flag="--min-memory", typed=GIBIBYTES, shows_default=False
    ),
]
Machines = Annotated[bool, Option(help="List machines to rent or buy instead: links, network, price.")]

StoreToRead = Annotated[
    str | Path, Option(help="A store, as 'traincast bench' writes it.", is_argument=True, metavar="FILE")
]
RecordKind = Annotated[str | None, Option(help="Only this kind: layer, op, ...")]
ExportFile = Annotated[
    str | Path, Option(help="Write all columns to a .csv or .parquet file.", flag="--export", metavar="FILE")
]
RecordSpread = Annotated[
    bool, Option(help="How far equal measurements lie apart: within a machine, and between machines of one type.")
]
TablesFolder = Annotated[
    str | Path,
    Option(help="Write layers and ops with the columns of the public timings.", flag="--tables", metavar="DIR"),
]
ImportFile = Annotated[
    str | Path, Option(help="First add what others measured: a trace or CSV.", flag="--import", metavar="FILE")
]

CourseName = Annotated[
    str,
    Option(
        help="Which question to run. Default: list them.", is_argument=True, metavar="[QUESTION]", shows_default=False
    ),
]
CourseFolder = Annotated[
    str | Path, Option(help="Where its files are written, and its commands run.", flag="--out", metavar="FOLDER")
]
