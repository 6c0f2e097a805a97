"""Who runs what: one planned run, a search, an attempt, what the rules of the workflow compute."""
