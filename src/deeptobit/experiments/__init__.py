"""Experiments on the claims of the paper."""

from deeptobit.experiments._theory import Course, Regret, Settling, follow, stationarity

__all__ = ["Course", "Regret", "Settling", "follow", "stationarity"]
