"""Pictures of models and predictions: functions of arrays and tables that draw on matplotlib Axes.

Matplotlib is imported when the first picture is drawn. Every function draws on ``ax``, or on a new
figure, and returns the Axes; where a picture has several panels, they are its ``child_axes``.
"""

from typing import TYPE_CHECKING

from deeptobit.plots._calibration import draw_calibration, pit_values
from deeptobit.plots._convergence import Stage, draw_convergence, draw_steps
from deeptobit.plots._layers import draw_layers
from deeptobit.plots._predictions import draw_predictions
from deeptobit.plots._reliability import bound_calibrations
from deeptobit.plots._similarity import draw_similarity
from deeptobit.plots._stages import Course, read_course
from deeptobit.plots._subspaces import draw_subspaces

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes  # for the signatures of rooms above

__all__ = [
    "Course",
    "Stage",
    "bound_calibrations",
    "draw_calibration",
    "draw_convergence",
    "draw_layers",
    "draw_predictions",
    "draw_similarity",
    "draw_steps",
    "draw_subspaces",
    "pit_values",
    "read_course",
]
