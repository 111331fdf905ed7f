"""Device files of users' own: what is accepted, and one clear sentence for what is not."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traincast.errors import FileFormatError, InputError, TraincastError
from traincast.hardware.device_table import read_device_file

HEADER = "name,fp32_tflop_per_s,memory_gib,memory_gb_per_s"
TOML = '[[device]]\nname = "x"\nfp32_tflop_per_s = 10\nmemory_gib = 16\nmemory_gb_per_s = 500\n'


@pytest.fixture
def write(tmp_path):
    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_csv_and_toml_of_the_same_card_give_the_same_device(write):
    columns = "name,aliases,fp32_tflop_per_s,memory_gib,memory_gb_per_s,boost_clock_mhz,n_sm,l2_mib,notes"
    from_csv = read_device_file(write("a.csv", columns + '\nmine,m1;m2,19.5,40,1555,1410,108,40,"one, two"\n'))
    from_toml = read_device_file(
        write(
            "a.toml",
            '[[device]]\nname = "mine"\naliases = ["m1", "m2"]\nfp32_tflop_per_s = 19.5\nmemory_gib = 40\n'
            'memory_gb_per_s = 1555\nboost_clock_mhz = 1410\nn_sm = 108\nl2_mib = 40\nnotes = "one, two"\n',
        )
    )
    assert from_csv == from_toml
    (device,) = from_csv
    assert device.aliases == ("m1", "m2")
    assert (device.fp32_flop_per_s, device.boost_clock_hz, device.n_sm) == (19.5e12, 1.41e9, 108)
    assert (device.memory_bytes, device.memory_bytes_per_s, device.l2_bytes) == (
        40 * 2**30,
        1.555e12,
        40 * 2**20,
    )
    assert (device.kind, device.fp16_flop_per_s) == ("gpu", None)


def test_a_spreadsheet_export_with_byte_order_mark_and_blank_lines_is_read(write):
    text = "\ufeff" + HEADER + "\r\n\r\nmine,10,16,500\r\n,,,\r\n"
    assert [device.name for device in read_device_file(write("a.CSV", text))] == ["mine"]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("mine,ten,16,500", "row 1 ('mine'), column fp32_tflop_per_s: 'ten' is not a number."),
        ("a,1,1,1\nmine,10,-16,500", "row 2 ('mine'), column memory_gib: '-16' is out of range."),
        ("mine,10,0,500", "row 1 ('mine'), column memory_gib: '0' is out of range."),
        ("mine,10,16,nan", "row 1 ('mine'), column memory_gb_per_s: 'nan' is out of range."),
        ("mine,8.1,16,1e-320", "row 1 ('mine'), column memory_gb_per_s: '1e-320' is out of range."),
        ("mine,1e308,16,500", "row 1 ('mine'), column fp32_tflop_per_s: '1e308' is out of range."),
        ("mine,,16,500", "row 1 ('mine'): column fp32_tflop_per_s is required and missing or empty."),
        (",10,16,500", "row 1: column name is required and missing or empty."),
        ("mine,10,16", "row 1 ('mine') has 3 cells where the header has 4."),
        ("mine,10,16,500,9", "row 1 ('mine') has 5 cells where the header has 4."),
        ("a,1,1,1\nA,1,1,1", "row 2 ('A'), column name: 'A' is already taken in this file."),
        ("", "has no devices."),
    ],
)
def test_a_bad_csv_row_is_named_with_its_column(write, rows, words):
    path = write("mine.csv", f"{HEADER}\n{rows}\n")
    with pytest.raises(FileFormatError) as caught:
        read_device_file(path)
    assert str(caught.value) in (f"Device file '{path}', {words}", f"Device file '{path}' {words}")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TOML + "memory_gb = 16", "row 1 ('x'): unknown column 'memory_gb'. Close names: memory_gib"),
        (TOML + "zzz = 16", "row 1 ('x'): unknown column 'zzz'. Known are name, aliases,"),
        (TOML + "year = 2020.5", "row 1 ('x'), column year: 2020.5 is not a whole number."),
        (TOML + "tdp_w = true", "row 1 ('x'), column tdp_w: True is neither text nor a number."),
        (TOML + "tdp_w = [1]", "row 1 ('x'), column tdp_w: [1] is neither text nor a number."),
        (TOML + f"tdp_w = 1{'0' * 400}", "is not a number."),
        (TOML + 'kind = "tpu"', "row 1 ('x'): Device 'x': kind is 'gpu', 'cpu' or 'accelerator', not 'tpu'."),
        (TOML + 'aliases = ["X"]', "row 1 ('x'), column aliases: 'X' is already taken in this file."),
        ('[[devices]]\nname = "x"', "should consist of [[device]] tables only."),
        ("device = 3", "should consist of [[device]] tables only."),
        ("[[device]\n", "is not TOML:"),
        (TOML + "tdp_w = " + "[" * 5000, "is not TOML: it is nested too deeply."),
        ("", "has no devices."),
    ],
)
def test_a_bad_toml_file_is_explained(write, text, words):
    path = write("mine.toml", text)
    with pytest.raises(FileFormatError) as caught:
        read_device_file(path)
    assert str(caught.value).startswith(f"Device file '{path}'")
    assert words in str(caught.value)


def test_files_that_are_no_tables_at_all(write, tmp_path):
    with pytest.raises(FileFormatError, match="is UTF-16 text"):
        read_device_file(write("a.csv", b"\xff\xfe\x00"))
    with pytest.raises(FileFormatError, match="names a column twice"):
        read_device_file(write("a.csv", "name,name\na,b"))
    with pytest.raises(FileFormatError, match="is not a CSV table: unexpected end of data"):
        read_device_file(write("a.csv", f'{HEADER}\n"mine,10,16,500\n'))
    with pytest.raises(FileFormatError, match=r"should end in \.csv or \.toml"):
        read_device_file(write("a.json", "{}"))
    with pytest.raises(InputError, match="cannot be read: No such file"):
        read_device_file(tmp_path / "none.toml")


@given(content=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(lambda text: text.encode())))
def test_any_bytes_are_read_or_refused_but_never_crash(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("devices")
    for name in ("a.csv", "a.toml"):
        (folder / name).write_bytes(content)
        with contextlib.suppress(TraincastError):
            assert read_device_file(folder / name)


@pytest.mark.parametrize("n_digits", [400, 5000])
@pytest.mark.parametrize("key", ["memory_gib", "n_sm", "prices = { x", "fp32_tflop_per_s"])
def test_a_number_of_many_digits_is_refused_in_a_short_sentence(write, key, n_digits):
    kept = "".join(line + "\n" for line in TOML.splitlines() if not line.startswith(key))
    path = write("a.toml", f"{kept}{key} = {'9' * n_digits}{' }' if '{' in key else ''}\n")
    with pytest.raises(FileFormatError) as error:
        read_device_file(path)
    assert "a.toml" in str(error.value)
    assert len(str(error.value)) < 300


@pytest.mark.parametrize("n_digits", [400, 5000])
def test_a_number_of_many_digits_in_a_table_is_out_of_range(write, n_digits):
    path = write("a.csv", f"{HEADER}\nmine,10,{'9' * n_digits},500\n")
    with pytest.raises(FileFormatError, match=r"column memory_gib: '9{20,60}\.\.\. is out of range"):
        read_device_file(path)
