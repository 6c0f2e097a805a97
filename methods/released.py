"""A released model as it is: a row of a table that is a published model.

Idea: score a published model of sentence-transformers with its own pooling, without any training.

Source: rows "GloVe (avg.)" of the papers, which print numbers of Reimers & Gurevych 2019.
Inputs: sentences.
Relations: bert pools an encoder in a way of ours. This model states its own pooling in modules.json.
A row names the model by its role in config/: {method: released, encoder: glove}.
"""

DECLARATION = {
    "name": "released",
    "version": 1,
    "title": "Released model",
    "kind": "released",
    "paper": "Reimers & Gurevych 2019 (EMNLP); GloVe: Pennington et al. 2014 (EMNLP)",
    "citation": (
        """@inproceedings{reimers2019sentence, title={Sentence-{BERT}: Sentence Embeddings using Siamese
{BERT}-Networks}, author={Reimers, Nils and Gurevych, Iryna}, booktitle={EMNLP-IJCNLP}, year={2019}}
@inproceedings{pennington2014glove, title={{GloVe}: Global Vectors for Word Representation},
author={Pennington, Jeffrey and Socher, Richard and Manning, Christopher}, booktitle={EMNLP}, year={2014}}"""
    ),
    "needs": "a model of sentence-transformers (modules.json)",
    "trains": "nothing",
    "colours": {"": "#A0A0A0"},
    "deviations": [
        (
            "GloVe: which vectors the printed rows used is not stated by the papers, which copy them from"
            " Reimers & Gurevych 2019. Ours are DataikuNLP/average_word_embeddings_glove.6B.300d. Its card"
            " says that it copies sentence-transformers/average_word_embeddings_glove.6B.300d at commit"
            " 5d2b7d1c."
        ),
        (
            "GloVe: that model's tokenizer splits at blanks. It looks a token up as it is, then without"
            " punctuation at its ends, then in lower case. Stop words and unknown words are left out."
        ),
    ],
}
