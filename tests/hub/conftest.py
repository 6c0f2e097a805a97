import hub_data
import pytest
from hub_server import Hub


@pytest.fixture(scope="session")
def contents(tiny_bert, tiny_roberta):
    filled = Hub()
    hub_data.fill(filled, tiny_bert, tiny_roberta)
    return filled


@pytest.fixture
def hub(contents):
    """A running hub without a fault."""
    with Hub(list(contents.repositories), dict(contents.archives)) as running:
        yield running
