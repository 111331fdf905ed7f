"""Records for the tests of the store."""

from traincast.records.environment import Environment
from traincast.records.record import Record

HERE = Environment(
    device="Test CPU",
    device_kind="cpu",
    host="here",
    n_threads=1,
    n_cores=1,
    versions={"torch": "2.13.0"},
    clocks={"cpu_mhz": 2000.0},
)


def record(number=1, *, kind="layer", values=None, environment=HERE, created_s=100.0):
    return Record(
        kind=kind,
        task={"layer": "dense", "number": number},
        values={"step_s": number / 10} if values is None else values,
        environment=environment,
        created_s=created_s,
    )
