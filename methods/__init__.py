"""One file per method, found by name: docs/methods.md shows how they relate."""
