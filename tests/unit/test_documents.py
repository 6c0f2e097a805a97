"""Documents of several lines of a corpus, on which DeCLUTR trains."""

import pytest

from csebench.base.errors import BadInput
from csebench.train.inputs import read_corpus_of, read_inputs

LINES = [f"sentence {number}" for number in range(22)]


@pytest.fixture
def documents(make_spec, tmp_path, smoke_data):
    """Return a function that reads what a run trains on, of a corpus of 22 lines."""
    file = tmp_path / "corpus.txt"
    file.write_text("".join(f"{line}\n" for line in LINES))

    def read(size, lines):
        params = {"document_lines": lines, "batch_size": 2}
        spec = make_spec("declutr", size=size, params=params, file=file)
        return list(read_inputs(spec, read_corpus_of(spec, file), smoke_data).sentences)

    return read


def test_consecutive_lines_are_a_document(documents):
    drawn = documents(size=None, lines=5)

    assert drawn == [" ".join(LINES[start : start + 5]) for start in (0, 5, 10, 15)]


def test_a_run_draws_as_many_documents_as_its_sentences_make(documents):
    drawn = documents(size=12, lines=4)

    assert len(drawn) == 3
    assert set(drawn) <= set(documents(size=None, lines=4))


def test_a_batch_of_more_documents_than_the_run_draws_is_refused(documents):
    with pytest.raises(BadInput, match="2 is above the 1 documents of 10 lines of the corpus"):
        documents(size=19, lines=10)


def test_a_line_may_be_a_document(documents):
    assert documents(size=None, lines=1) == LINES
