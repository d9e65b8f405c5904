"""The page: self-contained, harmless, readable in every light, on a phone and without JavaScript."""

import base64
import hashlib
import json
import re
import shutil
import subprocess
import zlib

import numpy as np
import pytest
from text_pairs import faulty_file, few_buckets, made_up_fit, read

pytest.importorskip("jinja2")
from robust_rlhf_jax.audit.advice import advise
from robust_rlhf_jax.audit.audited_file import AuditedFile
from robust_rlhf_jax.audit.config import AuditConfig
from robust_rlhf_jax.audit.findings import find
from robust_rlhf_jax.audit.page import figures, render_audit
from robust_rlhf_jax.audit.page.effects import effects
from robust_rlhf_jax.audit.page.flagged import pack_flagged
from robust_rlhf_jax.audit.page.word_differences import word_differences
from robust_rlhf_jax.audit.page_decisions import read_decisions
from robust_rlhf_jax.audit.record import audit_record

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
EVIL = "<img src=x onerror=alert(1)>\x1b[2J\u202e"


def page_of(folder, fault="label", damage=None, share=0.05):
    path, faulty, _ = faulty_file(folder, fault, share)
    pairs = read(path, few_buckets())
    if damage:
        pairs.texts.chosen[int(np.flatnonzero(faulty)[0])] += damage
    fit = made_up_fit(pairs, np.flatnonzero(faulty))
    found = find(pairs, fit)
    audited = AuditedFile(str(path), pairs, fit.audit, AuditConfig(repeats=1), 1.0, found)
    return render_audit(audited, audit_record(audited), title=f"pairs{damage or ''}"), found


@pytest.fixture(scope="module")
def plain_page(tmp_path_factory):
    """(page, findings) of flipped labels."""
    return page_of(tmp_path_factory.mktemp("page"))


@pytest.fixture(scope="module")
def harmful_page(tmp_path_factory):
    """(page, findings) of flipped labels, one of the texts made to do harm."""
    return page_of(tmp_path_factory.mktemp("page"), damage=EVIL)


def test_the_page_shows_the_worst_pairs_with_their_texts(plain_page):
    page, found = plain_page
    worst = found.worst()[0]
    assert f"Row {worst + 1}<" in page
    at = unpacked(page)["pairs"][0]["at"]
    assert at.startswith(f"line {worst + 1}, id ")
    assert f'<span class="soft">{at}</span>' in page
    assert found.batch.pairs.texts.chosen[worst] in re.sub("</?mark>", "", page)
    for heading in ("Summary", "Flagged pairs", "Calibration", "Features", "What would change"):
        assert f">{heading}</h2>" in page


def test_texts_do_no_harm(harmful_page):
    page, _ = harmful_page
    assert "<img" not in page
    assert "&lt;img src=x" in page
    assert not set("\x1b\u202e") & set(page)


def test_texts_are_read_in_their_own_direction(tmp_path):
    """Hebrew and Arabic from the right, also where the script shows them."""
    page, _ = page_of(tmp_path, damage=" שלום")
    texts = re.findall('<div class="text[^>]*>', page)
    assert texts
    assert all('dir="auto"' in text for text in texts)
    assert 'startsWith("text")) node.dir = "auto"' in page


def test_texts_keep_what_people_write(tmp_path):
    """Persian has joiners within its words, French spaces that do not break, code tabs, families of emoji joiners."""
    written = "\tif x:\r\n\t\tpass\u3000می\u200cخواهم\xa0! 👩\u200d👧"
    page, _ = page_of(tmp_path, damage=written)
    assert written.replace("\r", "") in unpacked(page)["pairs"][0]["chosen"]


def test_the_page_needs_nothing_from_elsewhere(plain_page):
    page, _ = plain_page
    assert not re.search(r"(src|href)=[\"']?(https?:|//)", page)
    assert "default-src 'none'" in page


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fault", "share", "said"),
    [
        ("label", 0.2, "60 flagged pairs are shown; suspects.csv has all."),
        (
            "tie",
            0.2,
            "60 flagged pairs are shown; suspects.csv has all but the 60 pairs that no fit uses, such as ties.",
        ),
    ],
)
def test_the_page_says_which_flagged_pairs_suspects_csv_has(tmp_path, fault, share, said):
    assert said in page_of(tmp_path, fault, share=share)[0]


@pytest.mark.parametrize("place", ["body", ".scroll th:first-child", ".pair header > *"])
def test_long_names_of_raters_issues_and_features_are_broken(plain_page, place):
    """An address of 90 characters in the first column, which stays in view, hid the others on a phone."""
    rules = re.findall(rf"(?m)^{re.escape(place)} {{([^}}]*)}}", plain_page[0])
    assert any("overflow-wrap: " in rule for rule in rules)


def unpacked(page):
    packed = re.search(r'id="flagged">([^<]*)<', page).group(1)
    return json.loads(zlib.decompress(base64.b64decode(packed)))


def test_the_policy_names_the_one_script(harmful_page):
    page, _ = harmful_page
    script = re.search(r"<script>(.*)</script>", page, re.DOTALL).group(1)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in page
    assert "innerHTML" not in script


def test_all_flagged_pairs_are_there(harmful_page):
    page, found = harmful_page
    content = unpacked(page)
    assert content["total"] == found.pairs.n_pairs
    assert [p["pair"] - 1 for p in content["pairs"]] == found.worst().tolist()
    assert not set("\x1b\u202e") & set(json.dumps(content, ensure_ascii=False))


@pytest.mark.slow
@pytest.mark.parametrize("most", [100_000, 3_000, 300])
def test_flagged_pairs_take_no_more_room_than_given(plain_page, most):
    _, found = plain_page
    packed = pack_flagged(found, None, most)
    assert len(packed.text) <= most
    assert packed.count == len(json.loads(zlib.decompress(base64.b64decode(packed.text)))["pairs"])
    assert (packed.count == len(found.worst())) == (most > 300)


def test_differences_put_together_are_the_texts():
    rng = np.random.default_rng(0)
    for _ in range(50):
        texts = [" ".join(rng.choice(["a", "b", "c\n", " d"], rng.integers(0, 12))) for _ in range(2)]
        for runs, text in zip(word_differences(*texts), texts, strict=True):
            assert "".join(part for part, _ in runs) == text
        alike = ["".join(w for w, d in runs if not d).split() for runs in word_differences(*texts)]
        assert alike[0] == alike[1]


def in_browser(path, script=""):
    """The page after its script ran, and after `script`, which its policy would not let run."""
    page = path.read_text()
    if script:
        free = re.sub(r"<meta http-equiv[^>]*>", "", page)
        path.write_text(free.replace("</body>", f"<script>{script}</script></body>"))
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=5000", "--dump-dom",
         str(path)],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    return done.stdout


CHOOSE_AND_SAVE = """
URL.createObjectURL = (blob) => { blob.text().then((t) => { document.body.dataset.saved = t; }); return "#"; };
const wait = setInterval(() => {
  if (!document.body.dataset.ready) return;
  clearInterval(wait);
  document.querySelector("#cards input[value=drop]").click();
  document.getElementById("save-csv").click();
}, 10);
"""


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
def test_decisions_made_on_the_page_are_read_back(tmp_path):
    page, found = page_of(tmp_path)
    path = tmp_path / "page.html"
    path.write_text(page)
    assert f'data-ready="{len(found.worst())}"' in in_browser(path)
    saved = re.search(r'data-saved="([^"]*)"', in_browser(path, CHOOSE_AND_SAVE))
    (tmp_path / "decisions.csv").write_text(saved.group(1))
    keep = read_decisions(tmp_path / "decisions.csv", found.pairs).keep
    assert np.flatnonzero(~keep).tolist() == [found.worst()[0]]


def test_advice_stands_first(tmp_path):
    path, _, _ = faulty_file(tmp_path, "label", 0.05)
    pairs = read(path, few_buckets())
    fit = made_up_fit(pairs)
    found = find(pairs, fit)
    advice = advise(found)
    audited = AuditedFile(str(path), pairs, fit.audit, AuditConfig(repeats=1), 1.0, found, advice)
    record = audit_record(audited)
    page = render_audit(audited, record, "pairs")
    assert record["advice"]["action"] == "leave"
    assert page.index(">Advice</h2>") < page.index(">Summary</h2>")
    assert "Leave the file as it is" in page
    assert not re.search(r"topic\d", page)


def test_reliability_of_a_calibrated_model_lies_on_the_diagonal():
    rng = np.random.default_rng(0)
    score = np.abs(3 * rng.normal(size=50_000))
    margins = np.where(rng.uniform(size=50_000) < 1 / (1 + np.exp(-score)), score, -score)
    for x, y, low, high, _ in figures.reliability(margins).points:
        share = 0.5 + 0.5 * (x - figures.LEFT) / (figures.WIDTH - figures.LEFT - figures.RIGHT)
        expected = figures.TOP + (1 - share) * (figures.HEIGHT - figures.TOP - figures.BOTTOM)
        assert y == pytest.approx(expected, abs=3)
        assert high <= y <= low
    assert sum(int(bar.text.split()[0].replace(",", "")) for bar in figures.margin_bars(margins)) == 50_000


def test_intervals_of_effects_cover(tmp_path):
    statsmodels = pytest.importorskip("sklearn.linear_model")
    rng = np.random.default_rng(0)
    theta, covered = np.array([1.0, -0.5]), []
    for _ in range(60):
        x = rng.normal(size=(800, 2))
        x = x * np.where(rng.uniform(size=800) < 1 / (1 + np.exp(-x @ theta)), 1, -1)[:, None]
        turn = np.where(np.arange(800) % 2, 1, -1)
        fit = statsmodels.LogisticRegression(C=np.inf, fit_intercept=False).fit(x * turn[:, None], turn)
        spread = x.std(axis=0)
        found = {e.name: e for e in effects(fit.coef_[0], x, np.ones(800, bool), ("0", "1"))}
        covered += [found[str(j)].low <= theta[j] * spread[j] <= found[str(j)].high for j in range(2)]
    assert 0.88 <= np.mean(covered) <= 1.0


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")
@pytest.mark.parametrize("width", [360, 1200])
def test_nothing_is_wider_than_the_window(tmp_path, width):
    page, _ = page_of(tmp_path)
    told = '<script>document.title = document.documentElement.scrollWidth + " " + innerWidth</script>'
    free = re.sub(r"<meta http-equiv[^>]*>", "", page).replace("</body>", told + "</body>")
    path = tmp_path / "page.html"
    path.write_text(f'<iframe src="inner.html" style="width:{width}px;height:600px;border:0"></iframe>')
    (tmp_path / "inner.html").write_text(free.replace("document.title =", "document.body.dataset.width ="))
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={max(width, 500)},900", "--dump-dom",
         str(tmp_path / "inner.html")],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    wide, window = map(int, re.search(r'data-width="(\d+) (\d+)"', done.stdout).groups())
    assert wide <= window
