"""What files and runs may say: declarations, papers, specs. Checked by pydantic alone."""
