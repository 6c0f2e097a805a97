"""Pictures of pages: the papers' figures drawn from our scores (scores.py), and forest plots."""
