"""Sentences of pages and verbs, made from the values of csebench/report/numbers/.

This is the only place that words a verdict. Nothing is computed here except how a number is
rounded.
"""
