"""All checks that apply, one by one or at once."""

from collections.abc import Callable
from typing import Any

from deeptobit import checks as _noise
from deeptobit.likelihood import Noise
from tests.conformance import inputs as _inputs
from tests.conformance import inputs as _purity
from tests.conformance import outputs as _copies
from tests.conformance import outputs as _outputs
from tests.conformance import outputs as _processes
from tests.conformance import outputs as _streams

Check = Callable[[Any], None]

OF_ESTIMATORS: tuple[Check, ...] = (
    _purity.check_inputs_are_not_modified,
    _purity.check_nothing_is_shared,
    _purity.check_predict_is_pure,
    _outputs.check_no_nan_leaves,
    _outputs.check_bounds_are_respected,
    _outputs.check_distribution_is_coherent,
    _outputs.check_one_outcome_is_one_dimensional,
    _inputs.check_layouts_agree,
    _inputs.check_containers_agree,
    _inputs.check_precision_is_kept,
    _inputs.check_censored_targets_agree,
    _inputs.check_bounds_agree,
    _copies.check_copies_agree,
    _copies.check_refit_forgets,
    _copies.check_training_rows_are_not_stored,
    _processes.check_n_jobs_changes_nothing,
    _processes.check_same_seed_across_processes,
)
OF_STREAMS: tuple[Check, ...] = (
    _streams.check_partial_fit_in_pieces,
    _streams.check_pickled_stream_goes_on,
    _streams.check_memory_is_bounded,
)
OF_NOISE: tuple[Check, ...] = (
    _noise.check_noise_sides,
    _noise.check_noise_density,
    _noise.check_noise_score,
    _noise.check_noise_tails,
    _noise.check_noise_intervals,
    _noise.check_noise_moments,
    _noise.check_noise_draws,
    _noise.check_noise_in_a_fit,
)


def all_checks(subject: Any) -> list[tuple[str, Check]]:
    """Names and functions of the checks for an estimator or a noise family.

    A check takes the subject, returns nothing, and raises where the subject breaks a convention.
    Estimators are cloned, never fitted themselves. An estimator with ``partial_fit`` is checked as
    a stream, too. scikit-learn's own conventions are checked by
    :func:`sklearn.utils.estimator_checks.check_estimator`.

    Parameters
    ----------
    subject : estimator or Noise

    Examples
    --------
    >>> from deeptobit import TobitRegressor
    >>> from deeptobit.likelihood import Gaussian
    >>> checks = dict(all_checks(TobitRegressor()))
    >>> len(checks), "check_partial_fit_in_pieces" in checks
    (17, False)
    >>> for name, check in all_checks(Gaussian()):
    ...     check(Gaussian())
    """
    if hasattr(subject, "fit"):
        checks = OF_ESTIMATORS + (OF_STREAMS if hasattr(subject, "partial_fit") else ())
    elif isinstance(subject, Noise):
        checks = OF_NOISE
    else:
        raise TypeError(
            f"{subject!r} is neither an estimator, for it has no fit, nor a noise family with all "
            "the functions of deeptobit.likelihood.Noise"
        )
    return [(check.__name__, check) for check in checks]


def check_all(subject: Any) -> None:
    """Run every check, and raise one ``ExceptionGroup`` of all that failed.

    Examples
    --------
    >>> import numpy as np
    >>> from deeptobit.likelihood import Gaussian
    >>> class Clipped(Gaussian):
    ...     name = "clipped"
    ...
    ...     def log_cdf(self, z):
    ...         return np.log(np.maximum(np.exp(super().log_cdf(z)), 1e-5))
    >>> try:
    ...     check_all(Clipped())
    ... except ExceptionGroup as group:
    ...     print(group)
    ...     print(*(note for failure in group.exceptions for note in failure.__notes__))
    3 of 8 checks failed (3 sub-exceptions)
    found by check_noise_tails found by check_noise_intervals found by check_noise_moments
    """
    failures: list[Exception] = []
    checks = all_checks(subject)
    for name, check in checks:
        try:
            check(subject)
        except Exception as failure:
            failure.add_note(f"found by {name}")
            failures.append(failure)
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(checks)} checks failed", failures)
