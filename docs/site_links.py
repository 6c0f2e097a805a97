"""On the site, links from docs/ to other files of the repository lead to the repository."""

import re


def on_page_markdown(markdown: str, config, **_) -> str:
    """Called by mkdocs for every page: `../papers/micse.yaml` becomes an address below `repo_url`."""
    return re.sub(r"\]\(\.\./([^)]+)\)", rf"]({config.repo_url}/blob/main/\1)", markdown)
