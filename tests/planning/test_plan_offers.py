"""What can be rented: every row of the table, one's own prices, and catalogues that bring new ones."""

import csv
from pathlib import Path

import pytest

import traincast
from traincast.errors import FileFormatError, InputError, TraincastError
from traincast.hardware.refresh_prices import main as refresh
from traincast.hardware.run_place import find_place
from traincast.planning.offers import all_offers, interruptions_per_day, offers_of, replaced
from traincast.planning.price_file import read_prices

TABLE = Path(traincast.__file__).parent / "data" / "machines.csv"
OFFERS = {offer.name: offer for offer in all_offers()}


def test_there_are_161_offers_of_five_providers():
    assert len(OFFERS) == 161
    assert {offer.provider for offer in OFFERS.values()} == {"AWS", "GCP", "Azure", "Lambda", "RunPod"}


@pytest.mark.parametrize("offer", OFFERS.values(), ids=lambda offer: offer.name)
def test_every_offer_can_be_named_as_a_place_at_its_own_price(offer):
    cluster = find_place(offer.name).cluster
    assert (cluster.device.name, cluster.n_devices, cluster.n_nodes) == (offer.device, offer.n_devices, 1)
    assert (cluster.price_usd_per_hour, cluster.inside) == (offer.price_usd_per_hour, offer.inside)
    two = find_place(f"2x{offer.name}@50Gb/s").cluster
    assert (two.n_devices, two.n_nodes) == (2 * offer.n_devices, 2)


@pytest.mark.parametrize("offer", OFFERS.values(), ids=lambda offer: offer.name)
def test_a_spot_machine_costs_no_more_than_one_on_demand(offer):
    on_demand, spot = offer.usd_per_hour(is_spot=False), offer.usd_per_hour(is_spot=True)
    assert on_demand is None or spot is None or 0 < spot <= on_demand
    assert offer.n_cpus >= 1


def test_providers_with_spot_prices_have_a_rate_of_interruptions():
    assert {offer.provider for offer in OFFERS.values() if offer.spot_usd_per_hour} == set(interruptions_per_day())


def test_a_provider_is_found_in_any_case_and_an_unknown_one_refused():
    assert {offer.provider for offer in offers_of(all_offers(), ["aws", "Lambda"])} == {"AWS", "Lambda"}
    with pytest.raises(InputError, match="No offers of a provider named 'awz'"):
        offers_of(all_offers(), ["awz"])


def prices(tmp_path, text):
    path = tmp_path / "prices.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_own_prices_replace_those_of_the_table_and_add_machines(tmp_path):
    path = prices(
        tmp_path,
        "offer,device,n_devices,usd_per_hour,date,network\n"
        "p4d.24xlarge,,,10,2026-11-01,\n"
        ",RTX-3090,4,0.8,2026-11-01,\n"
        "our box,T4,2,0.1,2026-10-01,10Gb/s\n",
    )
    own = read_prices(path)
    assert [offer.name for offer in own] == ["p4d.24xlarge", "4xRTX-3090", "our box"]
    assert own[0].price_usd_per_hour == 10
    assert own[0].provider == "AWS"
    assert (own[1].provider, own[1].network) == ("own", None)
    assert own[2].price_date == "2026-10-01"
    together = {offer.name: offer for offer in replaced(all_offers(), own)}
    assert len(together) == 163
    assert together["p4d.24xlarge"].price_usd_per_hour == 10


def test_a_provider_of_the_table_is_the_same_in_any_case(tmp_path):
    path = prices(tmp_path, "device,usd_per_hour,date,provider\nT4,0.2,2026-11-01,aws\nA10,0.4,2026-11-01,ours\n")
    assert [offer.provider for offer in read_prices(path)] == ["AWS", "ours"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("offer,usd_per_hour\np4d.24xlarge,10\n", "has no column date: a price without its day cannot be judged."),
        ("offer,usd_per_hour,date\np4d.24xlarge,cheap,2026-11-01\n", "line 2: usd_per_hour is 'cheap', not a number"),
        ("offer,usd_per_hour,date\np4d.24xlarge,10,soon\n", "line 2: date is 'soon', not a day such as 2026-11-16."),
        ("offer,usd_per_hour,date\np4d.24xlarge,10,2099-01-01\n", "line 2: date is 2099-01-01, more than a year ahead"),
        ("offer,usd_per_hour,date\np4d.24xlarge,-3,2026-11-01\n", "line 2: usd_per_hour should be above 0, not -3."),
        ("offer,usd_per_hour,date\nmy-box,1,2026-11-01\n", "line 2: no offer is named 'my-box'; say its device"),
        ("device,usd_per_hour,date\nT5000,1,2026-11-01\n", "line 2: No device named 'T5000'."),
        ("device,usd_per_hour,date,network\nT4,1,2026-11-01,wire\n", "line 2: No link named 'wire'."),
        ("offer,device,usd_per_hour,date\np4d.24xlarge,T4,1,2026-11-01\n", "line 2: 'p4d.24xlarge' has 8 x A100-SXM4"),
        ("offer,n_devices,usd_per_hour,date\np4d.24xlarge,4,1,2026-11-01\n", "leave device and n_devices empty"),
        ("device,n_devices,usd_per_hour,date\nT4,two,1,2026-11-01\n", "line 2: n_devices is 'two'"),
        ("offer,usd_per_hour,date,colour\n", "has a column 'colour' that is not known"),
        ("offer,usd_per_hour,date\n", "holds no prices: columns are offer or device"),
        ("offer,usd_per_hour,date\np4d.24xlarge,1,2026-11-01\np4d.24xlarge,2,2026-11-01\n", "two prices of 'p4d.24x"),
        ("", "is no file of prices"),
    ],
)
def test_a_file_of_prices_that_is_none_is_refused_in_a_sentence(tmp_path, text, words):
    with pytest.raises(TraincastError) as caught:
        read_prices(prices(tmp_path, text))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_or_binary_file_of_prices_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_prices(tmp_path / "none.csv")
    (tmp_path / "binary.csv").write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(FileFormatError, match="is not UTF-8 text"):
        read_prices(tmp_path / "binary.csv")


SKYPILOT = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,GpuInfo,Price,SpotPrice,Region,AvailabilityZone\n"
    "p4d.24xlarge,A100,8,96,1152,,20.5,9.0,us-east-1,us-east-1a\n"
    "p4d.24xlarge,A100,8,96,1152,,20.5,11.0,us-east-1,us-east-1b\n"
    "p4d.24xlarge,A100,8,96,1152,,25,1.0,eu-west-1,eu-west-1a\n"
    "Standard_ND96asr_v4,A100,8,96,900,,30,30,eastus,\n"
    "Standard_ND96asr_v4,A100,8,96,900,,99,99,eastus2,\n"
    "a2-highgpu-1g,,,12,85,,0.8,0.3,us-central1,us-central1-a\n"
    ",tpu-v3-8,1,,,,8,2,us-east-1,\n"
    "m5.large,,,2,8,,0.1,0.04,us-east-1,us-east-1a\n"
)
GPUHUNT = (
    "instance_name,location,price,cpu,memory,gpu_count,gpu_name,gpu_memory,spot\n"
    "a2-highgpu-1g,us-central1-a,3.5,12,85,1,A100,40,False\n"
    "a2-highgpu-1g,us-central1-b,1.5,12,85,1,A100,40,True\n"
    "g5.xlarge,us-east-1,1.1,4,16,1,A10G,24,False\n"
    "g5.xlarge,us-east-1,,4,16,1,A10G,24,True\n"
)


def test_catalogues_of_skypilot_and_gpuhunt_become_a_file_of_prices(tmp_path, capsys):
    (tmp_path / "sky.csv").write_text(SKYPILOT, encoding="utf-8")
    (tmp_path / "hunt.csv").write_text(GPUHUNT, encoding="utf-8")
    out = tmp_path / "new.csv"
    files = [str(tmp_path / "sky.csv"), str(tmp_path / "hunt.csv")]
    assert refresh([*files, "--date", "2026-11-10", "--out", str(out)]) == 0
    assert "Wrote" in capsys.readouterr().out
    found = {offer.name: offer for offer in read_prices(out)}
    assert set(found) == {"p4d.24xlarge", "Standard_ND96asr_v4", "a2-highgpu-1g", "g5.xlarge"}
    seen = {name: (one.price_usd_per_hour, one.spot_usd_per_hour) for name, one in found.items()}
    assert seen["p4d.24xlarge"] == (20.5, 10.0)  # the median of its zones
    assert seen["Standard_ND96asr_v4"] == (30, None)  # spot prices that repeat the other ones are none
    assert seen["a2-highgpu-1g"] == (3.5, 1.5)  # with its GPU, by gpuhunt
    assert seen["g5.xlarge"] == (1.1, None)
    assert {one.price_date for one in found.values()} == {"2026-11-10"}


def test_catalogues_renew_the_table_of_the_package(tmp_path, monkeypatch, capsys):
    table = tmp_path / "machines.csv"
    table.write_text(TABLE.read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "sky.csv").write_text(SKYPILOT, encoding="utf-8")
    monkeypatch.setattr("traincast.hardware.refresh_prices.TABLE", table)
    assert refresh([str(tmp_path / "sky.csv"), "--date", "2026-11-10", "--write"]) == 0
    assert capsys.readouterr().out.count("Wrote") == 1
    before, after = (list(csv.DictReader(one.read_text(encoding="utf-8").splitlines())) for one in (TABLE, table))
    changed = {new["name"]: new for old, new in zip(before, after, strict=True) if old != new}
    assert set(changed) == {"p4d.24xlarge", "Standard_ND96asr_v4"}
    columns = ("price_usd_per_hour", "spot_usd_per_hour", "price_date")
    assert [changed["p4d.24xlarge"][column] for column in columns] == ["20.5", "10", "2026-11-10"]


def test_a_file_that_is_no_catalogue_or_a_wrong_day_is_one_sentence(tmp_path, capsys):
    (tmp_path / "other.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    assert refresh([str(tmp_path / "other.csv"), "--date", "2026-11-10"]) == 2
    assert "is neither SkyPilot's catalogue" in capsys.readouterr().err
    (tmp_path / "sky.csv").write_text(SKYPILOT, encoding="utf-8")
    assert refresh([str(tmp_path / "sky.csv"), "--date", "today"]) == 2
    assert "--date 'today' is not a day" in capsys.readouterr().err
