from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from deeptobit.app.study import StudyError, fit_study
from deeptobit.targets import CensoredTargets
from tests.app.study.cohorts import read_cohort, write_cohort
from tests.app.study.problems import write_study


def _with_outcomes(targets: CensoredTargets, speed: np.ndarray) -> CensoredTargets:
    """The same targets with other values of the last one, which has no bounds."""
    low, high = targets.low.copy(), targets.high.copy()
    low[:, 2] = high[:, 2] = speed
    return replace(targets, low=low, high=high)


def test_a_rows_own_outcome_does_not_touch_its_prediction(tmp_path: Path) -> None:
    study, data = read_cohort(write_cohort(tmp_path, n_people=20))
    # Which family the noise is of, all rows decide together.
    settings: Any = study.model
    study = replace(study, model=replace(settings, noise="gaussian"))
    before = fit_study(study, data).held_out
    speed = data.targets.low[:, 2].copy()
    changed = [6, 7]  # the visits of one person
    speed[changed] += 30.0
    after = fit_study(study, replace(data, targets=_with_outcomes(data.targets, speed))).held_out
    np.testing.assert_array_equal(
        before.predictive.latent[changed], after.predictive.latent[changed]
    )
    np.testing.assert_array_equal(before.null.sigma[changed], after.null.sigma[changed])
    assert (before.predictive.latent != after.predictive.latent).any(axis=1).mean() > 0.6


def test_visits_of_a_person_share_a_fold(tmp_path: Path) -> None:
    fitted = fit_study(*read_cohort(write_cohort(tmp_path, kind="tobit")))
    fold_of = fitted.held_out.null.sigma[:, 2]
    np.testing.assert_array_equal(fold_of[::2], fold_of[1::2])
    assert len(set(fold_of.tolist())) == 3
    assert (fitted.n_rows, fitted.n_groups, fitted.facts["folds"]) == (80, 40, "3")


def test_the_null_model_is_the_mean_of_the_rows_outside_the_fold(tmp_path: Path) -> None:
    study, data = read_cohort(write_cohort(tmp_path, grouped=False, cv=2, kind="tobit"))
    null = fit_study(study, data).held_out.null
    speed = data.targets.values[:, 2]
    for sigma in np.unique(null.sigma[:, 2]):
        held_out = null.sigma[:, 2] == sigma
        np.testing.assert_allclose(null.latent[held_out, 2], speed[~held_out].mean(), rtol=1e-7)
        np.testing.assert_allclose(sigma, speed[~held_out].std(), rtol=1e-7)


def test_what_is_held_out(tmp_path: Path) -> None:
    study, data = read_cohort(write_cohort(tmp_path, n_people=25, max_layers=2, cv=2))
    steps: list[tuple[int, int]] = []
    fitted = fit_study(study, data, progress=lambda done, total: steps.append((done, total)))
    held_out = fitted.held_out
    assert steps == [(0, 3), (1, 3), (2, 3), (3, 3)]
    np.testing.assert_array_equal(held_out.stages[-1], held_out.predictive.mean())
    np.testing.assert_array_equal(held_out.targets.low, data.targets.low)
    np.testing.assert_array_equal(held_out.predictive.lower, data.targets.entry_lower)
    assert (held_out.predictive.mean() >= held_out.predictive.lower).all()
    table = held_out.table()
    assert (table["r2"] > 0.4).all()
    assert (table["null_r2"] < 0.05).all()
    assert (table["crps"] < 0.8 * table["null_crps"]).all()
    assert fitted.model.n_features_in_ == data.X.shape[1]
    assert fitted.study.targets == study.targets


@pytest.mark.slow
def test_processes_do_not_change_the_result(tmp_path: Path) -> None:
    study, data = read_cohort(write_cohort(tmp_path, n_people=15, cv=2))
    alone, together = (fit_study(study, data, n_jobs=jobs) for jobs in (1, 2))
    np.testing.assert_array_equal(
        alone.held_out.predictive.latent, together.held_out.predictive.latent
    )
    np.testing.assert_array_equal(alone.model.coef_, together.model.coef_)


def test_a_tiny_table_is_enough(tmp_path: Path) -> None:
    study, data = read_cohort(write_cohort(tmp_path, n_people=5, cv=2))  # 10 rows
    fitted = fit_study(study, data)
    assert np.isfinite(fitted.held_out.table()[["r2", "crps", "null_crps"]]).all(axis=None)


def test_rows_without_outcomes_are_left_out(tmp_path: Path) -> None:
    rows = [f"{i},{i % 7 if i % 2 else ''}" for i in range(40)]
    targets = "[targets.y]\n[model]\nmembers = ['stack']\ncv = 2\n"
    path = write_study(tmp_path, targets, "\n".join(["x,y", *rows]), data="")
    fitted = fit_study(*read_cohort(path))
    assert fitted.n_rows == 20
    assert not fitted.held_out.targets.missing.any()
    assert any("20 rows have no outcome" in finding.message for finding in fitted.findings)


def test_fewer_groups_than_folds(tmp_path: Path) -> None:
    rows = [f"{i % 3},{i},{i % 7}" for i in range(12)]
    targets = "[targets.y]\n[model]\nmembers = ['stack']\n"
    path = write_study(tmp_path, targets, "g,x,y\n" + "\n".join(rows), data='group = "g"')
    study, data = read_cohort(path)
    assert fit_study(study, data).facts["folds"] == "3"


@pytest.mark.parametrize(
    ("rows", "data", "sentence"),
    [
        ([f"1,{i},{i}" for i in range(9)], "", "a.csv has 9 rows; .* at least 10 are needed"),
        (
            [f"1,{i},{i if i < 4 else ''}" for i in range(20)],
            "",
            "line 4: target 'y' has values in 4 rows and needs at least 10",
        ),
        (
            [f"{i % 2},{i},{i}" for i in range(20)],
            'group = "g"',
            r"line 3: target 'y' has values in 2 group\(s\) of 'g', .* needs at least 3",
        ),
        (
            [f"{i // 10},{i},{i if i < 30 else ''}" for i in range(100)],
            'group = "g"',
            "a.csv: the model cannot be fitted: target 'y' has no entry in the training rows",
        ),
    ],
)
def test_too_little_to_learn_from(
    rows: list[str], data: str, sentence: str, tmp_path: Path
) -> None:
    table = "\n".join(["g,x,y,z", *(f"{row},{number % 7}" for number, row in enumerate(rows))])
    targets = "[targets.y]\n[targets.z]\n[model]\nmembers = ['stack']\ncv = 2\n"
    path = write_study(tmp_path, targets, table, data=data)
    with pytest.raises(StudyError, match=sentence):
        fit_study(*read_cohort(path))


def test_what_the_fit_warns_of_is_a_finding(tmp_path: Path) -> None:
    rows = [f"{i},{i % 7},30" for i in range(30)]
    targets = "[targets.MMSE]\nupper = 30\n[targets.y]\n[model]\nmembers = ['stack']\ncv = 2\n"
    path = write_study(tmp_path, targets, "\n".join(["x,y,MMSE", *rows]), data="")
    fitted = fit_study(*read_cohort(path))
    [warned] = [finding for finding in fitted.findings if finding.about == "model"]
    assert "'MMSE': every entry is censored on the same side" in warned.message
    table: Any = fitted.held_out.table()
    assert np.isnan(table.loc["MMSE", "r2"])
    assert table.loc["MMSE", "coverage"] == 1.0


def test_the_data_are_left_as_they_were(tmp_path: Path) -> None:
    study, data = read_cohort(write_cohort(tmp_path, n_people=10, cv=2, kind="tobit"))
    before = data.X.copy()
    fit_study(study, data)
    assert data.X.equals(before)
