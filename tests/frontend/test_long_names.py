"""Names that no file can have are told as such, before anything is looked for."""

import pytest

import traincast as tc
from traincast.errors import InputError


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("x" * 300, "has at most 255 letters"),
        ("x" * 5000, "model cannot be 'xxx"),
        ("a\0b", "model cannot be 'a\\x00b': give text without null characters and lone surrogates."),
        ("\ud800", "model cannot be '\\ud800': give text without null characters and lone surrogates."),
    ],
)
def test_a_name_that_no_file_can_have_is_one_short_sentence(name, told):
    with pytest.raises(InputError) as refused:
        tc.load_model(name)
    assert told in str(refused.value)
    assert len(str(refused.value)) < 250
