"""Exports of annotation tools: Argilla 1 and 2, Label Studio's JSON, JSON_MIN and CSV; several annotators by hand.

Sources: Argilla's guides to exporting (FeedbackDataset of version 1: a list of {user_id, value, status} per question;
version 2: `question.responses`, `question.responses.users`, `question.responses.status`, or nested by `to_list`), Label
Studio's pages on the tag Pairwise, on the format of annotated tasks and on export.
"""

from .arenas import word
from .chosen import each
from .worlds import RATERS, Item

Rows = list[dict]
STATUS = "submitted"


def _answer(value: float) -> str:
    return word(value, "response1", "response2", "tie")


@each
def argilla1_label(i, item):
    """A label question, answered by several users."""
    answers = [{"user_id": who, "value": _answer(v), "status": STATUS} for who, v in item.votes]
    return {
        "prompt": item.prompt, "response1": item.a, "response2": item.b, "preference": answers,
        "preference-suggestion": None, "preference-suggestion-metadata": {"type": None, "score": None, "agent": None},
        "external_id": f"x{i}", "metadata": "{}",
    }  # fmt: skip


def _ranks(value: float) -> list[dict]:
    first, second = (1, 1) if value == 0 else (1, 2) if value > 0 else (2, 1)
    return [{"rank": first, "value": "response1"}, {"rank": second, "value": "response2"}]


@each
def argilla1_ranking(i, item):
    """A ranking question over two responses: rank 1 is the best."""
    answers = [{"user_id": who, "value": _ranks(v), "status": STATUS} for who, v in item.votes]
    return argilla1_label([item])[0] | {"preference": answers, "external_id": f"x{i}"}


@each
def argilla1_discarded(i, item):
    """A discarded answer has no value and says nothing."""
    row = argilla1_label([item])[0] | {"external_id": f"x{i}"}
    return row | {
        "preference": [*row["preference"], {"user_id": "w-extra", "value": None, "status": "discarded"}]
    }


@each
def argilla2_flat(i, item):
    """`records.to_datasets()`."""
    return {
        "id": f"r{i}", "status": "completed", "_server_id": f"{i:036x}", "prompt": item.prompt,
        "response1": item.a, "response2": item.b, "preference.responses": [_answer(v) for _, v in item.votes],
        "preference.responses.users": [who for who, _ in item.votes],
        "preference.responses.status": [STATUS for _ in item.votes],
        "preference.suggestion": None, "preference.suggestion.agent": None, "preference.suggestion.score": None,
    }  # fmt: skip


@each
def argilla2_nested(i, item):
    """`records.to_json()`."""
    return {
        "id": f"r{i}", "fields": {"prompt": item.prompt, "response1": item.a, "response2": item.b}, "metadata": {},
        "suggestions": {}, "responses": {"preference": [{"value": _answer(v), "user_id": w} for w, v in item.votes]},
        "vectors": {}, "status": "completed", "_server_id": f"{i:036x}",
    }  # fmt: skip


def _user(rater: str) -> int:
    """Label Studio counts its users."""
    return 10 + RATERS.index(rater)


@each
def label_studio(i, item):
    """Raw JSON: a task with the annotations of several users."""
    annotations = [
        {"id": 1000 + 10 * i + j, "completed_by": _user(who), "was_cancelled": False, "ground_truth": False,
         "created_at": "2024-03-09T22:16:08.728353Z", "lead_time": 4.2, "task": i,
         "result": [{"id": "Dx_aB91ISN", "from_name": "pw", "to_name": "text1,text2", "type": "pairwise",
                     "value": {"selected": word(v, "left", "right", "")}}]}
        for j, (who, v) in enumerate(item.votes)
    ]  # fmt: skip
    data = {"prompt": item.prompt, "text1": item.a, "text2": item.b}
    return {"id": i, "data": data, "annotations": annotations, "predictions": [], "project": 83, "meta": {}}


def label_studio_min(items: list[Item]) -> Rows:
    """JSON_MIN and CSV: a row for each annotation, the control's name `pw` as the label's column."""
    return [
        {"prompt": item.prompt, "text1": item.a, "text2": item.b, "id": i, "pw": word(value, "left", "right", ""),
         "annotator": _user(who), "annotation_id": 1000 + 10 * i + j, "created_at": "2024-03-09T22:16:08.728353Z",
         "updated_at": "2024-03-09T22:16:08.728378Z", "lead_time": 4.2}
        for i, item in enumerate(items) for j, (who, value) in enumerate(item.votes)
    ]  # fmt: skip


def long_table(items: list[Item]) -> Rows:
    """A row for each judgement, the pair's id repeated."""
    return [
        {"pair_id": f"p{i}", "prompt": item.prompt, "response_a": item.a, "response_b": item.b, "annotator": who,
         "preference": word(value, "A", "B", "tie")}
        for i, item in enumerate(items) for who, value in item.votes
    ]  # fmt: skip


@each
def rater_columns(i, item):
    """A column for each annotator."""
    said = {f"annotator_{j + 1}": word(v, "A", "B", "tie") for j, (_, v) in enumerate(item.votes)}
    return {"pair_id": f"p{i}", "prompt": item.prompt, "response_a": item.a, "response_b": item.b, **said}


@each
def label_columns(i, item):
    """The same under other names."""
    said = {
        f"label_rater{j + 1}": word(v, "response_a", "response_b", "tie")
        for j, (_, v) in enumerate(item.votes)
    }
    return {"prompt": item.prompt, "response_a": item.a, "response_b": item.b, **said}


def labelled_users(items: list[Item]) -> list[Item]:
    """Items whose raters are called as Label Studio calls them."""
    return [
        Item(item.prompt, item.a, item.b, tuple((str(_user(w)), v) for w, v in item.votes)) for item in items
    ]
