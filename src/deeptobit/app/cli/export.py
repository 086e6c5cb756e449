"""``deeptobit export``: from a model file to a file that other systems run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape

from deeptobit import load
from deeptobit.app.cli.init import check_output, named, one_sentence
from deeptobit.app.study import FittedStudy, StudyError, convert_table, load_fitted
from deeptobit.files import read_state


def run_export(
    model: Path,
    *,
    onnx: Path | None,
    kind: Literal["mean", "clip", "latent"],
    dtype: Literal["float32", "float64"],
    force: bool,
    as_json: bool,
) -> None:
    """Write the ONNX file of a fitted study or of a saved estimator."""
    path = onnx or named(model).with_suffix(".onnx")
    with one_sentence(as_json):
        check_output(path, force, model, option="--onnx")
        fitted = _load(model)
        estimator = fitted.model if isinstance(fitted, FittedStudy) else fitted
        if kind == "mean" and estimator.noise_.name != "gaussian":
            raise _not_gaussian(model)
        try:
            estimator.to_onnx(path, kind, dtype=dtype)
        except ValueError as error:
            raise StudyError(f"{model} cannot be exported: {error}") from None
    features = _features(fitted)
    if as_json:
        about = {"onnx": str(path), "kind": kind, "dtype": dtype, "features": features}
        encoding = {"encoding": _encoding(fitted)}
        print(json.dumps(about | {"targets": estimator.target_names_} | encoding, indent=2))
        return
    console = Console()
    console.print(
        f"Wrote [bold]{escape(str(path))}[/bold]: input X ({dtype}) of {len(features)} feature(s), "
        f"output {kind!r} of {len(estimator.target_names_)} target(s); the names of both, in their "
        "order, are in its metadata.",
        soft_wrap=True,
    )
    for note in _notes(fitted):
        console.print(escape(note), soft_wrap=True)


def _not_gaussian(model: Path) -> StudyError:
    return StudyError(
        f"{model} cannot be exported: its noise is not Gaussian, for which alone ONNX has the mean "
        "E[y|x]. Export --kind clip or --kind latent, which do not depend on the noise, or fit the "
        'study with noise = "gaussian" under [model]'
    )


def _load(path: Path) -> Any:
    """A fitted study, or an estimator that its ``save`` wrote."""
    kind, _ = read_state(path)
    return load_fitted(path) if kind == "study" else load(path)


def _features(fitted: Any) -> list[str]:
    if isinstance(fitted, FittedStudy):
        return fitted.encoder.features
    names = getattr(fitted, "feature_names_in_", None)
    return [f"x{at}" for at in range(fitted.n_features_in_)] if names is None else list(names)


def _encoding(fitted: Any) -> list[dict[str, Any]] | None:
    """How columns of a table become features; a saved estimator is past that."""
    if not isinstance(fitted, FittedStudy):
        return None
    columns: list[dict[str, Any]] = fitted.encoder.to_state()["columns"]
    return columns


def _notes(fitted: Any) -> list[str]:
    """What the graph leaves to its user."""
    if not isinstance(fitted, FittedStudy):
        return []
    notes = []
    if fitted.encoder.features != [column.name for column in fitted.encoder.columns]:
        notes.append(
            "Its features are the columns of the table once encoded: categories as 0 and 1, "
            "missing cells filled and marked. --json says how."
        )
    by_row = fitted.summary[["lower", "upper"]].isna().any(axis=1)
    if by_row.any():
        notes.append(
            f"Limits of {', '.join(map(str, fitted.summary.index[by_row]))} differ from row to "
            "row and are not in it: apply them to --kind latent."
        )
    return notes


# ``deeptobit convert``: from a CSV file to Parquet, whatever its size.


def run_convert(data: Path, *, out: Path | None, force: bool, as_json: bool) -> None:
    """Write a CSV file as Parquet beside it, or elsewhere."""
    path = out or named(data).with_suffix(".parquet")
    with one_sentence(as_json):
        check_output(path, force, data)
        with Console(stderr=True).status("Converting …") as status:
            n_rows = convert_table(
                data, path, progress=lambda rows: status.update(f"Converting … {rows:,} rows")
            )
    if as_json:
        print(json.dumps({"parquet": str(path), "rows": n_rows}, indent=2))
        return
    Console().print(f"Wrote [bold]{escape(str(path))}[/bold]: {n_rows:,} row(s).", soft_wrap=True)
