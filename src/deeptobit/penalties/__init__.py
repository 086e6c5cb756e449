"""TODO."""

from deeptobit.penalties.group import FeaturePenalty, group_share, least_subgradient

__all__ = ["FeaturePenalty", "group_share", "least_subgradient"]
