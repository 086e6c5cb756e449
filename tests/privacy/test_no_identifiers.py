"""Nothing that leaves a study says who its people are."""

import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from deeptobit import SubspaceTobitRegressor, TobitRegressor
from deeptobit.app.report import model_card, write_card
from deeptobit.app.study import load_fitted, read_study
from deeptobit.app.study.config import Source, parse_study, settings_text
from deeptobit.scale import ParquetRows
from tests.privacy.canaries import CANARY, EXTREME, RARE, canary_table, is_in, run

FEATURES, TARGETS = ["volume", "implant"], ["MMSE", "speed"]


def made(folder: Path) -> list[Path]:
    """Every file that a command wrote: not the study, nor its table."""
    files = [path for path in folder.rglob("*") if path.is_file() and CANARY not in path.name]
    return [path for path in files if path.suffix != ".toml"]


def test_no_id_group_note_comment_or_file_name_is_in_any_file(clinic: Path) -> None:
    files = made(clinic)
    kinds = {path.suffix for path in files}
    assert kinds == {".deeptobit", ".md", ".json", ".html", ".onnx", ".parquet"}
    for path in files:
        assert not is_in(CANARY, path), path.name
        assert not is_in(clinic.name, path), "a path has the name of a user in it"


def test_no_feature_of_a_single_person_is_in_any_file(clinic: Path) -> None:
    for path in made(clinic):
        assert not is_in(f"{EXTREME}"[:8], path), path.name
        assert struct.pack("<d", EXTREME) not in path.read_bytes(), path.name


def test_a_rare_category_is_in_models_alone(clinic: Path) -> None:
    """They need it to predict; cards, pages and tables do without."""
    telling = {path.name for path in made(clinic) if is_in(RARE, path)}
    assert telling == {"clinic.deeptobit", "clinic.onnx"}


def test_predictions_have_the_ids_they_were_asked_with(clinic: Path, tmp_path: Path) -> None:
    canary_table().drop(columns=TARGETS).to_csv(tmp_path / "new.csv", index=False)
    run("predict", clinic / "clinic.deeptobit", tmp_path / "new.csv", "--only", "id")
    assert is_in(f"{CANARY}-ID-7", tmp_path / "new-predictions.csv")
    assert not is_in(f"{CANARY}-PERSON", tmp_path / "new-predictions.csv")


def test_estimators_forget_the_index(tmp_path: Path) -> None:
    table = canary_table().set_index("visit")
    X, Y = table[FEATURES].astype(float), table[TARGETS]
    model = TobitRegressor(lower=None, upper={"MMSE": 30.0}).fit(X, Y)
    stream = SubspaceTobitRegressor(1, lower=None, random_state=0).partial_fit(X, Y)
    model.save(tmp_path / "tobit.model")
    stream.save(tmp_path / "stream.model")
    write_card(model_card(model, X, Y), tmp_path / "tobit.model")
    files = list(tmp_path.iterdir())
    assert len(files) == 4
    for path in files:
        assert not is_in(CANARY, path), path.name
    assert is_in("volume", tmp_path / "stream.model")


def test_a_checkpoint_has_neither_ids_nor_paths(tmp_path: Path) -> None:
    folder = tmp_path / f"{CANARY}-FOLDER"
    folder.mkdir()
    canary_table().to_parquet(folder / f"{CANARY}.parquet")
    rows = ParquetRows(folder, targets=TARGETS, features=FEATURES)
    model = SubspaceTobitRegressor(1, lower=None, upper={"MMSE": 30.0, "speed": np.inf}, max_iter=3)
    with pytest.warns(UserWarning, match="converge"):
        model.fit(rows, checkpoint=tmp_path / "fit.checkpoint")
    model.save(tmp_path / "fit.model")
    for name in ("fit.checkpoint", "fit.model"):
        assert not is_in(CANARY, tmp_path / name)


def test_settings_are_kept_without_comments_and_file(clinic: Path) -> None:
    study = read_study(clinic / "clinic.toml")
    kept = parse_study(Source(Path("kept.toml"), settings_text(study)))
    assert kept.data.file == "table"
    for name in ("features", "targets", "model", "evaluation", "report"):
        assert getattr(kept, name) == getattr(study, name)
    assert (kept.data.id, kept.data.group) == (study.data.id, study.data.group)
    assert load_fitted(clinic / "clinic.deeptobit").text == settings_text(study)


@pytest.mark.parametrize("name", ["plain", 'a "quote"', "back\\slash", "tab\t", "\x7f", "é体"])
def test_settings_survive_any_name(name: str) -> None:
    from deeptobit.app.study.config import toml_key, toml_value

    text = f'data = {{file = "a.csv", missing = [-4, {toml_value(name)}]}}\n'
    text += f"targets.{toml_key(name)} = {{lower = 0.5, upper = {toml_value(name)}}}\n"
    study = parse_study(Source(Path("a.toml"), text + "report.small_counts = true\n"))
    kept = parse_study(Source(Path("a.toml"), settings_text(study)))
    assert (kept.targets, kept.data.missing) == (study.targets, (-4, name))
    assert kept.report.small_counts


def test_what_is_hidden_is_found(tmp_path: Path) -> None:
    """The search looks into archives, wide text, columns and pictures."""
    import matplotlib.image

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.txt", f"{CANARY} " * 100)
    (tmp_path / "a.zip").write_bytes(buffer.getvalue())
    (tmp_path / "a.bin").write_bytes(np.array([CANARY]).tobytes())
    pd.DataFrame({"who": [CANARY] * 500}).to_parquet(tmp_path / "a.parquet")
    pixels = np.zeros((2, 2, 4))
    matplotlib.image.imsave(tmp_path / "a.png", pixels, metadata={"Author": CANARY})
    for path in list(tmp_path.iterdir()):
        assert is_in(CANARY, path), path.name
        assert not is_in("SOMETHING ELSE", path)
