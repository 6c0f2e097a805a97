"""The values that pages show: statistics, comparisons, claims and findings of the audit.

Sentences about them are made in csebench/report/words/, which this folder does not import.
"""
