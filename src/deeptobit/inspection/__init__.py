"""What a fitted model says: covariances, shared directions, calibration, and pictures.

Matplotlib loads when something is drawn.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
