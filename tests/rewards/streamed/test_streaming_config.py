"""What `Streaming` takes for memory."""

import pytest

from robust_rlhf_jax.memory import host_bytes
from robust_rlhf_jax.rewards import RayTasks, Streaming


@pytest.mark.parametrize(
    ("memory", "expected"),
    [
        (1000, 1000),
        ("2GB", 2 * 10**9),
        ("1.5 gb", 1_500_000_000),
        ("64kB", 64_000),
        ("3M", 3_000_000),
        ("7", 7),
    ],
)
def test_memory_in_words(memory, expected):
    assert Streaming(memory=memory).memory_bytes == expected


@pytest.mark.parametrize("memory", ["much", "-2GB", "2PB", "0", ""])
def test_memory_that_is_no_number_is_refused(memory):
    with pytest.raises(ValueError, match="give a number of bytes"):
        Streaming(memory=memory)


def test_the_sample_grows_with_the_features():
    assert [Streaming().sample_of(k) for k in (10, 1024)] == [16_384, 65_536]
    assert Streaming(sample=500).sample_of(1024) == 500


def test_too_few_passes_are_refused():
    with pytest.raises(ValueError, match="at least 5"):
        Streaming(passes=4)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"passes": "9"}, "passes='9': give a whole number"),
        ({"sample": 0}, "sample=0: give a whole number of pairs"),
        ({"sample": 2.5}, "sample=2.5: give a whole number of pairs"),
        ({"engine": "ray"}, "engine='ray': give RayTasks"),
        ({"engine": RayTasks}, "give RayTasks"),
    ],
)
def test_what_is_no_option_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        Streaming(**given)


def test_half_of_the_machine_where_nobody_says():
    assert Streaming().memory_bytes == host_bytes() // 2
