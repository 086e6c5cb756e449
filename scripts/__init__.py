"""Figures, pages and lists that are made from the code."""
