"""Figures of scores and forest plots."""
