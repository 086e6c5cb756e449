"""Everything that a fitted model can be asked, and how two sets of answers are compared."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Answers = dict[str, NDArray[np.floating[Any]]]

QUANTILES = (0.1, 0.5, 0.9)
N_DRAWS = 3

_QUESTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "predict": lambda model, X: model.predict(X),
    "predict_bound_proba": lambda model, X: model.predict_bound_proba(X),
    "predict_interval": lambda model, X: model.predict_interval(X),
    "predict_quantile": lambda model, X: model.predict_quantile(X, QUANTILES),
    "sample_y": lambda model, X: model.sample_y(X, N_DRAWS, random_state=0),
    "staged_predict": lambda model, X: list(model.staged_predict(X)),
    "transform": lambda model, X: model.transform(X),
}


def ask(model: Any, X: Any) -> Answers:
    """The answers of all methods that the model has, by their names."""
    return {
        name: np.asarray(question(model, X))
        for name, question in _QUESTIONS.items()
        if hasattr(model, name)
    }


def assert_same(
    found: Answers, expected: Answers, when: str, *, rtol: float = 1e-7, atol: float = 1e-9
) -> None:
    """Fail with the name of the method that answers differently, and ``when`` it does."""
    for name, answer in expected.items():
        np.testing.assert_allclose(
            found[name],
            answer,
            rtol=rtol,
            atol=atol * float(np.abs(answer).max()),
            err_msg=f"{name} answers differently {when}",
        )
