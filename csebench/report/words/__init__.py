"""Sentences of pages and verbs, made from the values of csebench/report/numbers/.

Verdicts are worded only here. Nothing is computed here, except that numbers are rounded.
"""
