"""ADNI's traps, one by one, on generated files; ``adni_folder`` lists who falls into which."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit import TobitRegressor
from deeptobit.datasets import Cohort, load_adni, make_clinical_cohort, packaged_table
from tests.datasets.adni_folder import REGIONS, write_folder, write_scans

pytestmark = pytest.mark.filterwarnings("ignore:1 of .* scans:UserWarning")
NAN = float("nan")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path)


@pytest.fixture(scope="module")
def cohort(tmp_path_factory: pytest.TempPathFactory) -> Cohort:
    folder = write_folder(tmp_path_factory.mktemp("adni"))
    return load_adni(folder, scores=folder / "scores.csv")


def test_people_have_a_complete_scan_at_baseline_and_a_score(cohort: Cohort) -> None:
    assert cohort.X.index.tolist() == [2, 3]
    assert cohort.X.index.equals(cohort.Y.index)
    assert cohort.X.index.name == "RID"


def test_features_are_named_as_in_the_simulated_cohort(cohort: Cohort) -> None:
    assert list(cohort.X) == list(make_clinical_cohort(2, random_state=0).X)


def test_screening_is_baseline_and_the_latest_run_counts(cohort: Cohort) -> None:
    assert np.array_equal(cohort.X, np.add.outer([200, 300], np.arange(138)))


def test_scores_are_joined_by_person_and_visit(cohort: Cohort) -> None:
    expected = pd.DataFrame(
        {
            "TOTAL11_bl": [10.33, NAN],  # baseline before screening; -1 is missing
            "Q4_m06": [NAN, NAN],  # -4 is missing where the scale has no lower bound, too
            "LIMMTOTAL_bl": [12, 9],  # done at screening; the later row of baseline lacks it
            "AVTOT1_bl": [6, 5],  # of two rows of baseline the one entered last
            "AVERR1_bl": [0, 1],  # which lacks this, so that the earlier one counts
            "RAVLT_learning_bl": [-1, NAN],  # a difference: -1 is a value
        },
        index=pd.Index([2, 3], name="RID"),
    )
    pd.testing.assert_frame_equal(cohort.Y, expected, check_dtype=False)


def test_an_empty_bound_is_open(cohort: Cohort) -> None:
    assert cohort.lower["RAVLT_learning_bl"] == -15
    assert cohort.lower["Q4_m06"] == -np.inf
    assert cohort.upper["AVERR1_bl"] == np.inf
    assert list(cohort.lower) == list(cohort.upper) == list(cohort.Y)


def test_an_incomplete_scan_is_left_out_with_a_warning(folder: Path) -> None:
    expected = "1 of 4 scans .* left out because they lack .*RID 4: lh_middletemporal_thickness"
    with pytest.warns(UserWarning, match=expected) as caught:
        load_adni(folder, scores=folder / "scores.csv")
    assert caught[0].filename == __file__


def test_another_visit_of_the_scan(folder: Path) -> None:
    cohort = load_adni(folder, scores=str(folder / "scores.csv"), visit="M06")
    assert cohort.X.iloc[:, 0].to_dict() == {2: 2000, 5: 500}
    # The visits of ADNI2 are in VISCODE2; -4 of a difference is a value.
    assert cohort.Y["AVTOT1_bl"].to_dict() == {2: 6, 5: 4}
    assert cohort.Y["RAVLT_learning_bl"].to_dict() == {2: -1, 5: -4}


def test_newer_tables_name_the_hemispheres_otherwise(folder: Path) -> None:
    (folder / "UCSFFSX_11_02_15_20Mar2024.csv").unlink()
    columns = REGIONS["newer_column"].fillna(REGIONS["column"]).to_list()
    write_scans(folder / "UCSFFSX51_11_08_19.csv", columns)
    newer = load_adni(folder, scores=folder / "scores.csv")
    assert newer.X.loc[2, "rh_WhiteSurfArea_area"] == 200 + 137


def test_newer_names_count_where_the_older_column_is_empty(folder: Path) -> None:
    path = folder / "UCSFFSX_11_02_15_20Mar2024.csv"
    scans = pd.read_csv(path, dtype=str)
    scans.assign(ST28SA=scans["ST27SA"], ST27SA="-4").to_csv(path, index=False)
    assert load_adni(folder, scores=folder / "scores.csv").X.loc[2].iloc[-2] == 200 + 136


def test_the_case_of_columns_does_not_matter(folder: Path, cohort: Cohort) -> None:
    path = folder / "UCSFFSX_11_02_15_20Mar2024.csv"
    pd.read_csv(path, dtype=str).rename(columns=str.lower).to_csv(path, index=False)
    assert load_adni(folder, scores=folder / "scores.csv").X.equals(cohort.X)


def test_the_first_version_of_freesurfer_is_read(folder: Path, cohort: Cohort) -> None:
    (folder / "UCSFFSX51_11_08_19.csv").write_text("not read\n")
    assert load_adni(folder, scores=folder / "scores.csv").X.equals(cohort.X)


def test_the_proposed_scores_make_a_cohort_that_a_model_fits(tmp_path: Path) -> None:
    people = make_clinical_cohort(60, random_state=0)
    scans = people.X.set_axis(REGIONS["column"], axis=1)
    scans.assign(VISCODE="sc").to_csv(tmp_path / "UCSFFSX_1.csv", index_label="RID")
    for table, scores in packaged_table("adni_scores").groupby("table"):
        clock = dict.fromkeys(scores["column"], people.Y["CLOCK_bl"].fillna(-4))
        visits = [pd.DataFrame({"VISCODE": visit, **clock}) for visit in ("bl", "m06")]
        pd.concat(visits).to_csv(tmp_path / f"{table}.csv", index_label="RID")
    cohort = load_adni(tmp_path)
    assert cohort.X.shape == (60 - people.Y["CLOCK_bl"].isna().sum(), 138)
    assert cohort.Y.shape[1] == 30
    assert cohort.Y.notna().all(axis=None)
    model = TobitRegressor(lower=cohort.lower, upper=cohort.upper, alpha=1.0)
    assert model.fit(cohort.X, cohort.Y).coef_.shape == (30, 138)
