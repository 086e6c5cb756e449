"""Noise families by name."""

from collections.abc import Callable

from deeptobit.likelihood._gaussian import Gaussian
from deeptobit.likelihood._logistic import Logistic
from deeptobit.likelihood._protocol import Noise
from deeptobit.likelihood._student_t import StudentT

_BY_NAME: dict[str, Callable[[], Noise]] = {
    family.name: family for family in (Gaussian, Logistic, StudentT)
}


def resolve_noise(noise: str | Noise) -> Noise:
    """A noise family from its name, or the object itself.

    Examples
    --------
    >>> resolve_noise("student_t")
    StudentT(df=4)
    """
    if isinstance(noise, str) and noise in _BY_NAME:
        return _BY_NAME[noise]()
    if not isinstance(noise, (str, type)) and isinstance(noise, Noise):
        return noise
    raise ValueError(
        f"noise must be one of {', '.join(map(repr, _BY_NAME))} or an object with the methods of "
        f"deeptobit.likelihood.Noise; got {noise!r}"
    )
