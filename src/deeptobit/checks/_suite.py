"""All checks that apply, one by one or at once."""

from collections.abc import Callable
from typing import Any

from deeptobit.checks._copies import (
    check_copies_agree,
    check_refit_forgets,
    check_training_rows_are_not_stored,
)
from deeptobit.checks._inputs import (
    check_bounds_agree,
    check_censored_targets_agree,
    check_containers_agree,
    check_layouts_agree,
    check_precision_is_kept,
)
from deeptobit.checks._noise import (
    check_noise_density,
    check_noise_draws,
    check_noise_in_a_fit,
    check_noise_intervals,
    check_noise_moments,
    check_noise_score,
    check_noise_sides,
    check_noise_tails,
)
from deeptobit.checks._outputs import (
    check_bounds_are_respected,
    check_distribution_is_coherent,
    check_no_nan_leaves,
    check_one_outcome_is_one_dimensional,
)
from deeptobit.checks._processes import (
    check_n_jobs_changes_nothing,
    check_same_seed_across_processes,
)
from deeptobit.checks._purity import (
    check_inputs_are_not_modified,
    check_nothing_is_shared,
    check_predict_is_pure,
)
from deeptobit.checks._streams import (
    check_memory_is_bounded,
    check_partial_fit_in_pieces,
    check_pickled_stream_goes_on,
)
from deeptobit.likelihood import Noise

Check = Callable[[Any], None]

OF_ESTIMATORS: tuple[Check, ...] = (
    check_inputs_are_not_modified,
    check_nothing_is_shared,
    check_predict_is_pure,
    check_no_nan_leaves,
    check_bounds_are_respected,
    check_distribution_is_coherent,
    check_one_outcome_is_one_dimensional,
    check_layouts_agree,
    check_containers_agree,
    check_precision_is_kept,
    check_censored_targets_agree,
    check_bounds_agree,
    check_copies_agree,
    check_refit_forgets,
    check_training_rows_are_not_stored,
    check_n_jobs_changes_nothing,
    check_same_seed_across_processes,
)
OF_STREAMS: tuple[Check, ...] = (
    check_partial_fit_in_pieces,
    check_pickled_stream_goes_on,
    check_memory_is_bounded,
)
OF_NOISE: tuple[Check, ...] = (
    check_noise_sides,
    check_noise_density,
    check_noise_score,
    check_noise_tails,
    check_noise_intervals,
    check_noise_moments,
    check_noise_draws,
    check_noise_in_a_fit,
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
