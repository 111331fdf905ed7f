"""A campaign to be killed: each task leaves a mark when it begins, and takes a moment."""

import os
import sys
import time
from pathlib import Path

from stored_samples import HERE

from traincast.records import campaign
from traincast.records.campaign import Task, run_campaign
from traincast.records.store import Store

N_TASKS = 30


def tasks():
    return [Task("nap", {"number": number}) for number in range(N_TASKS)]


def nap(folder, seconds):
    def run(settings):
        number = settings["number"]
        with (Path(folder) / "begun.txt").open("a") as marks:
            marks.write(f"{number} {os.getpid()}\n")
        time.sleep(seconds)
        return {"square": number**2, "text": "x" * 3000}

    return run


if __name__ == "__main__":
    campaign.read_environment = lambda device: HERE  # the real one imports torch, for seconds
    path = Path(sys.argv[1])
    with Store(path) as store:
        run_campaign(tasks(), nap(path.parent, float(sys.argv[2])), store, campaign="naps")
