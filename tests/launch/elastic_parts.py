"""Jobs that several tests of the elastic scheduler use."""

from traincast.launch.elastic_job import COLUMNS, ElasticJob

HEADER = ",".join(COLUMNS)


def elastic(name="a", **changes):
    settings = {"submit_s": 0.0, "model": "cifar_resnet20", "batch_size": 64, "n_epochs": 1}
    return ElasticJob(name=name, **{**settings, "n_devices": 1, "max_devices": 2, **changes})
