"""Plug-ins for two-view methods: a term of the loss (AMI) or more negatives (MoCo)."""
