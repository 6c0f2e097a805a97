"""Sentences of pages and verbs, made from the values of csebench/report/numbers/. The only place
that words a verdict."""
