"""Repeated visits."""
