"""``deeptobit export``: write a fitted model as ONNX, for systems without Python."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.console import Console

from deeptobit.app.cli import common, studies


def export(
    model: Annotated[Path, typer.Argument(help="A model file, written by fit or by save.")],
    onnx: common.OutFile = None,
    kind: Annotated[
        Literal["mean", "clip", "latent"],
        typer.Option(help=r"E\[y|x], the score clipped to the bounds, or the score."),
    ] = "mean",
    dtype: Annotated[
        Literal["float32", "float64"],
        typer.Option(help="Of input and output; float64 for features such as 1000000 ± 1."),
    ] = "float32",
    force: common.Force = False,
    as_json: common.AsJson = False,
) -> None:
    """Write the predictions of a model as an ONNX file, for systems without Python.

    Exit codes: 0 written; 1 the model cannot be read or exported; 2 wrong usage.
    """
    path = common.output_file(onnx, model, ".onnx", force, option="--onnx")
    estimator, study = common.load_model(model)
    with studies.formats.as_study_error(f"{model} cannot be exported: "):
        estimator.to_onnx(path, kind, dtype=dtype)
    unnamed = [f"x{column}" for column in range(estimator.n_features_in_)]
    features = list(getattr(estimator, "feature_names_in_", unnamed))
    encoding = None if study is None else list(map(asdict, study.encoder.columns))
    about = {"onnx": str(path), "kind": kind, "dtype": dtype, "features": features}
    rest = f": input X ({dtype}) of {len(features)} feature(s), output {kind!r} of "
    rest += f"{len(estimator.target_names_)} target(s); its metadata lists their names, in order."
    facts = about | {"targets": estimator.target_names_, "encoding": encoding}
    common.tell_written(as_json, facts, path, rest)
    for note in [] if study is None or as_json else _notes(study):
        Console().print(note, soft_wrap=True, markup=False)


def _notes(study: studies.FittedStudy) -> list[str]:
    """What the ONNX file does not do."""
    notes = []
    if study.encoder.features != [column.name for column in study.encoder.columns]:
        notes.append(
            "Its features are the columns of the table once encoded: categories as 0 and 1, "
            "missing cells filled and marked. --json says how."
        )
    bounds = study.held_out.targets.describe()[["lower", "upper"]]
    by_row = bounds.index[bounds.isna().any(axis=1)]
    if len(by_row):
        limits = f"Limits of {', '.join(map(str, by_row))} differ from row to row and are not in it"
        notes.append(f"{limits}: apply them to --kind latent.")
    return notes
