"""The estimator that a study asks for."""

from deeptobit.estimators import SubspaceNetworkCV
from deeptobit.study._file import Study


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
