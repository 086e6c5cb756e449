from pathlib import Path

import pytest

from deeptobit.app.study import StudyError, read_study
from deeptobit.app.study.config import AutoSettings
from tests.app.study.problems import TARGET, write_study


def test_defaults(tmp_path: Path) -> None:
    study = read_study(write_study(tmp_path))
    assert (study.data.file, study.data.id, study.data.group) == ("a.csv", "id", None)
    assert (study.features.include, study.features.missing) == (("*",), "impute")
    assert [(t.name, t.values, t.lower, t.upper) for t in study.targets] == [
        ("MMSE", "MMSE", 0, 30)
    ]
    assert study.model == AutoSettings(kind="auto", members=None, cv=5, noise="auto", seed=0)
    assert study.evaluation.train_shares == (0.4, 0.5, 0.6, 0.7, 0.8)
    assert study.data_path == (tmp_path / "a.csv").resolve()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "[targets.MMSE]\nuper = 30\n",
            r"line 5: \[targets.MMSE\] has no key 'uper' .*mean 'upper'",
        ),
        (TARGET + "[featurs]\n", r"line 7: unknown section 'featurs' .*did you mean 'features'"),
        (
            TARGET + '[features]\nmissing = "imput"\n',
            "line 8: .features. missing must be 'impute' or 'error'; got 'imput'; did you mean",
        ),
        (
            TARGET + "[model]\nkind = 'network'\n# deep\nmax_layers = 0\n",
            "line 10: .*a whole number from 1; got 0",
        ),
        (
            TARGET + "[model]\nkind = 'netwrok'\n",
            "line 8: .model. kind must be 'auto' .* or 'mixed'; .*did you mean 'network'",
        ),
        (TARGET + "[model]\nkind = 3\n", "line 8: .model. kind must be .*; got 3"),
        (
            TARGET + "[model]\nmax_layers = 1\n",
            r'line 8: .model. max_layers is not a key of kind = "auto"; write kind = "network" or '
            r'members = \["stack"\], or leave max_layers out',
        ),
        (
            TARGET + "[model]\nkind = 'tobit'\nranks = [2]\n",
            'line 9: .model. ranks is not a key of kind = "tobit"; write kind = "network", or',
        ),
        (
            TARGET + "[model]\nmembers = []\n",
            "line 8: .*members must be a list of 'stack', 'trees' and",
        ),
        (TARGET + "[model]\nmember = []\n", "has no key 'member' .*; did you mean 'members'"),
        (TARGET + "[model]\ncv = true\n", "line 8: .*a whole number of folds, from 2; got True"),
        (
            TARGET + "[model]\nkind = 'network'\nranks = [2,\n 2.5]\n",
            "line 9: .*a list of whole numbers from 1",
        ),
        (TARGET + "[evaluation]\ntrain_shares = []\n", "line 8: .*a list of shares"),
        (TARGET + "[evaluation]\ncoverage = 90\n", "line 8: .*a share between 0 and 1; got 90"),
        (TARGET + '[features]\ninclude = "*"\n', r"line 8: .*a list of column names, .*got '\*'"),
        (
            "[targets.MMSE]\nlower = 30\nupper = 0\n",
            "line 6: .*upper must be above lower; got 0 and 30",
        ),
        ("[targets.MMSE]\nlower = nan\n", "line 5: .*lower must be a number, or the name of a col"),
        ('[targets."Tau µ"]\nlower = 0\nlow = 1\n', "line 6: .targets.Tau µ. has no key 'low'"),
        ("[targets]\nMMSE = 3\n", "line 5: MMSE must be a table, written .targets.MMSE.; got 3"),
        ("[targets]\nMMSE = {lower = 0, up = 3}\n", "line 5: .* has no key 'up'"),
        ("[targets]\n", "line 4: there is no target; write at least one"),
        ("", "study.toml: there is no target"),
        ("[targets.MMSE\n", "study.toml is not valid TOML: .*line 4"),
        ("\n".join(f"{'a.' * 900}b{i} = 1" for i in range(20)), "line 4: a key has more than ten"),
        ("x = 1" + " " * 2**20, "study.toml is too long for a study file"),
    ],
)
def test_errors_name_the_line_and_what_was_expected(
    text: str, sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(StudyError, match=sentence):
        read_study(write_study(tmp_path, text))


def test_data_and_its_file_are_required(tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(TARGET)
    with pytest.raises(StudyError, match=r"lacks the section \[data\]"):
        read_study(path)
    path.write_text("[data]\n" + TARGET)
    with pytest.raises(StudyError, match=r"line 1: \[data\] lacks the key 'file': the name of"):
        read_study(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(StudyError, match="is not UTF-8 text; a study file is written in TOML"):
        read_study(path)
    with pytest.raises(StudyError, match="no such study file; 'deeptobit init DATA' writes one"):
        read_study(tmp_path / "none.toml")


@pytest.mark.parametrize("file", ["/etc/passwd", "../a.csv", "x/../../a.csv", "C:\\\\a.csv"])
def test_a_study_does_not_read_outside_its_folder(file: str, tmp_path: Path) -> None:
    path = tmp_path / "study.toml"
    path.write_text(f'[data]\nfile = "{file}"\n{TARGET}')
    with pytest.raises(StudyError, match=r"line 2: .* is outside"):
        _ = read_study(path).data_path


def test_nor_through_a_link(tmp_path: Path) -> None:
    inside = tmp_path / "study"
    inside.mkdir()
    (tmp_path / "secret.csv").write_text("x\n1\n")
    (inside / "a.csv").symlink_to(tmp_path / "secret.csv")
    path = inside / "study.toml"
    path.write_text(f'[data]\nfile = "a.csv"\n{TARGET}')
    with pytest.raises(StudyError, match="is outside"):
        _ = read_study(path).data_path
