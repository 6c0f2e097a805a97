import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def contents(tiny_bert, tiny_roberta, sentences):
    """Repositories and archives, made once: small models under the real names, data sets of the smoke data."""
    import hub_data
    import hub_models
    from hub_server import Hub

    filled = Hub(hub_models.models(tiny_bert, tiny_roberta, sentences))
    hub_data.fill(filled, sentences)
    return filled


@pytest.fixture
def hub(contents):
    """A running hub without a fault."""
    from hub_server import Hub

    with Hub(list(contents.repositories), dict(contents.archives)) as running:
        yield running
