"""Checks of whole estimators: inputs, outputs, copies, streams."""
