"""Promises that every estimator and every noise family keeps."""
