"""Make planned runs, searches and attempts, and compute what the rules of the workflow need."""
