"""Does cleaning a file of votes on texts help another model, and when not? The bundled arguments, by two featurisers.

    python benchmarks/text_cleaning.py [--seeds 10] [--features hashed svd] [--model FOLDER] [--shares 0 .05 .1]
        [--out FOLDER [--redraw]]

For each seed (`vote_files.py`) the votes of some raters on pairs of some arguments are corrupted, written to a file,
read and cleaned. Votes that `flag` and its rivals find are checked against the majority of held-back votes of other
raters. What is kept is exported, read again, and two models of another kind (`text_models.py`) are trained before and
after; they are scored on the majorities of pairs of other arguments. `--model` adds embeddings by a local model (extra
`embed`).

| cleaning | what is left out |
|---|---|
| `flag` | what `audit.flag` names without ε |
| highest | the share that was corrupted (of a clean file a tenth), highest `suspicion_scores` first |
| cleanlab | `find_label_issues` on held-out logistic regression of the same features |
| known | the corrupted votes themselves, which nobody knows: what perfect cleaning would give |

Prints the tables in Markdown, and writes them, every number (`cells.json`) and the figures to `--out`; `--redraw` makes
them anew of those numbers. OMP_NUM_THREADS=1 keeps the boosted trees fast on a shared machine. Data: UKPConvArg1
(Habernal & Gurevych 2016, CC-BY-4.0).
"""

import argparse
import dataclasses
import json
import tempfile
from importlib import util
from pathlib import Path

import numpy as np
from cleanlab.filter import find_label_issues
from cleanlab.rank import get_label_quality_scores
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score
from sklearn.model_selection import GroupKFold, cross_val_predict
from text_models import MODELS, held_out
from text_tables import draw_figure, report
from vote_files import KINDS, VOTES, Votes, contradicted, corrupt, draw, write

from robust_rlhf_jax.audit import flag, suspicion_scores
from robust_rlhf_jax.io import Featuriser, Pairs, Texts, export, load_pairs

SHARES = (0.0, 0.05, 0.1)
# What "highest" leaves out of a file that nobody corrupted.
TOLD_OF_CLEAN = 0.1
COLUMNS = 48


class WordTopics:
    """TF-IDF of words without stop words, in the directions of largest variance of the texts (SVD); no length."""

    def __init__(self, components: int = 32):
        self.components = components
        self.names: tuple[str, ...] = ()

    def fit(self, texts: Texts):
        from sklearn.decomposition import TruncatedSVD
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.pipeline import make_pipeline

        distinct = sorted({*texts.chosen, *texts.rejected})
        words = TfidfVectorizer(stop_words="english", sublinear_tf=True)
        self.pipeline = make_pipeline(
            words, TruncatedSVD(min(self.components, len(distinct) - 1), random_state=0)
        )
        self.pipeline.fit(distinct)
        self.names = tuple(f"topic{i}" for i in range(self.pipeline[-1].n_components))
        return self.transform(texts.prompt, texts.chosen), self.transform(texts.prompt, texts.rejected)

    def transform(self, prompts: list[str], responses: list[str]):
        return self.pipeline.transform(responses)

    def settings(self):
        return {"featuriser": "word topics"}

    def arrays(self):
        return {}


def featuriser(name: str, model: Path | None) -> str | Featuriser:
    return str(model) if name == "embedding" else WordTopics() if name == "svd" else name


def suspicions(pairs: Pairs) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """Scores [N] by name, higher for more suspicious, and cleanlab's mask [N], of decided pairs."""
    turn = np.random.default_rng(0).choice([-1.0, 1.0], pairs.n_pairs)  # else all classes were 1
    x, y = pairs.preferred_differences() * turn[:, None], (turn > 0).astype(int)
    x = x / (np.sqrt(np.mean(x**2, axis=0)) + 1e-9)
    logistic = LogisticRegression(fit_intercept=False, max_iter=500)
    folds = list(GroupKFold(5).split(x, y, pairs.groups))
    outside = cross_val_predict(logistic, x, y, cv=folds, method="predict_proba")
    inside = logistic.fit(x, y).predict_proba(x)
    scores = {
        "fit_reward": np.asarray(suspicion_scores(padded(pairs)), float),
        "cleanlab": 1.0 - get_label_quality_scores(y, outside),
        "surprise": 1.0 - inside[np.arange(len(y)), y],
    }
    return scores, np.asarray(find_label_issues(y, outside, n_jobs=1), bool)


def padded(pairs: Pairs) -> Pairs:
    """Features filled up with zeros, which say nothing, so that the fits of all files share one program."""
    more = max(COLUMNS - len(pairs.names), 0)
    chosen, rejected = (
        np.pad(np.asarray(side), ((0, 0), (0, more))) for side in (pairs.chosen, pairs.rejected)
    )
    names = (*pairs.names, *(f"none{i}" for i in range(more)))
    return dataclasses.replace(pairs, chosen=chosen, rejected=rejected, names=names)


def highest(scores, count: int):
    mask = np.zeros(len(scores), bool)
    mask[np.argsort(-scores, kind="stable")[:count]] = True
    return mask


def found(scores: dict, flagged: dict, faulty: np.ndarray) -> dict:
    """Precision and recall of each mask and average precision of each score; `faulty` is NaN where nobody can say."""
    known = ~np.isnan(faulty)
    truth = faulty[known] == 1
    right = {name: int((mask[known] & truth).sum()) for name, mask in flagged.items()}
    return {
        "base": float(truth.mean()),
        "precision": {
            n: right[n] / mask[known].sum() if mask[known].any() else np.nan for n, mask in flagged.items()
        },
        "recall": {n: right[n] / truth.sum() if truth.any() else np.nan for n in flagged},
        "ap": {
            n: float(average_precision_score(truth, s[known])) if truth.any() else np.nan
            for n, s in scores.items()
        },
    }


def trained(
    pairs: Pairs, keep: np.ndarray, folder: Path, votes: Votes, room: int
) -> dict[str, tuple[float, float]]:
    """(accuracy, log-loss) of each model on the test pairs, trained on what an export of the kept votes holds."""
    kept = load_pairs(export(pairs, folder / "cleaned.jsonl", {}, keep=keep), featuriser="format")
    assert kept.n_pairs == keep.sum()
    assert kept.texts is not None
    prompts, *sides = zip(*votes.test, strict=True)
    labels = np.array(list(votes.test.values()))
    features = _lookup(pairs, prompts, sides)
    chosen, rejected = (features(side) for side in (kept.texts.chosen, kept.texts.rejected))
    first, second = map(features, sides)
    return {
        name: held_out(fit(chosen, rejected, room)(first, second), labels) for name, fit in MODELS.items()
    }


def _lookup(pairs: Pairs, prompts, sides):
    """Texts to their features, by the featuriser of `pairs`, each text once; features look at no prompt here."""
    assert pairs.texts is not None
    assert pairs.featuriser is not None
    texts = sorted({*pairs.texts.chosen, *pairs.texts.rejected, *sides[0], *sides[1]})
    rows = dict(zip(texts, pairs.featuriser.transform([""] * len(texts), texts), strict=True))
    return lambda wanted: np.array([rows[text] for text in wanted], np.float32)


def measure(seed: int, kind: str, share: float, features: str | Featuriser, n: int) -> dict:
    """One corrupted file: what was found in it, and how the models do before and after."""
    votes = draw(seed, n)
    rows, changed = corrupt(seed, votes.audited, kind, share)
    rows, changed = _same_size(rows, changed, n)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder / "votes.jsonl", rows)
        pairs = load_pairs(folder / "votes.jsonl", featuriser=features)
        decided, at = pairs.decided(), np.flatnonzero(pairs.fitted)
        scores, issues = suspicions(decided)
        count = round((share or TOLD_OF_CLEAN) * len(at))
        flagged = {
            "flag": np.asarray(flag(padded(decided))),
            "highest": highest(scores["fit_reward"], count),
            "cleanlab": issues,
        }
        doubts = contradicted(rows, votes.majority)[at]
        masks = {"none": np.zeros(len(at), bool), **flagged, "known": changed[at]}
        outcomes, done = {}, {}
        for way, mask in masks.items():
            if mask.tobytes() not in done:
                keep = np.zeros(pairs.n_pairs, bool)
                keep[at[~mask]] = True
                done[mask.tobytes()] = trained(pairs, keep, folder, votes, n)
                (folder / "cleaned.jsonl").unlink()
            outcomes[way] = done[mask.tobytes()]
    return {
        "seed": seed, "kind": kind, "share": share, "changed": float(changed[at].mean()), "test": len(votes.test),
        "checked": int((~np.isnan(doubts)).sum()), "flagged": {w: int(m.sum()) for w, m in flagged.items()},
        "majority": found(scores, flagged, doubts), "corrupted": found(scores, flagged, changed[at].astype(float)),
        "models": outcomes,
    }  # fmt: skip


def _same_size(rows: list[dict], changed, n: int):
    """The rows with no more than `n` decided votes: bots decide where raters called a tie."""
    decided = [i for i, row in enumerate(rows) if row["label"] != "tie"]
    dropped = set(np.random.default_rng(0).permutation(decided)[n:].tolist())
    kept = [i for i in range(len(rows)) if i not in dropped]
    return [rows[i] for i in kept], changed[kept]


def main(words: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--features", nargs="+", default=["hashed", "svd"], choices=("hashed", "svd"))
    parser.add_argument("--model", type=Path, help="folder of a local embedding model")
    parser.add_argument("--shares", nargs="+", type=float, default=SHARES)
    parser.add_argument("--votes", type=int, default=VOTES, help="decided votes in each audited file")
    parser.add_argument(
        "--out", type=Path, help="folder for tables.md, cells.json and a figure for each featuriser"
    )
    parser.add_argument("--redraw", action="store_true", help="tables and figures of the numbers in --out")
    given = parser.parse_args(words)
    if given.redraw:
        print(save(given.out, json.loads((given.out / "cells.json").read_text(encoding="utf-8"))))
        return 0
    names = list(given.features)
    if given.model is None or util.find_spec("transformers") is None:
        print(
            "Embeddings are skipped: they need --model, the folder of a local model, and the extra `embed`."
        )
    else:
        names.append("embedding")
    cells: dict[str, list[dict]] = {name: [] for name in names}
    plan = [(k, s) for s in given.shares for k in (KINDS if s else KINDS[:1])]
    for name in names:
        for seed in range(given.seeds):
            for kind, share in plan:
                cells[name].append(measure(seed, kind, share, featuriser(name, given.model), given.votes))
            if given.out is not None:
                save(given.out, cells)
    print(report(cells))
    return 0


def save(folder: Path, cells: dict[str, list[dict]]) -> str:
    """Write numbers, tables and figures; the tables are returned."""
    folder.mkdir(parents=True, exist_ok=True)
    done = {name: group for name, group in cells.items() if group}
    (folder / "cells.json").write_text(json.dumps(done), encoding="utf-8")
    for name, group in done.items():
        draw_figure(group, folder / f"texts_{name}.png")
    tables = report(done)
    (folder / "tables.md").write_text(tables + "\n", encoding="utf-8")
    return tables


if __name__ == "__main__":
    raise SystemExit(main())
