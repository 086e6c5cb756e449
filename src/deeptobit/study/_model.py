"""The estimator that a study asks for."""

import numpy as np

from deeptobit.estimators import SubspaceNetworkCV, SubspaceNetworkRegressor
from deeptobit.study._file import Study
from deeptobit.study._outcomes import task_bounds

# Of a streamed network: with so many rows time limits the rank, not chance, and beyond this
# tolerance every further pass changes less than a few rows more or less would.
_RANK, _TOLERANCE = 10, 1e-4


def make_model(study: Study, n_jobs: int | None = None) -> SubspaceNetworkCV:
    r"""An unfitted :class:`SubspaceNetworkCV` with the settings of ``[model]``.

    The targets bring their own bounds.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('data.file = "a.csv"\ntargets.y = {}\nmodel.max_layers = 1')
    ...     make_model(read_study(path))
    SubspaceNetworkCV(max_layers=1, random_state=0)
    """
    settings = study.model
    return SubspaceNetworkCV(
        max_layers=settings.max_layers,
        cv=settings.cv,
        scoring=settings.scoring,
        noise=settings.noise,
        ranks=settings.ranks,
        alphas=settings.alphas,
        feature_sparsities=settings.feature_sparsities,
        random_state=settings.seed,
        n_jobs=n_jobs,
    )


def make_network(study: Study) -> SubspaceNetworkRegressor:
    r"""An unfitted :class:`SubspaceNetworkRegressor` for rows that are streamed.

    Cross-validation would read the table a hundred times. In its place stand rules: the largest of
    the ``ranks``, or 10; a single one of the ``alphas``, or else the automatic penalty; all
    ``max_layers``, of which those that do not pay are undone; Gaussian noise unless another
    family is named.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from deeptobit.study import read_study
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "study.toml")
    ...     _ = path.write_text('data.file = "a.parquet"\ntargets.y = {upper = 30}')
    ...     network = make_network(read_study(path))
    >>> network.rank, network.n_layers, network.noise, network.upper
    (10, 2, 'gaussian', {'y': 30.0})
    """
    settings = study.model
    if settings.feature_sparsities and min(settings.feature_sparsities) > 0.0:
        raise study.source.error(
            ("model", "feature_sparsities"),
            "feature_sparsities choose features by rows that are all in memory, and rows of this "
            "table are streamed; leave them out, or give more --memory",
        )
    lower, upper = task_bounds(study)
    bounded = bool((np.isfinite(lower) | np.isfinite(upper)).any())
    names = [target.name for target in study.targets]
    return SubspaceNetworkRegressor(
        rank=max(settings.ranks or (_RANK,)),
        n_layers=settings.max_layers if bounded else 1,  # without bounds any depth is linear
        alpha=settings.alphas[0] if settings.alphas and len(settings.alphas) == 1 else "auto",
        noise="gaussian" if settings.noise == "auto" else settings.noise,
        lower=dict(zip(names, lower.tolist(), strict=True)),
        upper=dict(zip(names, upper.tolist(), strict=True)),
        random_state=settings.seed,
        tol=_TOLERANCE,
    )
