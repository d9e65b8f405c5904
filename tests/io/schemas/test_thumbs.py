"""A thumb for each side, up or down; `test_wild.py` and its neighbours read the file of `CASES`, too."""

import pytest
from wild import stores
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import load_pairs


@each
def thumbs(i, item):
    """Those of ties are both up or both down."""
    told = {side: way * item.vote > 0 or (item.vote == 0 and i % 2) for side, way in (("a", 1), ("b", -1))}
    return {"prompt": item.prompt, "response_a": item.a, "response_b": item.b} | {
        f"thumbs_{side}": "up" if up else "down" for side, up in told.items()
    }


CASES = (Case("thumbs_of_both_sides", thumbs, stores.table(), options={"ties": True}),)


def rows(n: int = 20, **more) -> list[dict]:
    """`more`: the cells of even rows, and of odd ones."""
    return [
        {"prompt": f"p{i}", "response_a": f"x {i}", "response_b": f"y {i}"}
        | {k: v[i % 2] for k, v in more.items()}
        for i in range(n)
    ]


@pytest.mark.parametrize(
    ("up", "down"),
    [("up", "down"), ("👍", "👎"), ("+1", "-1"), (1, -1), ("like", "dislike"), (1, 0), ("Yes", "No")],
)
def test_thumbs_say_which_side_won(up, down):
    found = load_pairs(rows(thumbs_a=(up, down), thumbs_b=(down, down)), featuriser="format")
    assert found.strength.tolist() == [1.0, 0.0] * 10
    found = load_pairs(rows(thumbs_a=(down, down), thumbs_b=(up, down)), featuriser="format")
    assert found.swapped.tolist() == [True, False] * 10


def test_thumbs_of_other_words_are_asked_about():
    with pytest.raises(ValueError, match="no label"):
        load_pairs(rows(thumbs_a=("up", "sideways"), thumbs_b=("down", "up")), featuriser="format")
