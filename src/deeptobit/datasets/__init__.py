"""Simulated data with known truth, and real cohorts with bounded scores."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
