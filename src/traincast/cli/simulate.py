"""`traincast simulate`: what does a scheduling policy make of many jobs on one cluster?"""

from traincast.api.simulating import simulate_many
from traincast.cli.command import CommandLine, command


@command(simulate_many, defaults={"policies": ["optimus"]})
def simulate(line: CommandLine) -> None:
    """What does a scheduling policy make of many jobs on one cluster?

    Examples: traincast simulate jobs.csv --cluster 4x4xT4 --policy fifo,srtf,traincast --html jobs.html; traincast
    simulate pollux_workloads.csv --workload load-1.0/1 --tables distributed --cluster 16x4xT4 --policy optimus
    """
    from traincast.views.simulate import document_of

    comparison = simulate_many(**line.options)
    line.show(document_of(comparison, with_charts=line.has_charts), comparison.to_dict)
