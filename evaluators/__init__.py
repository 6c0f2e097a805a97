"""The evaluators, one file a protocol family: `DECLARATION`, and `evaluate(model, data_root)` -> rows and items."""
