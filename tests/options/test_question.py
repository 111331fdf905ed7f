"""A signature that declares its options: checked before any work, complete inside, shown one by one."""

import importlib
import inspect
import pkgutil
from typing import Annotated, TypedDict, Unpack

import numpy as np
import pytest

import traincast.options
from traincast.errors import InputError, ParameterError
from traincast.options.option import Option, declared, option_in
from traincast.options.question import question

Count = Annotated[int, Option(help="How many.", at_least=1, at_most=100)]
Price = Annotated[float | None, Option(help="USD.", flag="--price", above=0)]
Kind = Annotated[str, Option(help="Which.", default="ring", choices=("ring", "tree"))]
Name = Annotated[str | None, Option(help="What it is called.")]


class Shared(TypedDict, total=False):
    kind: Kind
    name: Name


@question
def asked(count: Count, *, price: Price = None, **options: Unpack[Shared]) -> dict:
    """What arrived."""
    return {"count": count, "price": price, **options}


def test_options_that_were_left_out_are_there_with_their_defaults():
    assert asked(3) == {"count": 3, "price": None, "kind": "ring", "name": None}


def test_every_option_is_shown_by_itself():
    assert list(inspect.signature(asked).parameters) == ["count", "price", "kind", "name"]
    assert [one.flag for one in declared(asked)] == ["--count", "--price", "--kind", "--name"]


def test_an_option_that_nobody_declared_is_a_mistake_of_the_caller():
    with pytest.raises(TypeError, match="colour"):
        asked(3, colour="red")


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"count": 0}, "count cannot be 0: give a whole number of at least 1."),
        ({"count": 101}, "count cannot be 101: give a whole number of at most 100."),
        ({"count": 2.5}, "count cannot be 2.5: give a whole number."),
        ({"count": True}, "count cannot be True: give a whole number."),
        ({"count": 10**5000}, "count cannot be a number of thousands of digits: give a smaller number."),
        ({"price": 0.0}, "price cannot be 0.0: give a number above 0."),
        ({"price": float("nan")}, "price cannot be nan: give a number or None."),
        ({"kind": "star"}, "kind 'star' is not known. Choose from: ring, tree."),
        ({"name": "a\0b"}, "name cannot be 'a\\x00b': give text without null characters and lone surrogates."),
        ({"name": "\ud800"}, "name cannot be '\\ud800': give text without null characters and lone surrogates."),
        ({"name": "x" * 5000}, f"name cannot be '{'x' * 79}...: give at most 4,096 letters."),
    ],
)
def test_a_mistake_is_one_sentence_that_names_the_parameter(wrong, told):
    with pytest.raises(InputError) as refused:
        asked(**{"count": 3, **wrong})
    assert str(refused.value) == told


def test_a_mistake_can_be_told_with_the_flag_in_the_place_of_the_parameter():
    with pytest.raises(ParameterError) as refused:
        asked(0)
    assert refused.value.called("--count").startswith("--count cannot be 0")


def test_scalars_of_numpy_become_plain_numbers():
    found = asked(np.int64(3), price=np.float32(0.5))
    assert type(found["count"]) is int
    assert type(found["price"]) is float


@pytest.mark.parametrize("wrong", [1e-320, 1e31, -1e31, float("inf"), 10**400])
def test_numbers_that_nobody_can_mean_are_refused(wrong):
    with pytest.raises(InputError, match="price cannot be "):
        asked(3, price=wrong)


def test_no_two_options_share_a_name():
    """A later theme would hide an earlier one's option in the catalog."""
    homes: dict[str, set[str]] = {}
    for theme in pkgutil.iter_modules(traincast.options.__path__):
        module = importlib.import_module(f"traincast.options.{theme.name}")
        if theme.name == "catalog":
            continue
        for name, value in vars(module).items():
            if option_in(value) is not None:
                homes.setdefault(name, set()).add(str(id(option_in(value)[1])))
    assert [name for name, options in homes.items() if len(options) > 1] == []
