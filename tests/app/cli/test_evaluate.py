import json
from pathlib import Path

import pandas as pd
import pytest
from typer.testing import CliRunner

from deeptobit.app.cli.app import app
from tests.app.study.messy import write_messy_csv

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


def test_a_study_is_needed() -> None:
    assert _run("evaluate")[0] == 2


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
