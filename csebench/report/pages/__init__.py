"""The pages of results/, by target: a new kind is registered here."""
