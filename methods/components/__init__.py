"""Plug-ins for two-view methods: terms of the loss, or a queue of negatives."""
