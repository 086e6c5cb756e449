"""The file that holds a fitted study."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deeptobit.estimators import estimator_from_state, estimator_state
from deeptobit.exceptions import ModelFileError
from deeptobit.persistence import read_state, write_state
from deeptobit.study._encoding import Encoder
from deeptobit.study._finding import Finding
from deeptobit.study._fitted import FittedStudy
from deeptobit.study._held_out_state import held_out_from_state, held_out_state

KIND = "study"


def save_fitted(fitted: FittedStudy, path: Path | str) -> None:
    r"""Write a fitted study to one file, whole or not at all.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import build_data, fit_study, read_data, read_study
    >>> with TemporaryDirectory() as folder:
    ...     rows = [f"{age},{min(90 - age, 30)}" for age in range(40, 80)]
    ...     _ = Path(folder, "a.csv").write_text("\n".join(["age,MMSE", *rows]))
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text(
    ...         'data.file = "a.csv"\ntargets.MMSE = {upper = 30}\nmodel.max_layers = 1'
    ...     )
    ...     study = read_study(path)
    ...     fitted = fit_study(study, build_data(study, read_data(study)))
    ...     save_fitted(fitted, Path(folder, "study.deeptobit"))
    ...     load_fitted(Path(folder, "study.deeptobit")).encoder.features
    ['age']
    """
    state = {
        "model": estimator_state(fitted.model),
        "encoder": fitted.encoder.to_state(),
        "name": fitted.name,
        "text": fitted.text,
        "held_out": held_out_state(fitted.held_out),
        "findings": [list(finding) for finding in fitted.findings],
        "n_groups": fitted.n_groups,
        "facts": fitted.facts,
        "n_rows": fitted.n_rows,
    }
    write_state(path, KIND, state)


def load_fitted(path: Path | str) -> FittedStudy:
    """Read the file of a fitted study; one that is damaged or something else is refused.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "letter.txt")
    ...     _ = path.write_text("Dear colleague, here is the model.")
    ...     load_fitted(path)
    Traceback (most recent call last):
        ...
    deeptobit.exceptions.ModelFileError: ...letter.txt cannot be loaded: it is not a deeptobit model
    file
    """
    _, state = read_state(path, KIND)
    try:
        return _from_state(state)
    except ModelFileError as error:
        raise ModelFileError(f"{path} cannot be loaded: {error}") from None
    except (LookupError, TypeError, ValueError, AttributeError):
        raise ModelFileError(
            f"{path} comes from another version of deeptobit, which stored studies differently; "
            "fit the study again"
        ) from None


def _from_state(state: Mapping[str, Any]) -> FittedStudy:
    model: Any = estimator_from_state(state["model"])
    return FittedStudy(
        model=model,
        encoder=Encoder.from_state(state["encoder"]),
        name=state["name"],
        text=state["text"],
        held_out=held_out_from_state(state["held_out"]),
        findings=tuple(Finding(*finding) for finding in state["findings"]),
        n_groups=state["n_groups"],
        facts=state["facts"],
        n_rows=state["n_rows"],
    )
