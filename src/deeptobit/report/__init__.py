"""The report: what a fitted study says, as one HTML page for people."""

from deeptobit.report._page import render_report

__all__ = ["render_report"]
