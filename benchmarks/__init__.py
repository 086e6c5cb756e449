"""Measurements of what the library promises; each number is one line of ``make bench``."""
