"""The page: self-contained, harmless, readable in every light and on a phone."""

import re
import shutil
import subprocess

import numpy as np
import pytest
from text_pairs import faulty_file, made_up_fit, read

pytest.importorskip("jinja2")
from robust_rlhf_jax.audit.config import AuditConfig
from robust_rlhf_jax.audit.findings import find
from robust_rlhf_jax.audit.page import figures, render_audit
from robust_rlhf_jax.audit.page.effects import effects
from robust_rlhf_jax.audit.record import audit_record

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
EVIL = "<img src=x onerror=alert(1)>\x1b[2J\u202e"


def page_of(folder, fault="label", damage=None):
    path, faulty, _ = faulty_file(folder, fault, 0.05)
    pairs = read(path)
    if damage:
        pairs.texts.chosen[int(np.flatnonzero(faulty)[0])] += damage
    fit = made_up_fit(pairs, np.flatnonzero(faulty))
    found = find(pairs, fit)
    record = audit_record(str(path), pairs, fit.audit, found, AuditConfig(repeats=1), 1.0)
    return render_audit(pairs, fit.audit, found, record, title=f"pairs{damage or ''}"), found


def test_the_page_shows_the_worst_pairs_with_their_texts(tmp_path):
    page, found = page_of(tmp_path)
    worst = found.worst()[0]
    assert f"Row {worst + 1}<" in page
    assert found.batch.pairs.texts.chosen[worst] in page
    for heading in ("Summary", "Worst pairs", "Raters", "Calibration", "Features", "What would change"):
        assert f">{heading}</h2>" in page


def test_texts_do_no_harm(tmp_path):
    page, _ = page_of(tmp_path, damage=EVIL)
    assert "<img" not in page
    assert "&lt;img src=x" in page
    assert not set("\x1b\u202e") & set(page)


def test_the_page_needs_nothing_from_elsewhere(tmp_path):
    page, _ = page_of(tmp_path)
    assert not re.search(r"(src|href)=[\"']?(https?:|//)", page)
    assert "default-src 'none'" in page


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
