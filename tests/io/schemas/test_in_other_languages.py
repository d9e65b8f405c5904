"""Columns with German, French, Spanish, Italian, Dutch and Portuguese names; `test_wild.py` reads these files, too."""

import unicodedata

import pytest
from wild import stores
from wild.arenas import word
from wild.case import Case
from wild.chosen import each

from robust_rlhf_jax.io import load_pairs


@each
def german(i, item):
    return {
        "Frage": item.prompt, "Antwort A": item.a, "Antwort B": item.b, "Präferenz": word(item.vote, "A", "B", "tie"),
    }  # fmt: skip


@each
def dutch(i, item):
    label = word(item.vote, "A", "B", "geen voorkeur")
    return {"Vraag": item.prompt, "Antwoord A": item.a, "Antwoord B": item.b, "Keuze": label}


@each
def french(i, item):
    return {"Question": item.prompt, "réponse_préférée": item.chosen, "réponse_rejetée": item.rejected}


@each
def left_and_right(i, item):
    label = word(item.vote, "gauche", "droite", "égalité")
    return {"question": item.prompt, "réponse_gauche": item.a, "réponse_droite": item.b, "choix": label}


@each
def yes_and_no(i, item):
    told = {
        "a_chosen": "WAHR" if item.vote > 0 else "FALSCH",
        "b_chosen": "FALSCH" if item.vote > 0 else "WAHR",
    }
    return {"Frage": item.prompt, "Antwort A": item.a, "Antwort B": item.b, **told}


CASES = (
    Case("german_flags", yes_and_no, stores.table(sep=";")),
    Case("german", german, stores.table(), options={"ties": True}),
    Case("dutch", dutch, stores.table(sep=";"), options={"ties": True}),
    Case("french", french, stores.table()),
    Case("french_left_and_right", left_and_right, stores.table(), options={"ties": True}),
)
NAMES = (
    ("Frage", "Antwort_1", "Antwort_2", "Wahl", "Bewerter"),
    ("question", "réponse_1", "réponse_2", "préférée", "Évaluateur"),
    ("pregunta", "respuesta_1", "respuesta_2", "elección", "evaluador"),
    ("Domanda", "Risposta 1", "Risposta 2", "preferenza", "valutatore"),
    ("Frage", "Antwort 1", "Antwort 2", "Bevorzugt", "Versuchsperson"),
    ("Frage", "Antwort 1", "Antwort 2", "Bessere Antwort", "Proband"),
    ("question", "réponse 1", "réponse 2", "préférence", "juge"),
    ("question", "réponse 1", "réponse 2", "meilleure réponse", "participant"),
    ("pregunta", "respuesta 1", "respuesta 2", "mejor respuesta", "juez"),
    ("domanda", "risposta 1", "risposta 2", "migliore risposta", "giudice"),
    ("vraag", "antwoord 1", "antwoord 2", "Keuze", "beoordelaar"),
    ("Vraag", "Antwoord_1", "Antwoord_2", "voorkeur", "deelnemer"),
    ("pergunta", "resposta 1", "resposta 2", "escolha", "avaliador"),
    ("Pergunta", "Resposta_1", "Resposta_2", "melhor resposta", "Participante"),
)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("names", NAMES)
def test_names_are_read_with_accents_in_any_form(names, form):
    names = [unicodedata.normalize(form, name) for name in names]
    rows = [
        dict(zip(names, (f"p{i}", f"x {i}", f"y {i}", 1 + i % 2, f"w{i % 3}"), strict=True)) for i in range(9)
    ]
    found = load_pairs(rows, featuriser="format")
    assert found.texts.prompt == [f"p{i}" for i in range(9)]
    assert found.swapped.tolist() == [bool(i % 2) for i in range(9)]
    assert set(found.raters) == {"w0", "w1", "w2"}


@pytest.mark.parametrize(
    "names",
    [("Bevorzugte Antwort", "Abgelehnte Antwort"), ("respuesta_elegida", "respuesta_rechazada"),
     ("Risposta preferita", "Risposta rifiutata")],
)  # fmt: skip
def test_names_say_which_answer_was_preferred(names):
    rows = [dict(zip(names, (f"x {i}", f"y {i}"), strict=True)) for i in range(4)]
    assert load_pairs(rows, featuriser="format").texts.chosen == [f"x {i}" for i in range(4)]


@pytest.mark.parametrize("english_first", [False, True])
@pytest.mark.parametrize(
    ("english", "translated"),
    [(("question", "chosen", "rejected"), ("Frage", "réponse_choisie", "réponse_rejetée")),
     (("question", "chosen", "rejected"), ("Frage", "choisie", "rejetée")),
     (("question", "answer_a", "answer_b"), ("Frage", "Antwort_a", "Antwort_b"))],
)  # fmt: skip
def test_columns_in_english_come_before_their_translations(english, translated, english_first):
    names = (*english, *translated) if english_first else (*translated, *english)
    rows = [{name: f"{name} {i}" for name in names} | {"winner": "A"} for i in range(6)]
    rows = rows if "answer_a" in english else [{name: row[name] for name in names} for row in rows]
    texts = load_pairs(rows, featuriser="format").texts
    assert (texts.prompt[0], texts.chosen[0]) == (f"{english[0]} 0", f"{english[1]} 0")


def test_tables_of_numbers_need_but_the_label():
    rows = [
        {"Preis_A": i, "Preis_B": 9 - i, "Zeit_A": i % 5, "Zeit_B": 2, "Wahl": "AB"[i % 2]} for i in range(8)
    ]
    assert load_pairs(rows).names == ("Preis", "Zeit")


def test_a_rating_that_may_be_a_grade_is_asked_about():
    rows = [
        {"Frage": f"p{i}", "Antwort A": f"x {i}", "Antwort B": f"y {i}", "Bewertung": "AB"[i % 2]}
        for i in range(8)
    ]
    with pytest.raises(
        ValueError, match=r"\(the cells of Bewertung name sides\): name its column by --label"
    ):
        load_pairs(rows, featuriser="format")


@pytest.mark.parametrize(
    ("answer", "left", "right", "choice"),
    [("Antwort", "links", "rechts", "Wahl"), ("respuesta", "izquierda", "derecha", "elección"),
     ("Risposta", "sinistra", "destra", "scelta")],
)  # fmt: skip
def test_left_and_right_are_sides(answer, left, right, choice):
    rows = [
        {f"{answer}_{left}": f"x {i}", f"{answer}_{right}": f"y {i}", choice: (left, right)[i % 2]}
        for i in range(4)
    ]
    assert load_pairs(rows, featuriser="format").swapped.tolist() == [False, True] * 2


@pytest.mark.parametrize(
    ("yes", "no"),
    [
        ("ja", "nein"),
        ("VRAI", "FAUX"),
        ("oui", "non"),
        ("sí", "no"),
        ("Verdadero", "Falso"),
        ("Vero", "falso"),
    ],
)
def test_flags_say_yes_and_no(yes, no):
    rows = [
        {
            "response_a": f"x {i}",
            "response_b": f"y {i}",
            "a_chosen": (yes, no)[i % 2],
            "b_chosen": (no, yes)[i % 2],
        }
        for i in range(6)
    ]
    assert load_pairs(rows, featuriser="format").swapped.tolist() == [False, True] * 3


@pytest.mark.parametrize(
    "names",
    [("Teilnehmer", "Aufgabe", "Preis", "Gewählt"), ("Befragter", "Auswahlaufgabe", "Preis", "Auswahl"),
     ("participant", "tâche", "prix", "choisi"), ("Encuestado", "tarea", "precio", "elegido"),
     ("partecipante", "compito", "prezzo", "scelto")],
)  # fmt: skip
@pytest.mark.parametrize("chosen", [1, 2])
def test_choices_of_one_option_a_row_have_names_in_other_languages(names, chosen):
    rows = [
        dict(zip(names, (f"P{i // 3}", i % 3, 10 * i + option, int(option == chosen)), strict=True))
        for i in range(9)
        for option in (1, 2)
    ]
    found = load_pairs(rows)
    assert found.names == (names[2],)
    assert found.differences()[:, 0].tolist() == [2.0 * chosen - 3] * 9
    assert set(found.raters) == {"P0", "P1", "P2"}


@pytest.mark.parametrize(
    "tie",
    [
        "beide gleich gut",
        "kein Unterschied",
        "pas de préférence",
        "sin diferencia",
        "uguale",
        "gelijk",
        "引き分け",
    ],
)
def test_ties_are_told_in_other_languages(tie):
    made = [
        {"response_a": f"x {i}", "response_b": f"y {i}", "winner": ("A", "B", tie)[i % 3]} for i in range(9)
    ]
    assert load_pairs(made, featuriser="format").strength.tolist() == [1.0, 1.0, 0.0] * 3
