"""Scorers for scikit-learn's ``scoring=``: whole predictive distributions, higher is better."""

from typing import Any

from deeptobit.metrics.probabilistic import crps


def log_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Mean log density per entry, as ``score_log``, of an estimator or a pipeline that ends in one.

    Examples
    --------
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from deeptobit import TobitRegressor, datasets
    >>> X, Y, _ = datasets.make_subspace(200, 4, 3, 1, random_state=0)
    >>> model = make_pipeline(StandardScaler(), TobitRegressor())
    >>> cross_val_score(model, X, Y, cv=2, scoring=log_scorer).round(2)
    array([-1.58, -1.63])
    """
    model, X = _last_step(estimator, X)
    return float(model.score_log(X, y))


def crps_scorer(estimator: Any, X: Any, y: Any) -> float:
    """Minus the continuous ranked probability score, averaged over targets.

    Examples
    --------
    >>> from deeptobit import TobitRegressor, datasets
    >>> X, Y, _ = datasets.make_subspace(200, 4, 3, 1, random_state=0)
    >>> round(crps_scorer(TobitRegressor().fit(X, Y), X, Y), 2)
    -0.83
    """
    model, X = _last_step(estimator, X)
    targets, found = model._compared(X, y)
    return -float(crps(targets, found.latent, found.sigma, noise=found.noise))


def _last_step(estimator: Any, X: Any) -> tuple[Any, Any]:
    """The model of a pipeline, and the features that it sees."""
    if hasattr(estimator, "steps"):
        return estimator[-1], estimator[:-1].transform(X) if len(estimator) > 1 else X
    return estimator, X
