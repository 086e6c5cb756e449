"""The patient page in a real browser, against what the model predicts."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import Browser, Page

from deeptobit import (
    AutoTobitRegressor,
    MixedTobitRegressor,
    SubspaceNetworkRegressor,
    SubspaceTobitRegressor,
    TobitRegressor,
    datasets,
)
from deeptobit.app.report import render_patient_page
from deeptobit.app.study import FittedStudy, Table, predict_table
from deeptobit.likelihood import (
    Gaussian,
    Logistic,
    Noise,
    NoiseByTask,
    ScoreGrid,
    Spread,
    StudentT,
    TwoPiece,
)
from tests.app.report.browsing import count_pages, find_faults, open_page
from tests.app.report.studies import HOSTILE, HOSTILE_TARGET, SECRET, cohort_study, fit_text

PREDICT = """(rows) => rows.map((x) => patient.predict(x).map(
  ({mean, atLower, atUpper, intervals}) => [mean, atLower, atUpper, ...intervals.flat()]))"""
PREDICT_WITH = """([x, past]) => patient.predict(x, past).map(
  ({mean, atLower, atUpper, intervals}) => [mean, atLower, atUpper, ...intervals.flat()])"""
N_TASKS = 8


def _problem(seed: int = 0) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    X, Y, _ = datasets.make_subspace(120, 6, N_TASKS, 2, sigma=2.0, upper=9.0, random_state=seed)
    return X, Y


def _latent() -> np.ndarray[Any, Any]:
    """Outcomes without bounds."""
    X, Y = _problem()
    return np.asarray(Y + np.random.default_rng(0).normal(size=Y.shape) + X[:, :1])


def _with_noise(model: Any, *, step: float = 1.0) -> Any:
    """The same model with every family, spreads that grow, and whole scores for half the tasks."""
    t, heavy = StudentT(4.0), StudentT(2.5)
    families: list[Noise] = [Gaussian(), Logistic(), t, heavy]
    families += [TwoPiece(base, s) for base, s in ((Gaussian(), 0.7), (t, -1.05))]
    families += [TwoPiece(Logistic(), 0.35), TwoPiece(heavy, -0.35)]
    growth = np.linspace(-0.4, 0.6, N_TASKS)
    spread = Spread(growth, np.full(N_TASKS, 4.0), np.full(N_TASKS, 3.0))
    grid = ScoreGrid(np.where(np.arange(N_TASKS) % 2, step, 0.0), np.zeros(N_TASKS))
    model._chosen_noise = NoiseByTask(families, spread, grid)
    return model


def _tobit(noise: str, **options: Any) -> TobitRegressor:
    return TobitRegressor(noise=noise, upper=9.0, **options).fit(*_problem())


def _calibrated() -> TobitRegressor:
    return _tobit("gaussian").calibrate_intervals(*_problem(1))


def _auto(members: str) -> Any:
    X, Y = _problem()
    model = AutoTobitRegressor(members=[members], cv=2, upper=9.0, random_state=0)
    return model.fit(X, np.round(Y))


def _network(**options: Any) -> SubspaceNetworkRegressor:
    settings = {"rank": 2, "n_layers": 3, "prune_layers": False, "upper": 9.0} | options
    return SubspaceNetworkRegressor(**settings, random_state=0).fit(*_problem())


QUICK: dict[str, Callable[[], Any]] = {
    "tobit": lambda: _tobit("gaussian"),
    "student": lambda: _tobit("student_t"),
    "calibrated": _calibrated,
    "every noise": lambda: _with_noise(SubspaceTobitRegressor(2, upper=9.0).fit(*_problem())),
    "network": _network,
    "trees": lambda: _auto("trees"),
}
SLOW: dict[str, Callable[[], Any]] = QUICK | {
    "logistic": lambda: _tobit("logistic"),
    "subspace": lambda: SubspaceTobitRegressor(2, upper=9.0).fit(*_problem()),
    "without skip": lambda: _network(skip_connection=False),
    "coarse scores": lambda: _with_noise(_network(n_layers=2), step=4.5),
    "open": lambda: SubspaceTobitRegressor(2, lower=None).fit(_problem()[0], _latent()),
    "stack": lambda: _auto("stack"),
    "deeper": lambda: _auto("deeper"),
}


def _expected(model: Any, X: Any) -> np.ndarray[Any, Any]:
    """Mean, probabilities of the bounds, and both intervals, (N, T, 7)."""
    parts = [model.predict(X), *model.predict_bound_proba(X)]
    parts += [end for coverage in (0.5, 0.9) for end in model.predict_interval(X, coverage)]
    return np.stack([part.reshape(len(X), -1) for part in parts], axis=-1)


def _open(browser: Browser, folder: Path, page: str) -> Page:
    path = folder / "patient.html"
    path.write_text(page, encoding="utf-8")
    opened = open_page(browser, path.as_uri())
    assert opened.complaints == []
    assert opened.refused == []
    return opened.page


def _compare(browser: Browser, folder: Path, model: Any, n_patients: int) -> None:
    page = _open(browser, folder, render_patient_page(model))
    X = np.random.default_rng(7).normal(scale=1.5, size=(n_patients, model.n_features_in_))
    X[0] *= 30.0  # far outside
    found = np.array(page.evaluate(PREDICT, X.tolist()), dtype=np.float64)
    np.testing.assert_allclose(found, _expected(model, X), rtol=1e-9, atol=1e-9)
    page.context.close()


@pytest.mark.parametrize("kind", QUICK)
def test_the_page_predicts_what_the_model_does(browser: Browser, tmp_path: Path, kind: str) -> None:
    _compare(browser, tmp_path, QUICK[kind](), 20)


def _visits() -> tuple[pd.DataFrame, Any]:
    """Fifty people with four visits each, scores y0 to y2, and three visits of a new person."""
    rng = np.random.default_rng(0)
    person, time = np.repeat(np.arange(50), 4), np.tile([0.0, 6.0, 12.0, 24.0], 50)
    x = rng.normal(size=50)[person]
    slope = 0.1 * rng.normal(size=(50, 3))[person] * time[:, None]
    kept = rng.normal(size=(50, 1))[person] + 2.0 * rng.normal(size=(50, 3))[person]
    Y = 7.0 + kept + slope + x[:, None] + rng.normal(size=(200, 1)) + rng.normal(size=(200, 3))
    table = pd.DataFrame(np.clip(Y, 0.0, 10.0), columns=["y0", "y1", "y2"])
    new = pd.DataFrame({"months": [1.0, 7.0, 13.0], "x": 0.4, "person": "a"})
    scores = np.array([[10.0, 0.0, 4.0], [9.0, np.nan, 10.0], [8.5, 1.0, 0.0]])
    return table.assign(months=time, x=x, person=person), (new, scores)


SIMPLE: dict[str, Any] = {"alpha": 0.01, "shrinkage": 1.0}
SLOPES = SIMPLE | {"random_effects": "slope", "person_rank": 1, "visit_rank": 1}
INTERCEPTS = SIMPLE | {"random_effects": "intercept", "person_rank": 0, "visit_rank": 2}


def _forecast_of(known: Any, X: Any, **who: Any) -> np.ndarray[Any, Any]:
    parts = [known.predict(X, **who), *known.predict_bound_proba(X, **who)]
    parts += [end for coverage in (0.5, 0.9) for end in known.predict_interval(X, coverage, **who)]
    return np.asarray(np.stack(parts, axis=-1)[0])


@pytest.mark.parametrize("options", [SLOPES, INTERCEPTS], ids=["slopes", "intercepts"])
def test_the_page_knows_past_visits(
    browser: Browser, tmp_path: Path, options: dict[str, Any]
) -> None:
    """No name says which feature is time: it has a field of its own where there are slopes."""
    table, (new, scores) = _visits()
    model = MixedTobitRegressor(upper=10.0, **options)
    who = {"groups": table["person"], "time": table["months"]}
    model.fit(table[["x", "months"]].to_numpy(), table[["y0", "y1", "y2"]].to_numpy(), **who)
    X, ask = np.array([[0.4, 40.0]]), {"groups": ["a"], "time": [40.0]}
    same = np.repeat(X, 3, axis=0)
    known = model.condition(same, scores, groups=new["person"], time=new["months"])
    past = [
        {"time": time, "values": [None if np.isnan(y) else y for y in row]}
        for time, row in zip(new["months"], scores.tolist(), strict=True)
    ]
    page = _open(browser, tmp_path, render_patient_page(model))
    found = page.evaluate(PREDICT_WITH, [[0.4, 40.0, 40.0], past])
    np.testing.assert_allclose(found, _forecast_of(known, X, **ask), atol=1e-8)
    page.context.close()


@cache
def _with_a_formula() -> MixedTobitRegressor:
    formula = "y0 + y1 + y2 ~ x + months + (1 + months | person)"
    settings: dict[str, Any] = {"person_rank": 1, "visit_rank": 0, "shrinkage": 1.0, "alpha": 0.01}
    return MixedTobitRegressor.from_formula(formula, _visits()[0], upper=10.0, **settings)


def test_past_visits_are_typed_and_the_forecast_is_a_fan(browser: Browser, tmp_path: Path) -> None:
    """A formula names the columns: time is a feature, at past visits too."""
    (new, scores), model = _visits()[1], _with_a_formula()
    page = _open(browser, tmp_path, render_patient_page(model))
    page.get_by_label("months of the forecast", exact=True).fill("40")
    page.get_by_label("x", exact=True).fill("0.4")
    for visit, (time, row) in enumerate(zip(new["months"], scores, strict=True), start=1):
        page.get_by_label(f"months, visit {visit}").fill(f"{time:g}")
        for name, y in zip(("y0", "y1", "y2"), row, strict=True):
            page.get_by_label(f"{name}, visit {visit}").fill("" if np.isnan(y) else f"{y:g}")
    known = model.condition(new, scores)
    at = new.iloc[:1].assign(months=40.0)
    shown = page.locator(".score .value b").all_inner_texts()
    expected = _forecast_of(known, at)[:, 0]
    assert [float(text) for text in shown] == pytest.approx(expected, abs=0.06)
    assert page.locator(".score path.fan").count() == 3 * 2
    assert page.locator(".score circle.visit").count() == int((~np.isnan(scores)).sum())
    assert find_faults(page) == []
    page.get_by_role("button", name="Add a visit").click()
    page.get_by_label("y0, visit 4").fill("5")
    assert page.get_by_label("months, visit 4").get_attribute("aria-invalid") == "true"
    page.context.close()


@pytest.mark.slow
@pytest.mark.parametrize("kind", SLOW)
def test_the_page_predicts_what_the_model_does_for_many(
    browser: Browser, tmp_path: Path, kind: str
) -> None:
    _compare(browser, tmp_path, SLOW[kind](), 200)


# The page of a study: fields, blanks, categories, alarms.


def _clinic() -> FittedStudy:
    """Ages with gaps, a category, and an outcome in whole points."""
    rng = np.random.default_rng(0)
    age, sex = rng.normal(70.0, 8.0, size=120), np.where(rng.random(120) < 0.4, "m", "f")
    volume = 3.0 - 0.05 * (age - 70.0) + 0.1 * rng.normal(size=120)
    score = 25.0 - 0.4 * (age - 70.0) + 2.0 * (sex == "m") + 2.0 * rng.normal(size=120)
    table = pd.DataFrame({"age": age.round(1), "sex": sex, "volume": volume.round(3)})
    table.loc[::9, "age"] = np.nan
    table["MMSE"] = np.clip(score.round(), 0, 30).astype(int)
    model = "[model]\nmembers = ['stack']\ncv = 2\n[targets.MMSE]\nlower = 0\nupper = 30\n"
    return fit_text(table.to_csv(index=False), model)


@pytest.fixture(scope="module")
def clinic() -> FittedStudy:
    return _clinic()


@pytest.fixture
def page(browser: Browser, tmp_path: Path, clinic: FittedStudy) -> Any:
    opened = _open(browser, tmp_path, render_patient_page(clinic, fingerprint="0123abcd"))
    yield opened
    opened.context.close()


def _shown(page: Page) -> list[float]:
    """The first row of the result that is copied: expected value, intervals, bounds."""
    row = str(page.evaluate("patient.asText()")).splitlines()[1]
    return [float(cell) for cell in row.split("\t")[1:]]


def _predicted(clinic: FittedStudy, **cells: str | None) -> list[float]:
    """The same by ``deeptobit predict``."""
    table = Table(
        pd.DataFrame({name: [cell] for name, cell in cells.items()}), "a.csv", np.zeros(1, int)
    )
    row: list[float] = []
    for coverage in (0.5, 0.9):
        found = predict_table(clinic, table, coverage=coverage).iloc[0]
        row += [found["MMSE low"], found["MMSE high"]]
    return [found["MMSE"], *row, found["MMSE P(lower)"], found["MMSE P(upper)"]]


def test_typed_values_give_what_predict_does(page: Page, clinic: FittedStudy) -> None:
    page.get_by_label("age", exact=True).fill("81.5")
    page.get_by_label("volume", exact=True).fill("2,25")
    page.get_by_label("sex", exact=True).select_option("m")
    expected = _predicted(clinic, age="81.5", sex="m", volume="2.25")
    np.testing.assert_allclose(_shown(page), expected, rtol=1e-5, atol=1e-7)
    assert page.locator(".score b").inner_text() == f"{expected[0]:.1f}"
    assert page.locator(".score .change").inner_text().startswith(("▲", "▼"))


@pytest.mark.filterwarnings("ignore:.*missing cell")
def test_a_blank_is_the_mean_and_its_mark(page: Page, clinic: FittedStudy) -> None:
    page.get_by_label("age", exact=True).fill("")
    page.get_by_label("volume", exact=True).fill("2.5")
    page.get_by_label("sex", exact=True).select_option("unknown")
    expected = _predicted(clinic, age=None, sex=None, volume="2.5")
    np.testing.assert_allclose(_shown(page), expected, rtol=1e-5, atol=1e-7)


def test_a_row_is_pasted_with_and_without_names(page: Page, clinic: FittedStudy) -> None:
    expected = _predicted(clinic, age="66", sex="m", volume="3.1")
    page.locator("#paste summary").click()
    for text in ("volume\tid\tsex\tage\n3,1\tP7\tm\t66", "66;m;3,1"):
        page.get_by_role("button", name="Typical person").click()
        page.locator("#row").fill(text)
        page.get_by_role("button", name="Take these values").click()
        np.testing.assert_allclose(_shown(page), expected, rtol=1e-5, atol=1e-7)
    page.locator("#row").fill("66;m")
    page.get_by_role("button", name="Take these values").click()
    assert "2 cells, but 3 are expected" in page.locator("#status").inner_text()


def test_it_says_when_a_person_is_outside_the_data(page: Page) -> None:
    alarm, age = page.locator("#alarm"), page.get_by_label("age", exact=True)
    assert not alarm.is_visible()
    age.fill("130")
    assert "learned from: age" in alarm.inner_text()
    age.fill("88")  # one may be old, or have a large volume, but not both
    page.get_by_label("volume", exact=True).fill("3.9")
    assert "not together" in alarm.inner_text()
    age.fill("old")
    assert "Not a number: age" in alarm.inner_text()
    assert age.get_attribute("aria-invalid") == "true"
    page.get_by_role("button", name="Typical person").click()
    assert not alarm.is_visible()


def test_it_tells_what_moved_a_prediction_and_from_where(page: Page) -> None:
    typical = float(page.locator(".score b").inner_text())
    page.get_by_label("age, slider").focus()
    page.keyboard.press("End")
    page.locator(".score summary").click()
    name, points = page.locator(".moved tbody tr").first.locator("th, td").all_inner_texts()
    moved = float(page.locator(".score b").inner_text()) - typical
    assert name.startswith("age: ")
    assert float(points.replace("−", "-")) == pytest.approx(moved, abs=0.11)
    assert page.locator(".arrow").count() == 1
    page.get_by_role("button", name="Compare with the present values").click()
    assert page.locator(".arrow").count() == 0


def test_it_names_its_model_and_holds_no_rows(clinic: FittedStudy, page: Page) -> None:
    footer = page.locator("footer").inner_text()
    assert "0123abcd" in footer
    assert clinic.facts["date"] in footer
    text = render_patient_page(cohort_study())
    assert SECRET not in text


def test_nothing_overflows_and_nobody_is_shut_out(browser: Browser, tmp_path: Path) -> None:
    page = _open(browser, tmp_path, render_patient_page(cohort_study()))
    page.evaluate("document.querySelectorAll('details').forEach((folded) => folded.open = true)")
    page.locator("#field-0").fill("1e6")
    assert find_faults(page) == []
    assert page.get_by_role("heading", name=HOSTILE_TARGET).count() == 1
    assert page.get_by_label(HOSTILE, exact=True).count() == 1
    assert count_pages(page) == 1
    page.context.close()


def test_a_model_without_a_study_asks_for_every_value(browser: Browser, tmp_path: Path) -> None:
    model = _tobit("gaussian")
    page = _open(browser, tmp_path, render_patient_page(model))
    assert "Fill in x" in page.locator("#alarm").inner_text()
    assert not page.locator("#cards").is_visible()
    page.evaluate("document.querySelectorAll('.field input').forEach((field) => field.value = '1')")
    page.locator("#field-0").fill("1")
    assert page.locator(".score").count() == N_TASKS
    assert page.locator("#cards").is_visible()
    page.context.close()


def test_a_page_of_many_features_and_scores_is_small() -> None:
    X, Y, _ = datasets.make_subspace(200, 138, 30, 3, random_state=0)
    model = SubspaceTobitRegressor(3).fit(X, Y)
    assert len(render_patient_page(model).encode()) < 150_000  # without ranges


def test_a_noise_that_the_page_does_not_know_is_refused() -> None:
    class Own(Gaussian):
        """The same under another name."""

    model = _tobit("gaussian")
    model._chosen_noise = Own()
    with pytest.raises(ValueError, match=r"the patient page cannot compute .* noise"):
        render_patient_page(model)


def test_parts_that_the_page_does_not_know_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    model = _tobit("gaussian")
    latent = type(model)._latent
    monkeypatch.setattr(type(model), "_latent", lambda self, X: latent(self, X) + 1.0)
    with pytest.raises(ValueError, match="cannot compute"):
        render_patient_page(model)
