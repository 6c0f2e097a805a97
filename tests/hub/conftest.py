"""The hub on this machine, for tests that fetch models and data."""

import hub_data
import pytest
from hub_server import Hub


@pytest.fixture(scope="session")
def contents(tiny_bert, tiny_roberta):
    """A hub with all models and data sets, made once. It does not run."""
    hub = Hub()
    hub_data.fill(hub, tiny_bert, tiny_roberta)
    return hub


@pytest.fixture
def hub(contents):
    """A running hub without a fault, whose content a test may change."""
    with Hub(list(contents.repositories), dict(contents.archives)) as running:
        yield running
