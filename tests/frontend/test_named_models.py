"""Published models by name: parameters exact, any length, no torch."""

import subprocess
import sys

import pytest

import traincast as tc
from traincast.errors import InputError, UnknownModelError
from traincast.frontend.capturing.capture import capture_step
from traincast.frontend.models.decoder_sizes import sizes_from
from traincast.frontend.models.named import find_named, named_models
from traincast.frontend.named import folded_model
from traincast.frontend.named_capture import decoder_step
from traincast.trace.folding.same import differences


@pytest.mark.parametrize("name", named_models())
def test_a_model_has_the_published_number_of_parameters(name):
    model = named_models()[name]
    short = folded_model(name)
    assert tc.load_model(name).n_parameters == model.n_parameters
    assert model.source
    assert model.count_source
    assert model.accessed
    assert short.short.defaults.precision == ("amp-bf16" if "config" in model.sizes else "bf16")
    assert short.short.defaults.optimizer == "adamw"


# From the papers, in billions, where they say more than the name.
PUBLISHED = {
    "llama-3.1-405b": 405.0,
    "mixtral-8x7b": 46.7,
    "deepseek-v3": 671.0,
    "gpt-oss-120b": 116.8,
    "bloom-176b": 176.247,
    "opt-66b": 66,
    "mpt-30b": 30,
    "gpt3-175b": 175,
    "gpt3-13b": 13,
    "llama-4-scout": 109 - 0.87,  # less the vision encoder
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_rounded_figures_of_the_papers_agree(name):
    assert tc.load_model(name).n_parameters / 1e9 == pytest.approx(PUBLISHED[name], rel=0.012)


@pytest.mark.parametrize(
    ("typed", "name"),
    [
        ("meta-llama/Llama-3.1-8B", "llama-3.1-8b"),
        ("Llama-3.1-8B", "llama-3.1-8b"),
        ("LLAMA-3.1-405B", "llama-3.1-405b"),
        ("llama2-7b", "llama-2-7b"),
        ("mixtral", "mixtral-8x7b"),
        ("Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b"),
        ("gpt-3", "gpt3-175b"),
        ("bloom", "bloom-176b"),
        ("deepseek-r1", "deepseek-v3"),
        ("EleutherAI/pythia-1.4b-deduped", "pythia-1.4b"),
    ],
)
def test_names_are_found_as_people_type_them(typed, name):
    assert tc.load_model(typed, seqlen=16).name == name


def test_no_two_models_share_an_alias():
    typed = [alias.lower() for model in named_models().values() for alias in (model.name, *model.aliases)]
    assert len(typed) == len(set(typed))


def test_any_length_needs_no_torch():
    asked = (
        "import sys, traincast as tc\n"
        "f = tc.forecast('llama-3.1-405b', on='8xH100-SXM5-80GB', batch_size=8, seqlen=5000, strategy='fsdp')\n"
        "assert f.step_s > 0 and 'torch' not in sys.modules and f.question.trace.tokens_per_sample == 5000\n"
    )
    subprocess.run([sys.executable, "-c", asked], check=True)


@pytest.mark.parametrize(
    ("seqlen", "words"),
    [
        (
            131_073,
            "131,073 is more than the 131,072 positions of llama-3.1-8b: the longest sequence that works is 131,072",
        ),
        (2, "give 3 tokens or more"),
        ("8k", "give 3 tokens or more"),
    ],
)
def test_a_length_that_the_model_cannot_have_is_refused(seqlen, words):
    with pytest.raises(InputError, match=words):
        tc.load_model("llama-3.1-8b", seqlen=seqlen)


def test_a_language_model_has_no_image_size():
    with pytest.raises(InputError, match="takes no option 'image_size'; it takes seqlen"):
        tc.load_model("llama-3.1-8b", image_size=224)


def test_a_model_of_one_size_takes_no_option():
    with pytest.raises(InputError, match="vit-h-14 takes no option 'seqlen'; it takes none"):
        tc.load_model("vit-h-14", seqlen=224)


def test_a_misspelt_name_gets_close_ones():
    with pytest.raises(UnknownModelError, match=r"llama-3\.1-8b"):
        tc.load_model("llama-3.1-9b")


@pytest.mark.parametrize("name", ["llama-3.2-1b", "gpt-oss-20b", "deepseek-v2-lite", "opt-350m", "pythia-160m"])
def test_a_shipped_model_is_the_step_that_a_capture_of_all_its_blocks_sees(name):
    sizes = sizes_from(dict(find_named(name).sizes))
    whole = capture_step(decoder_step(sizes, 77, name=name))
    made = tc.load_model(name, seqlen=77)
    assert differences(made.graph, whole.graph) == []
    assert [module.path for module in made.modules] == [module.path for module in whole.modules]
    assert made.n_trainable_parameters == whole.n_trainable_parameters


@pytest.mark.parametrize("name", ["llama-3.1-8b", "qwen2.5-7b", "gpt3-6.7b"])
def test_flop_are_six_a_weight_and_token_and_the_attention(name):
    """Kaplan et al. 2020: 6 N a token without the table of words, and 12 x layers x width x length for attention."""
    model, length = find_named(name), 2048
    sizes = sizes_from(dict(model.sizes))
    trace = tc.load_model(name, seqlen=length)
    looked_up = sizes.vocabulary * sizes.hidden * (not sizes.tied)
    looked_up += sizes.positions * sizes.hidden * (sizes.position == "learned")
    multiplied = trace.n_parameters - looked_up
    width = sizes.n_heads * sizes.head_size
    expected = 6 * multiplied * length + 12 * sizes.n_layers * width * length * length
    found = trace.forward_flop(1) + trace.backward_flop(1)
    assert found == pytest.approx(expected, rel=2e-3)


def test_experts_cost_what_their_chosen_parameters_cost():
    """Mixtral: two of eight experts of 3 x 4,096 x 14,336, so 12.9 of 46.7 billion parameters are met by a token."""
    trace = tc.load_model("mixtral-8x7b", seqlen=1024)
    met = 46_702_792_704 - 32 * 6 * 3 * 4096 * 14336 - 32_000 * 4096
    attention = 4 * 32 * 4096 * 1024 * 1024
    assert trace.forward_flop(1) == pytest.approx(2 * met * 1024 + attention, rel=2e-3)
    assert any("2 of 8 experts" in words for words in trace.assumptions)


def test_a_sliding_window_bounds_what_a_longer_sequence_costs():
    """Gemma 3: five of six blocks see 512 tokens, so four times the length costs less than four times as much more."""
    square = {}
    for name in ("gemma-3-1b", "llama-3.2-1b"):
        flop = [tc.load_model(name, seqlen=length).forward_flop(1) for length in (8192, 16384, 32768)]
        square[name] = (flop[2] - 2 * flop[1]) / flop[2]
    assert square["gemma-3-1b"] < square["llama-3.2-1b"] / 3


@pytest.mark.parametrize("method", ["traincast", "roofline", "paleo"])
def test_experts_are_timed_by_every_method(method):
    one = tc.forecast("qwen3-30b-a3b", on="H100-SXM5-80GB", batch_size=1, method=method)
    two = tc.forecast("qwen3-30b-a3b", on="H100-SXM5-80GB", batch_size=8, method=method)
    assert 0 < one.step_s < two.step_s


def test_what_ships_is_small():
    from importlib import resources

    files = [file for file in resources.files("traincast").joinpath("data/models").iterdir()]
    assert sum(len(file.read_bytes()) for file in files) < 2_000_000
