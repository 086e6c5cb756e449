"""Checks that ship with the package: whether an estimator or a noise family keeps its promises.

The conventions of :mod:`deeptobit.estimators`, beyond those of scikit-learn: outcomes may be
missing (NaN) and lie within ``lower`` and ``upper``; predictions are finite, within the bounds and
parts of one distribution; nothing that is passed in is modified, shared or stored; neither the
container of the data, nor its layout in memory, nor the process, nor the number of threads shows
in the result; and ``partial_fit`` in pieces is ``partial_fit`` on the whole, in bounded memory.

:func:`all_checks` lists those that apply to an estimator or a noise family, and
:func:`check_all` runs them. scikit-learn's own suite is run beside them;
``EXPECTED_FAILED_CHECKS`` says what it may find in the estimators of this package.

Examples
--------
In the tests of an estimator or a noise family of your own::

    @pytest.mark.parametrize(("name", "check"), all_checks(MyRegressor()))
    def test_check(name, check):
        check(MyRegressor())
"""

from deeptobit.checks._copies import (
    check_copies_agree,
    check_refit_forgets,
    check_training_rows_are_not_stored,
)
from deeptobit.checks._expected import EXPECTED_FAILED_CHECKS
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
from deeptobit.checks._suite import Check, all_checks, check_all

__all__ = [
    "EXPECTED_FAILED_CHECKS",
    "Check",
    "all_checks",
    "check_all",
    "check_bounds_agree",
    "check_bounds_are_respected",
    "check_censored_targets_agree",
    "check_containers_agree",
    "check_copies_agree",
    "check_distribution_is_coherent",
    "check_inputs_are_not_modified",
    "check_layouts_agree",
    "check_memory_is_bounded",
    "check_n_jobs_changes_nothing",
    "check_no_nan_leaves",
    "check_noise_density",
    "check_noise_draws",
    "check_noise_in_a_fit",
    "check_noise_intervals",
    "check_noise_moments",
    "check_noise_score",
    "check_noise_sides",
    "check_noise_tails",
    "check_nothing_is_shared",
    "check_one_outcome_is_one_dimensional",
    "check_partial_fit_in_pieces",
    "check_pickled_stream_goes_on",
    "check_precision_is_kept",
    "check_predict_is_pure",
    "check_refit_forgets",
    "check_same_seed_across_processes",
    "check_training_rows_are_not_stored",
]
