"""Studies: a table and a TOML file that says what to predict from what; fit, predict, compare."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
