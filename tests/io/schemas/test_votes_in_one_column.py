"""All votes on a pair in one column: a list, an object by rater, or a list of objects.

`test_wild.py` and its neighbours read, turn and export these files.
"""

from wild import stores
from wild.arenas import word
from wild.case import Case
from wild.chosen import each

MANY = {"ties": True, "votes": 3}


def _said(value):
    return word(value, "A", "B", "tie")


@each
def listed(i, item):
    return {
        "prompt": item.prompt,
        "response_a": item.a,
        "response_b": item.b,
        "votes": [_said(v) for _, v in item.votes],
    }


@each
def by_rater(i, item):
    votes = {who: _said(v) for who, v in item.votes}
    return listed([item])[0] | {"votes": votes}


@each
def objects(i, item):
    votes = [{"rater": who, "label": _said(v)} for who, v in item.votes]
    return listed([item])[0] | {"votes": votes}


CASES = (
    Case("votes_listed", listed, options=MANY),
    Case("votes_by_rater", by_rater, options=MANY, facts=("prompt", "row", "rater")),
    Case("votes_as_objects", objects, stores.parquet(), options=MANY, facts=("prompt", "row", "rater")),
)
