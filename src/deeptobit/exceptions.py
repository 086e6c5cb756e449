"""Every exception and warning that deeptobit raises on its own account.

Errors in what a user passes are ``ValueError`` (scikit-learn's convention), so code
written for scikit-learn keeps working; the classes below say more where more is known.
"""


class MissingExtraError(ImportError):
    """An optional package is needed; the message names the extra that brings it."""


class ModelFileError(ValueError):
    """A file that is no model file, is damaged, or comes from a newer version."""


class CensoringWarning(UserWarning):
    """The censoring pattern leaves something undetermined, and a convention filled it in."""


class SeparationWarning(UserWarning):
    """Some coefficients run to infinity: the data separate censored from observed rows."""


class CollinearityWarning(UserWarning):
    """Columns of X are constant or linearly dependent; the minimum-norm solution was taken."""
