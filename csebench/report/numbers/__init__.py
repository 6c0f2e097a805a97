"""What pages say, as values: statistics, comparisons, claims, audit.

No sentence is worded here, and nothing is imported from csebench/report/words/.
"""
