"""Host profiles: those that ship, and the one that calibration writes for this machine."""

import pytest

from traincast.errors import FileFormatError, InputError
from traincast.hardware.host import Host, all_hosts, find_host

PROFILE = """
forward_dispatch_s = 5e-6
backward_dispatch_s = 4e-6
optimizer_dispatch_s = 5e-6
view_dispatch_s = 1e-6
call_s = 0
source = "calibrated"
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("TRAINCAST_HOME", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("host", all_hosts(), ids=lambda host: host.name)
def test_every_profile_has_times_and_a_source(host):
    assert "benchmarks/fit_hosts.py" in host.source or host.source.startswith("a guess")  # what fits it again
    assert "placeholder" not in host.source
    assert host.notes
    assert min(host.forward_dispatch_s, host.backward_dispatch_s, host.optimizer_dispatch_s) > 0


def test_three_frameworks_are_known():
    assert [host.name for host in all_hosts()] == ["torch-eager", "tf1-session", "tf2-keras"]
    assert find_host("TF2-Keras").name == "tf2-keras"


def test_only_graph_frameworks_have_a_price_for_the_call():
    assert find_host("torch-eager").call_s == 0
    assert find_host("tf2-keras").call_s > find_host("tf1-session").call_s > 0


def test_an_unknown_name_gets_near_names():
    with pytest.raises(InputError) as caught:
        find_host("tf2-kera")
    assert str(caught.value).startswith("No host named 'tf2-kera'. Close names: tf2-keras. Choose from: torch-eager, ")


def test_this_machine_without_a_profile_is_torch_eager_and_says_so(home):
    host = find_host("this-machine")
    assert host.name == "torch-eager"
    assert host.forward_dispatch_s == find_host("torch-eager").forward_dispatch_s
    assert f"has no host profile ('{home / 'host.toml'}')" in host.notes
    assert "torch-eager" in host.notes


def test_this_machine_with_a_profile_is_itself(home):
    (home / "host.toml").write_text(PROFILE)
    host = find_host("this-machine")
    assert (host.name, host.forward_dispatch_s, host.source) == ("this-machine", 5e-6, "calibrated")


def test_without_the_variable_the_profile_is_in_the_users_configuration(tmp_path, monkeypatch):
    monkeypatch.delenv("TRAINCAST_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    folder = tmp_path / ".config" / "traincast"
    folder.mkdir(parents=True)
    (folder / "host.toml").write_text(PROFILE)
    assert find_host("this-machine").name == "this-machine"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("forward_dispatch_s =", "is not TOML"),
        ("forward_dispatch_s = " + "[" * 5000, "is not TOML: it is nested too deeply"),
        (PROFILE + "\nbackward_s = 1", "unknown field 'backward_s'"),
        (PROFILE.replace("call_s = 0", ""), "call_s is missing"),
        (PROFILE.replace("call_s = 0", "call_s = 'fast'"), "call_s 'fast' is not a number"),
        (PROFILE.replace("call_s = 0", "call_s = -1"), "call_s cannot be -1.0"),
        (PROFILE.replace("call_s = 0", "call_s = nan"), "call_s cannot be nan, only 0 to 1,000,000 s"),
        (PROFILE.replace("call_s = 0", "call_s = 1e308"), "call_s cannot be 1e+308, only 0 to 1,000,000 s"),
    ],
)
def test_a_profile_that_cannot_be_right_is_refused(home, text, words):
    (home / "host.toml").write_text(text)
    with pytest.raises(FileFormatError) as caught:
        find_host("this-machine")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_host_needs_a_name():
    with pytest.raises(InputError, match="A host profile needs a name"):
        Host(
            name=" ",
            forward_dispatch_s=0,
            backward_dispatch_s=0,
            optimizer_dispatch_s=0,
            view_dispatch_s=0,
            call_s=0,
        )
