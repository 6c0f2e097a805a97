"""Find and read what the project declares: methods, papers, scales, evidence, sources of data."""
