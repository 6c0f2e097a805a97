"""What pages say, as values: statistics, comparisons, claims, audit. No sentence is worded here."""
