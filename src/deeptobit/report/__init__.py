"""The report: what a fitted study says, as one HTML page for people; and the paper, reproduced."""

from deeptobit.report._page import render_report
from deeptobit.report._reproduction import render_reproduction
from deeptobit.report._reproduction_files import write_reproduction

__all__ = ["render_report", "render_reproduction", "write_reproduction"]
