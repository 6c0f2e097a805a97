"""BERT as it is: the untrained baseline of every table.

Idea: pool the hidden states of the pre-trained encoder, without any training.

Source: rows "BERT" ([CLS]), "avg." and "first-last avg." of Gao et al. 2021 and Klein & Nabi 2023.
Inputs: sentences.
Relations: every trained method starts from this encoder. The two readings of first-last average are
two poolers (csebench/model/pooling.py: pool).
"""

DECLARATION = {
    "name": "bert",
    "version": 1,
    "title": "BERT, untrained",
    "kind": "untrained",
    "paper": "Devlin et al. 2019 (NAACL)",
    "citation": (
        """@inproceedings{devlin2019bert, title={{BERT}: Pre-training of Deep Bidirectional Transformers for
Language Understanding}, author={Devlin, Jacob and Chang, Ming-Wei and Lee, Kenton and Toutanova, Kristina},
booktitle={NAACL},
year={2019}}"""
    ),
    "trains": "nothing",
    "colours": {"": "#707070"},
    "params": {
        "pooler": (
            "avg_first_last_2021",
            "the published 56.70: embedding output and last layer (SimCSE issue #285)",
        ),
    },
}
