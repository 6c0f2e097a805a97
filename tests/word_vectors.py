"""A tiny model of average word vectors, in the layout that sentence-transformers 2 gave GloVe."""

import io
import json
import string

import torch
from safetensors.torch import save

WIDTH = 16
STOP_WORDS = ["a", "of", "the"]


def word_vectors(sentences, weights="pytorch_model.bin"):
    """Make a model with a random vector for every word of some sentences.

    Args:
        weights: the file of the weights, `pytorch_model.bin` or `model.safetensors`.

    Returns:
        The contents of its files, by name.
    """
    words = set()
    for sentence in sentences:
        words.update(word.strip(string.punctuation).lower() for word in sentence.split())
    vocabulary = ["PADDING_TOKEN", *sorted(words - {""})]
    random = torch.Generator().manual_seed(0)
    vectors = torch.randn(len(vocabulary), WIDTH, generator=random)

    modules = []
    for number, kind in enumerate(("WordEmbeddings", "Pooling")):
        module = {"idx": number, "name": str(number), "path": f"{number}_{kind}"}
        modules.append(module | {"type": f"sentence_transformers.models.{kind}"})
    tokenizer = "sentence_transformers.models.tokenizer.WhitespaceTokenizer.WhitespaceTokenizer"
    contents = {
        "modules.json": modules,
        "0_WordEmbeddings/wordembedding_config.json": {
            "tokenizer_class": tokenizer,
            "update_embeddings": False,
            "max_seq_length": 1_000_000,
        },
        "0_WordEmbeddings/whitespacetokenizer_config.json": {
            "vocab": vocabulary,
            "stop_words": STOP_WORDS,
            "do_lower_case": False,
        },
        "1_Pooling/config.json": {
            "word_embedding_dimension": WIDTH,
            "pooling_mode_mean_tokens": True,
        },
    }
    files = {name: json.dumps(content).encode() for name, content in contents.items()}
    state = {"emb_layer.weight": vectors}
    if weights == "model.safetensors":
        files[f"0_WordEmbeddings/{weights}"] = save(state)
    else:
        file = io.BytesIO()
        torch.save(state, file)
        files[f"0_WordEmbeddings/{weights}"] = file.getvalue()
    return files


def write_word_vectors(folder, sentences):
    """Write such a model into a folder, and return the folder."""
    for name, content in word_vectors(sentences).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return folder
