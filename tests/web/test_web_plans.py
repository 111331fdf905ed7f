"""Plans have processes of their own: nobody waits for a plan of somebody else."""

import asyncio
import json
import threading

import pytest
from starlette.testclient import TestClient

from traincast.web.app import make_app
from traincast.web.limits import Limits
from traincast.web.plan_processes import PlanProcesses
from traincast.web.question_runner import QuestionRunner
from traincast.web.questions import QUESTIONS
from traincast.web.stored_uploads import StoredUploads

PLAN = {"model": "cifar_resnet20", "n_samples": 50_000, "batch_size": 64, "max_gpus": 1}
FORECAST = {"model": "cifar_resnet20", "on": ["T4"], "batch_size": 64}


async def nobody_has_gone():
    return False


def test_a_short_question_is_answered_while_every_plan_waits(monkeypatch):
    """The processes for plans are all taken; a forecast does not need one."""
    is_free = threading.Event()
    monkeypatch.setattr(PlanProcesses, "answer", lambda *_: is_free.wait(20) and b"a plan")

    async def ask():
        runner = QuestionRunner(StoredUploads(most=1, most_bytes=1), Limits(n_planners=1))
        asked = [QUESTIONS["plan"](**PLAN | {"batch_size": batch}) for batch in (64, 128, 256)]
        plans = [asyncio.create_task(runner.answer("plan", one, nobody_has_gone)) for one in asked]
        await asyncio.sleep(0)
        forecast = await runner.answer("forecast", QUESTIONS["forecast"](**FORECAST), nobody_has_gone)
        n_done = sum(plan.done() for plan in plans)
        is_free.set()
        return n_done, json.loads(forecast)["title"], await asyncio.gather(*plans)

    n_done, title, plans = asyncio.run(ask())
    assert n_done == 0
    assert title == "cifar_resnet20 on T4, batch 64"
    assert plans == [b"a plan"] * 3


@pytest.fixture(scope="module")
def page():
    return TestClient(make_app(), base_url="http://127.0.0.1")


def test_a_plan_is_made_beside_the_server_and_is_that_of_the_command(page):
    import traincast as tc

    reply = page.post("/api/plan", json=PLAN)
    assert reply.status_code == 200
    plan = tc.plan("cifar_resnet20", n_samples=50_000, batch_size=64, max_gpus=1, max_nodes=2)
    assert reply.json()["data"]["cheapest"]["offer"] == plan.to_dict()["cheapest"]["offer"]


def test_a_plan_that_cannot_be_says_why(page):
    reply = page.post("/api/plan", json=PLAN | {"provider": "Contoso"})
    assert reply.status_code == 422
    assert reply.json()["error"].startswith("No offers of a provider named 'Contoso'.")


def test_a_plan_that_takes_too_long_is_ended_and_the_next_one_is_made():
    page = TestClient(make_app(limits=Limits(plan_s=0.01, n_planners=1)), base_url="http://127.0.0.1")
    reply = page.post("/api/plan", json=PLAN)
    assert reply.status_code == 422
    assert "The plan took longer than the 0.01 s" in reply.json()["error"]
    assert page.post("/api/forecast", json=FORECAST).status_code == 200
