"""Logs of many tools, read without a single option: steps, epochs, splits, clocks and learning rates."""

import pytest
from tool_logs import OBJECTS, TABLES
from tool_text_logs import TEXTS

import traincast as tc
from traincast.logs.follow import LogFollower

TOOLS = {**TABLES, **OBJECTS, **TEXTS}


def written(tool, folder):
    path = folder / tool.file
    path.write_text(tool.text)
    return path


@pytest.mark.parametrize("name", TOOLS)
def test_what_a_tool_writes_is_read_as_it_means_it(tmp_path, name):
    tool = TOOLS[name]
    log = tc.read_log(written(tool, tmp_path))
    assert log.format == tool.format
    found = {
        (metric, split): (len(one), one.steps[-1], one.values[-1])
        for metric, split in tool.series
        for one in [log.find(metric, split)]
    }
    assert found == {kind: pytest.approx(expected, abs=6e-5) for kind, expected in tool.series.items()}
    assert {fact: getattr(log, fact) for fact in tool.facts} == tool.facts
    assert log.restarts == ()


@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.last_s is not None])
def test_what_a_tool_tells_of_the_time(tmp_path, name):
    log = tc.read_log(written(TOOLS[name], tmp_path))
    longest = max(log.series, key=len)
    assert longest.seconds[-1] == pytest.approx(TOOLS[name].last_s, abs=0.01)


@pytest.mark.parametrize("name", [name for name, tool in TOOLS.items() if tool.rate is not None])
def test_what_a_tool_tells_of_its_learning_rate(tmp_path, name):
    rates = tc.read_log(written(TOOLS[name], tmp_path)).learning_rate
    assert len(rates) >= 30
    assert rates.values.tolist() == pytest.approx([TOOLS[name].rate] * len(rates))


@pytest.mark.parametrize("name", TOOLS)
def test_a_tools_log_is_the_same_when_it_is_followed_line_by_line(tmp_path, name):
    tool = TOOLS[name]
    path = tmp_path / tool.file
    path.write_text("")
    follower, log = LogFollower(path), None
    with path.open("a") as out:
        for part in (tool.text[at : at + 997] for at in range(0, len(tool.text), 997)):
            out.write(part)
            out.flush()
            log = follower.poll() or log
    whole = tc.read_log(path)
    assert [one.to_dict() for one in log.series] == [one.to_dict() for one in whole.series]
