"""The prefix of an encoder: what it changes, and which encoders cannot have one."""

import pytest
import torch
from safetensors.torch import save_file
from tiny_encoders import TEXTS, load_local, save_tiny

from csebench.base.errors import BadInput
from csebench.model.encoder import MODULES_FILE, PREFIX_KEY
from csebench.model.export import save_encoder
from csebench.model.pooling import pool


@pytest.fixture(params=["bert", "xlm-roberta", "electra"])
def bert_folder(request, tmp_path):
    return save_tiny(request.param, tmp_path / "bert")


@pytest.fixture
def prefixed(bert_folder):
    """Return an encoder with a prefix of 3 and large vectors."""
    encoder = load_local(bert_folder)
    encoder.add_prefix(3)
    torch.nn.init.normal_(encoder.prefix.vectors)
    return encoder.eval()


@torch.no_grad()
def mean_vectors(encoder):
    return pool("avg", encoder(encoder.tokenize(TEXTS), "avg"))


def test_an_encoder_with_a_prefix_gives_other_vectors_and_reads_fewer_tokens(prefixed, bert_folder):
    plain = load_local(bert_folder).eval()
    assert prefixed.max_seq_length == plain.max_seq_length - 3
    assert not torch.allclose(mean_vectors(prefixed), mean_vectors(plain), atol=1e-2)


def test_padding_does_not_change_what_is_read_behind_a_prefix(prefixed):
    together = mean_vectors(prefixed)
    for text, vector in zip(TEXTS, together, strict=True):
        with torch.no_grad():
            alone = pool("avg", prefixed(prefixed.tokenize([text]), "avg"))
        torch.testing.assert_close(alone[0], vector, atol=1e-6, rtol=1e-5)


def test_a_copy_has_the_prefix_also_of_the_lowest_layers_alone(prefixed):
    assert torch.equal(mean_vectors(prefixed.copy().eval()), mean_vectors(prefixed))
    lowest = prefixed.copy(layers=1).eval()
    assert torch.equal(lowest.prefix.vectors, prefixed.prefix.vectors)
    assert torch.isfinite(mean_vectors(lowest)).all()


def test_an_exported_prefix_is_loaded_again_and_no_second_one_is_added(prefixed, tmp_path):
    folder = tmp_path / "exported"
    save_encoder(folder, prefixed, "avg", None, {})

    loaded = load_local(folder).eval()

    assert torch.equal(mean_vectors(loaded), mean_vectors(prefixed))
    with pytest.raises(BadInput, match="it has a prefix already, from an earlier run"):
        loaded.add_prefix(2)


@pytest.mark.parametrize("content", [b"no weights", None])
def test_a_damaged_file_of_a_prefix_is_refused(content, bert_folder):
    file = bert_folder / MODULES_FILE
    if content is None:
        save_file({PREFIX_KEY: torch.zeros(3, 16)}, file)  # of another form
    else:
        file.write_bytes(content)
    with pytest.raises(BadInput, match=r"modules\.safetensors: (prefix: )?cannot be read"):
        load_local(bert_folder)


def test_a_prefix_that_leaves_no_position_for_a_word_is_refused(bert_folder):
    encoder = load_local(bert_folder)
    with pytest.raises(BadInput, match="a prefix of 38 takes the positions of all words"):
        encoder.add_prefix(38)  # of 40, and two are for special tokens


def test_attention_maps_of_an_encoder_with_a_prefix_are_refused(prefixed):
    prefixed.attention_layers = {0}
    with pytest.raises(BadInput, match="its tokens also attend to a prefix"):
        mean_vectors(prefixed)
