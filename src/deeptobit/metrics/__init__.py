"""Measures of predictions, of predictive distributions, and of a recovered subspace.

Outcomes are arrays, data frames or :class:`~deeptobit.CensoredTargets`; NaN is missing and is
skipped; a weight of 2 counts a row twice.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
