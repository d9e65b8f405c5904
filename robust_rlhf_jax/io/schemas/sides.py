"""Columns whose names say that they are the two sides of a pair, a prompt, a label, a rater."""

import dataclasses
import functools
import re
import unicodedata
from typing import Any

from ..columns import Columns
from ..labels import TIE, TRUTHS, is_missing, number_in, word, word_rule
from ..table import Table
from .base import structured

# Names of the two sides of a pair of texts, chosen first; the label is in the name.
CHOSEN_SIDES = (
    ("chosen", "rejected"), ("text_chosen", "text_rejected"), ("chosen_text", "rejected_text"),
    ("chosen_response", "rejected_response"), ("response_chosen", "response_rejected"),
    ("chosen_answer", "rejected_answer"),
    ("chosen_completion", "rejected_completion"), ("chosen_output", "rejected_output"),
    ("chosen_content", "rejected_content"),
    ("chosen_messages", "rejected_messages"), ("chosen_conversation", "rejected_conversation"),
    ("preferred", "dispreferred"), ("preferred_response", "rejected_response"),
    ("preferred_response", "dispreferred_response"),
    ("preferred_output", "non_preferred_output"), ("positive", "negative"), ("winner_response", "loser_response"),
    ("response_j", "response_k"), ("y_w", "y_l"), ("best_response", "worst_response"), ("win", "lose"),
    ("winning_response", "losing_response"), ("response_w", "response_l"), ("selected_response", "rejected_response"),
    ("accepted", "rejected"), ("better", "worse"), ("better_response", "worse_response"), ("accepted", "refused"),
    ("preferred", "rejected"), ("preferred", "non_preferred"), ("good_response", "bad_response"),
    ("positive_response", "negative_response"), ("answer_preferred", "answer_rejected"),
    ("answer_chosen", "answer_rejected"), ("preferred_answer", "rejected_answer"),
)  # fmt: skip
# What two open sides are called, before or after a letter or a number: the first of these that a file has.
ANSWERS = (
    "response", "completion", "answer", "output", "reply", "generation", "candidate", "human_ref", "continuation",
    "summary", "option", "text", "assistant", "conversation", "messages", "chat", "dialogue", "dialog", "translation",
    "essay", "story", "sample", "content", "result", "message", "version", "txt", "model_response", "model_output",
    "side", "item", "",
)  # fmt: skip
TOKENS = (
    ("a", "b"), ("1", "2"), ("0", "1"), ("left", "right"), ("first", "second"), ("one", "two"), ("gauche", "droite"),
    ("top", "bottom"), ("links", "rechts"), ("izquierda", "derecha"), ("sinistra", "destra"),
)  # fmt: skip
ORDINALS, CARDINALS = ("first", "second", "third", "fourth"), ("one", "two", "three", "four")
COUNTED = tuple(map(str, range(100)))
AFTER = re.compile(
    r"^(?P<stem>.*?)[\s_.\-]?(?P<token>[a-h]|\d{1,2}|left|right|first|second|third|fourth|one|two|three|four|"
    r"gauche|droite|links|rechts|izquierda|derecha|sinistra|destra|top|bottom)$",
    re.I,
)
BEFORE = re.compile(r"^(?P<token>left|right|first|second|top|bottom|a|b)[\s_.\-](?P<stem>.+)$", re.I)
# Whose answers they are before what they are called: model_a_response.
WHOSE = re.compile(
    r"^(?:model|assistant|system|option|candidate|agent)[\s_.\-]?(?P<token>a|b|[0-9]|one|two)[\s_.\-](?P<stem>.+)$",
    re.I,
)
# What platforms write before the names of a task's and an answer's columns (MTurk, SageMaker, Toloka).
PLATFORM = re.compile(r"^(?:(?:input|answer|answercontent)\.|(?:input|output|assignment):)(?=\w)")
# The same before what a task shows.
SHOWN_BY_PLATFORM = re.compile(r"^input[.:](?=\w)", re.I)
# German, French, Spanish, Italian, Dutch and Portuguese words in names of columns, without accents.
IN_ENGLISH = {
    "frage": "question", "antwort": "answer", "wahl": "choice", "praferenz": "preference", "gewinner": "winner",
    "bevorzugte": "preferred", "abgelehnte": "rejected", "bewerter": "rater", "teilnehmer": "participant",
    "urteil": "verdict", "bevorzugt": "preferred", "bessere": "better", "proband": "participant",
    "versuchsperson": "participant", "aufgabe": "task", "wahlaufgabe": "task", "auswahlaufgabe": "task",
    "wahlsituation": "choice_situation", "gewahlt": "chosen", "gewaehlt": "chosen", "ausgewahlt": "selected",
    "auswahl": "choice", "entscheidung": "decision", "befragter": "respondent", "befragte": "respondent",
    "reponse": "answer", "choix": "choice", "preferee": "preferred", "prefere": "preferred", "gagnant": "winner",
    "tache": "task", "choisi": "chosen", "repondant": "respondent",
    "evaluateur": "rater", "annotateur": "annotator", "annotatore": "annotator",
    "anotador": "annotator", "beurteiler": "rater", "beoordelaar": "rater", "rejetee": "rejected", "choisie": "chosen",
    "preference": "preference", "meilleure": "better", "juge": "judge",
    "pregunta": "question", "respuesta": "answer", "eleccion": "choice", "preferencia": "preference",
    "preferida": "preferred", "ganador": "winner", "evaluador": "rater", "rechazada": "rejected", "elegida": "chosen",
    "tarea": "task", "elegido": "chosen", "encuestado": "respondent",
    "mejor": "better", "juez": "judge", "participante": "participant",
    "domanda": "question", "risposta": "answer", "scelta": "choice", "preferenza": "preference",
    "preferita": "preferred", "rifiutata": "rejected", "vincitore": "winner", "valutatore": "rater",
    "compito": "task", "scelto": "chosen", "intervistato": "respondent",
    "migliore": "better", "giudice": "judge", "partecipante": "participant",
    "vraag": "question", "antwoord": "answer", "keuze": "choice", "voorkeur": "preference", "winnaar": "winner",
    "gekozen": "chosen", "afgewezen": "rejected", "taak": "task", "deelnemer": "participant",
    "pergunta": "question", "resposta": "answer", "escolha": "choice", "vencedor": "winner", "escolhido": "chosen",
    "escolhida": "chosen", "rejeitada": "rejected", "rejeitado": "rejected", "avaliador": "rater", "tarefa": "task",
    "melhor": "better", "juiz": "judge",
}  # fmt: skip
NOT_ANSWERS = re.compile(
    r"(^|_)(model|id|name|lang|language|source|score|rating|reason|reasoning|feedback|len|length|tokens?|time|rank|label|"
    r"winner|pref|preference|judge|annotator|rater|worker|generator|url|type|elo|conf|confidence|logps?|reward|vote|created)s?$",
    re.I,
)
PROMPTS = (
    "prompt", "question", "instruction", "context", "input", "query", "history", "user_prompt", "prompt_text", "post",
    "orig_instruction", "task", "article", "document", "request", "user_input", "user", "prompts", "problem",
    "inputs", "conversations", "messages", "contents", "anchor", "conversation", "dialogue", "dialog",
)  # fmt: skip
LABELS = (
    "label", "preference", "overall_preference", "winner", "choice", "strength", "preference_strength", "labels",
    "preferred", "better", "best", "chosen_side", "vote", "verdict", "selected", "selection", "overall_pref",
    "annotation", "judgment", "judgement", "result", "better_response_id", "better_response", "orig_preference",
    "preferred_response", "pref", "preferred_side", "winning_side", "human_preference", "human_label",
    "which_is_better", "comparison", "decision", "target", "gold", "gold_label", "ground_truth", "outcome", "y",
    "better_answer", "preferred_answer", "winning_response", "preferred_model", "better_model", "winning_model",
    "selected_option", "preferred_option", "chosen_option", "winning_option",
)  # fmt: skip
# Those that may be the right answer of a test, which is no preference.
KEYS_OF_TESTS = (
    "target", "gold", "gold_label", "ground_truth", "y", "result", "outcome", "annotation",
)  # fmt: skip
# Who judges, before a number, a code or a name.
PERSONS = (
    "annotator", "rater", "labeler", "labeller", "worker", "judge", "evaluator", "reviewer", "participant",
    "respondent", "subject", "subj", "ppt", "voter", "grader", "assessor", "panelist", "contributor",
)  # fmt: skip
RATERS = (
    "rater", "rater_id", "annotator", "annotator_id", "worker", "worker_id", "user_id", "judge", "evaluator",
    "labeler", "labeller", "labeler_id", "annotated_by", "completed_by", "labelled_by", "reviewer", "reviewer_id",
    "evaluator_id", "workerid", "prolific_pid", "participant", "participant_id", "participantid", "respondent",
    "respondent_id", "user_email", "annotator_email", "rater_email", "coder", "coder_id", "expert",
    "expert_id", "person", "person_id", "individual", "individual_id", "subject_id", "voter", "voter_id", "resp_id",
    "respid", "customer_id", "annotator_name", "rater_name", "labeler_name", "annotatorid", "raterid", "userid",
    "judge_hash", "email_address", "visitor_id", "respnum", "sys_respnum", "respondentid", "prolific_id",
    "labeller_id", "labelerid", "labellerid", "judge_id", "judgeid", "reviewerid", "evaluatorid", "voterid", "coderid",
    "expertid", "personid", "subjectid", "participant_code", "participant.code", "panelist", "panelist_id", "assessor",
    "assessor_id", "grader", "grader_id", "rated_by", "judged_by", "evaluated_by", "reviewed_by", "turker", "turker_id",
    "labeled_by", "completed_by_email", "mturk_id", "turk_id", "sona_id", "crowdworker", "crowdworker_id", "scorer",
    "scorer_id", "contributor_id", "_worker_id",
    *(f"{who}_{what}" for who in PERSONS for what in ("no", "nr", "number", "code", "hash", "index", "uuid", "#")),
    *(f"{who}_name" for who in PERSONS if who not in ("subject", "subj", "ppt")),
    *(f"{who}_{what}" for who in ("subj", "ppt") for what in ("id", "code")),
)  # fmt: skip
# A name of one word; where words have no spaces between them (Thai, Burmese, Khmer, Japanese, Chinese), it may be a
# sentence.
ONE_NAME = re.compile(
    r"(?:(?![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff])[\w.@+\-])+"
)
IDS = (
    "pair_id", "comparison_id", "id", "question_id", "prompt_id", "uid", "example_id", "sample_id", "item_id",
    "task_id", "uuid",
)  # fmt: skip
# What a label may be about: columns of several are no raters.
CRITERIA = re.compile(
    r"^(?:overall|help\w*|harm\w*|safe\w*|honest\w*|truth\w*|fact\w*|correct\w*|accura\w*|quality|style|tone|fluen\w*|"
    r"coheren\w*|relevan\w*|verbos\w*|concis\w*|complex\w*|complete\w*|creativ\w*|clarity|depth|instruction\w*|tox\w*|"
    r"toxicity|bias|grammar|readab\w*|inform\w*|useful\w*|faithful\w*|consisten\w*|engag\w*|natural\w*|polite\w*|"
    r"length|brevity|format\w*|structure|organi[sz]\w*|layout|design|detail\w*|specific\w*|novel\w*|interest\w*|humou?r|"
    r"empath\w*|ethic\w*|trust\w*|persuas\w*|convinc\w*|plausib\w*|logic\w*|reason\w*|explan\w*|evidence|cit(?:ation|ing)\w*|"
    r"ground\w*|hallucin\w*|error\w*|refus\w*|simpl\w*|understand\w*|usab\w*|ease|speed|latency|cost|price|confidence|choice|"
    r"code|coding|math\w*|content|visual\w*|image\w*|audio|bleu\w*|rouge\w*|bert\w*|comet|meteor|chrf)$",
    re.I,
)


def named(table: Table, names: tuple[str, ...]) -> str | None:
    """The first of `names` that a column has, whatever its letters' size."""
    lower = by_plain_name(table)
    return next((lower[name] for name in names if name in lower), None)


# Words of a judgement, and not of a name.
FEWEST_OF_SENTENCES = 6


def _are_people(table: Table, name: str) -> bool:
    """Whether a column that is called after raters may hold their names: no sentences, nor true and false of each."""
    cells = [cell for cell in table.some(name) if not is_missing(cell)]
    if {word(cell) for cell in cells} in ({"true", "false"}, {"yes", "no"}):
        return False
    sentences = sum(isinstance(cell, str) and len(cell.split()) >= FEWEST_OF_SENTENCES for cell in cells)
    return 2 * sentences <= len(cells)


def rater_named(table: Table) -> str | None:
    """The column of who judged: called so, or `user` if it holds names of several people that come again.

    Beside embeddings in a folder it is called `raters`, as `robust-rlhf embed` writes it; elsewhere that may be their
    number."""
    lower = by_plain_name(table)
    names = RATERS if table.source.container != "npy" else (*RATERS, "raters")
    for name in (lower[name] for name in names if name in lower):
        if _are_people(table, name):
            return name
    people = names_of_users(table)
    return named(table, ("user",)) if 1 < len({*people}) <= len(people) / 2 else None


def names_of_users(table: Table) -> list[str]:
    """The cells of a column `user`, if all of them are names of one word, no prompts."""
    user = named(table, ("user",))
    cells = [] if user is None else [str(cell) for cell in table.cells(user) if not is_missing(cell)]
    return cells if all(map(ONE_NAME.fullmatch, cells)) else []


def prompt_named(table: Table, more: tuple[str, ...] = ()) -> str | None:
    """The column that is called as prompts are, or by one of `more`, and names no raters."""
    rater = rater_named(table)
    return named(
        table, tuple(name for name in (*PROMPTS, *more) if rater is None or name != plain_name(rater))
    )


def with_rater(asked: Columns, table: Table) -> Columns:
    """What is asked for, and of raters the column that is called so, if the caller names none."""
    return dataclasses.replace(asked, rater=asked.rater or rater_named(table))


def by_plain_name(table: Table) -> dict[str, str]:
    """The columns by name as `plain_name` has it; of several the first, but one without a platform's prefix before, and
    one in English before all."""
    names = {plain_name(name): name for name in reversed(table.names)}
    for as_called in (_plain, _as_written):
        names |= {called: name for name in reversed(table.names) if (called := as_called(name)) in names}
    return names


def plain_name(name: str) -> str:
    """Small letters, with underscores for spaces and dashes, in English, without what a platform adds: a prefix, and
    `.label` after an answer."""
    plain = _plain(name)
    bare = PLATFORM.sub("", plain)
    return bare if bare == plain else bare.removesuffix(".label")


@functools.lru_cache(4096)
def _plain(name: str) -> str:
    return "_".join(IN_ENGLISH.get(_without_accents(part), part) for part in _as_written(name).split("_"))


def _as_written(name: str) -> str:
    return name.strip().casefold().replace(" ", "_").replace("-", "_")


def _without_accents(part: str) -> str:
    return "".join(sign for sign in unicodedata.normalize("NFKD", part) if not unicodedata.combining(sign))


def chosen_sides(table: Table) -> tuple[str, str] | None:
    lower = by_plain_name(table)
    return next(((lower[a], lower[b]) for a, b in CHOSEN_SIDES if a in lower and b in lower), None)


def open_sides(table: Table, labels: tuple[str, ...] = LABELS) -> tuple[str, ...]:
    """The columns of answers that are called alike but for a letter or a number; three or more of a ranking; or ()."""
    return _called(table, labels, AFTER, BEFORE) or _called(table, labels, WHOSE)


def _called(table: Table, labels: tuple[str, ...], *patterns: re.Pattern) -> tuple[str, ...]:
    found: dict[tuple[str, int], dict[str, str]] = {}
    for name in exact_last(table):
        for place, pattern in enumerate(patterns):
            match = pattern.match(SHOWN_BY_PLATFORM.sub("", name.strip()))
            if match and _mostly_texts(table, name):
                stem = match["stem"].strip(" _-.").casefold()
                found.setdefault((stem, place), {})[match["token"].casefold()] = name
    sides = {
        stem: columns
        for (stem, _), tokens in found.items()
        if (columns := _in_order(tokens)) and _answer(stem) is not None
    }
    if labels and named(table, labels) is None:  # columns a and b alone could be anything
        sides.pop("", None)
    if not sides:
        return ()
    return sides[min(sides, key=lambda stem: (_answer(stem) or 0, _plain(stem) != _as_written(stem)))]


def exact_last(table: Table) -> list[str]:
    """The columns, those with spaces around their names before others that may be called the same."""
    return sorted(table.names, key=lambda name: name == name.strip())


def _answer(stem: str) -> int | None:
    """How good a name for an answer; None if it is none."""
    stem = plain_name(stem)
    if stem and NOT_ANSWERS.search(stem):
        return None
    one = stem.removesuffix("s")
    good = (i for i, answer in enumerate(ANSWERS) if stem == answer or (answer and one.endswith(answer)))
    return next(good, None)


def _in_order(tokens: dict[str, str]) -> tuple[str, ...]:
    tokens = {str(int(token)) if token.isdigit() else token: name for token, name in tokens.items()}
    for row in ("abcdefgh", COUNTED, COUNTED[1:], ORDINALS, CARDINALS, *TOKENS):
        if row[0] in tokens and row[1] in tokens:
            return tuple(tokens[t] for t in row if t in tokens)
    return ()


def holds_texts(cell: Any) -> bool:
    """Whether a cell is a text, a message or messages."""
    if isinstance(cell, str):
        return True
    if isinstance(cell, dict):
        return bool({"role", "from", "content", "text", "value"} & cell.keys())
    return isinstance(cell, list) and bool(cell) and isinstance(cell[0], dict) and holds_texts(cell[0])


def holds_numbers(cell: Any) -> bool:
    cell = structured(cell)
    return (
        isinstance(cell, list)
        and bool(cell)
        and all(isinstance(v, int | float) and not isinstance(v, bool) for v in cell)
    )


def _mostly_texts(table: Table, name: str) -> bool:
    """Whether most of the first twenty cells that are there are texts: answers may have a number among them."""
    cells = [cell for cell in table.some(name) if not is_missing(cell)][:20]
    return bool(cells) and 2 * sum(map(holds_texts, cells)) >= len(cells)


def column_of_numbers(table: Table, name: str) -> bool:
    """Whether nearly all of a column's first cells are lists of numbers: an answer may look like one, too."""
    cells = [cell for cell in table.some(name) if not is_missing(cell)]
    return bool(cells) and sum(map(holds_numbers, cells)) > 0.9 * len(cells)


def label_columns(table: Table, sides: tuple[str, str], known: tuple[str, ...] = LABELS) -> list[str]:
    """Columns called as labels are, whose cells could say which side won."""
    lower = by_plain_name(table)
    return [
        lower[name]
        for name in known
        if name in lower and lower[name] not in sides and could_decide(table, lower[name], sides)
    ]


def could_decide(table: Table, name: str, sides: tuple[str, str]) -> bool:
    """Whether a column's first cells name sides or are numbers, and are not all the same."""
    cells = [cell for cell in table.some(name) if cell is not None and cell != ""]
    words = {word(cell) for cell in cells if isinstance(cell, str | int | float | bool)}
    rule = word_rule(sides)
    says = [
        w for w in words if rule.value(w) is not None or w in TIE or number_in(w) is not None or w in TRUTHS
    ]
    return len(says) > 0.5 * len(words)
