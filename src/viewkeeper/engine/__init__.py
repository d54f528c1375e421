"""Runs the steps of a refresh on Spark."""
