"""One file a method, found by name: docs/methods.md shows how they relate."""
