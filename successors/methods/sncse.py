"""SNCSE: the negation of a sentence is a soft negative, less close than the positive by a margin.

Idea: a sentence and its negation have almost the same words and another meaning. The negation is
neither a positive nor an unrelated sentence, so InfoNCE leaves it out. A second term keeps its
cosine below that of the positive, by at least α and at most β. A parser finds the word to negate.

    loss = -log exp(cos(z1_i, z2_i)/τ) / Σ_j exp(cos(z1_i, z2_j)/τ)
           + λ · (max(0, Δ_i + α) + max(0, -Δ_i - β)),   mean over i
    Δ_i = cos(z1_i, z3_i) - cos(z1_i, z2_i)
    z1, z2, z3 = MLP(h1), MLP(h2), MLP(h3)
    h1 = state at [MASK] of the sentence in `This sentence : "…" means [MASK].`
    h2, h3 = states at [MASK] of the sentence and of its negation in
             `This sentence of "…" means [MASK].`

Source: official code: Sense-GVT/SNCSE SNCSE/simcse/models.py:9-37, 89-188, SNCSE/train_SNCSE.py,
generate_soft_negative_samples.py, train_SNCSE.sh (bert-base-uncased).
Inputs: a batch of N sentences; h, z (N, D). At test, the vector is h1.
Relations: prompt_bert's templates without template denoising, + a term.
"""

import string
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from methods.prompt_bert import TwoTemplates
from torch import Tensor
from torch.nn.functional import cosine_similarity

from csebench.base.errors import BadInput
from csebench.data.parser import load_parser
from csebench.model.encoder import Encoder
from csebench.model.layers import Head
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.losses import info_nce, upcast_fp32
from csebench.train.method import Views

# the words before the template of the pooler `mask`, which is `"[X]" means [MASK].`
OPENING_1 = "This sentence :"  # at test, too
OPENING_2 = "This sentence of"
PUNCTUATION = tuple(string.punctuation)
PARSER_BATCH = 64  # sentences that the parser gets at once

DECLARATION = {
    "name": "sncse",
    "version": 1,
    "title": "SNCSE",
    "paper": "Wang et al. 2022 (arXiv)",
    "citation": (
        """@article{wang2022sncse, title={{SNCSE}: Contrastive Learning for Unsupervised Sentence
Embedding with Soft Negative Samples}, author={Wang, Hao and Li, Yangguang and Huang, Zhen and Dou,
Yong and Kong, Lingpeng and Shao, Jing}, journal={arXiv preprint arXiv:2201.05979}, year={2022}}"""
    ),
    "needs": "English sentences; for soft negatives the extra `syntax`, which installs a parser",
    "trains": "encoder, head",
    "colours": {"": "#A0522D"},
    "params": {
        "steps": (3907, "train_SNCSE.sh: 1 epoch of 10^6 sentences at batch 256"),
        "batch_size": (256, "train_SNCSE.sh, bert-base-uncased"),
        "learning_rate": (1e-5, "train_SNCSE.sh, bert-base-uncased"),
        "max_length": (
            22,
            (
                "train_SNCSE.sh: 32 tokens, minus 10 of the template and the special tokens; here"
                " only tokens of the sentence count"
            ),
        ),
        "evaluate_every": (125, "train_SNCSE.sh: save_steps"),
        "pooler": ("mask", "train_SNCSE.py: the template ends with `means [MASK] .`"),
        "temperature": (0.05, "train_SNCSE.sh"),
        "soft_negatives": (1e-3, "train_SNCSE.py: λ for BERT; 0: none, and no parser is needed"),
        "alpha": (0.1, "train_SNCSE.py: α, the least difference of the cosines"),
        "beta": (0.3, "train_SNCSE.py: β, the largest difference of the cosines"),
    },
    "keeps": ["pooler"],
    "weights": ["soft_negatives"],
    "below": [("alpha", "beta")],
    "variants": {
        "default": (
            "as released",
            "train_SNCSE.py with Different_Prompt_Negation: three texts of every sentence",
        ),
        "no_soft_negatives": (
            "as released",
            "train_SNCSE.py with Different_Prompt in its place: the two views of a sentence alone",
            {"soft_negatives": 0.0},
        ),
    },
    "deviations": [
        "of the paper, only the abstract was at hand; loss and settings are the code's",
        (
            "negations are made in training, with the spaCy that is installed; the file of the"
            " official ones could not be read, and no version of spaCy is stated"
        ),
        (
            "a sentence without punctuation at its end gets ` .` in training, as in the official"
            " code; at test, where the official code adds it, too (bert_prediction.py:68),"
            " sentences are embedded as they are"
        ),
        (
            "weight and templates are those for BERT; for RoBERTa, the official code halves the"
            " weight (5e-4) and has other tokens around the sentence, not run here"
        ),
        (
            "two other uses of soft negatives, as positives and as hard negatives, are comments in"
            " the official code (models.py:161-179), not run here"
        ),
        (
            "the exported tokenizer puts the opening of template 1 before every sentence, so other"
            " programs must not add it"
        ),
    ],
}


class Method(TwoTemplates):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params, "sncse", OPENING_1, OPENING_2)
        self.negator: Negator | None = None
        if self.p.soft_negatives:
            self.negator = Negator()
        self.head = Head(encoder.size)

    def views(self, sentences: list[str]) -> Views:
        closed = [with_stop(sentence) for sentence in sentences]
        view1 = self.encode(self.tokenize(closed))
        view2 = self.encode(self.in_template_2(closed))
        if self.negator is None:
            return Views(view1, view2)
        negations = [with_stop(negation) for negation in self.negator.negate(sentences)]
        return Views(view1, view2, hard=self.encode(self.in_template_2(negations)))

    def tokenize(self, sentences: list[str]) -> dict[str, Tensor]:
        """Make a padded batch of sentences in template 1."""
        return self.in_template(self.ids(sentences), self.before1)

    def in_template_2(self, sentences: list[str]) -> dict[str, Tensor]:
        """Make a padded batch of sentences in template 2."""
        return self.in_template(self.ids(sentences), self.before2)

    def loss(self, views: Views) -> Tensor:
        loss = info_nce(views.z1, views.z2, self.p.temperature, views.queue)
        if views.hard is not None:
            term = bidirectional_margin(views.z1, views.z2, views.hard.z, self.p.alpha, self.p.beta)
            loss = loss + self.p.soft_negatives * term
        return loss


def bidirectional_margin(z1: Tensor, z2: Tensor, soft: Tensor, alpha: float, beta: float) -> Tensor:
    """Compute the bidirectional margin loss, a mean over the batch (models.py:151-159).

    It is 0 for a sentence whose soft negative is less close than its positive, by α to β.

    Args:
        z1, z2: (N, D) vectors of the two views.
        soft: (N, D) vectors of the soft negatives.
        alpha, beta: the least and the largest difference of the cosines that costs nothing.
    """
    z1 = upcast_fp32(z1)
    to_positive = cosine_similarity(z1, upcast_fp32(z2))  # (N,)
    to_soft = cosine_similarity(z1, upcast_fp32(soft))  # (N,)
    difference = to_soft - to_positive  # (N,)
    too_close = torch.relu(difference + alpha)
    too_far = torch.relu(-difference - beta)
    return (too_close + too_far).mean()


def with_stop(sentence: str) -> str:
    """Add a full stop to a sentence that does not end with punctuation (train_SNCSE.py:511-516)."""
    if ends_with_punctuation(sentence):
        return sentence
    return f"{sentence} ."


def ends_with_punctuation(sentence: str) -> bool:
    return sentence.rstrip().endswith(PUNCTUATION)


# ---------------------------------------------------------------- negation


# A verb in the present or past is replaced by a form of "do", "not", and its lemma. The tag
# of the verb decides the form:
FORMS_OF_DO = {"VBP": "do", "VBZ": "does", "VBD": "did"}
AUXILIARIES = ("aux", "auxpass")  # relations
ROOT = "ROOT"  # the relation of the word that depends on no other
FORMS_OF_BE = ("am", "is", "was", "are", "were")
MODALS = ("can", "could", "will", "would", "shall", "should", "may", "must", "might")
NEGATED_BY_NOT = (*FORMS_OF_BE, *MODALS)  # roots that are negated by a "not" after them


@dataclass(frozen=True)
class Word:
    """A word of a parsed sentence."""

    text: str
    relation: str  # to the word that it depends on, as spaCy names it
    tag: str  # of the Penn Treebank
    lemma: str


class Negator:
    """Negates sentences with a parser, and parses each sentence once."""

    def __init__(self):
        try:
            self.parser = load_parser(exclude=["ner"])
        except BadInput as error:
            raise BadInput(
                f"sncse.soft_negatives: negating a sentence needs a parser, but {error}. Install"
                " one with pip install 'csebench[syntax]', or in a clone with pip install -e"
                " '.[syntax]'."
            ) from None
        self.negations: dict[str, str] = {}  # negation by sentence

    def negate(self, sentences: list[str]) -> list[str]:
        """Negate sentences as the official trainer finds them negated.

        A sentence without punctuation at its end is not parsed, but gets a "Not" before it. The
        official trainer adds a full stop to such a sentence before it looks its negation up, so it
        does not find the one that was made (train_SNCSE.py:511-514, 681-686).
        """
        unparsed = []
        for sentence in dict.fromkeys(sentences):
            if sentence in self.negations:
                continue
            if ends_with_punctuation(sentence):
                unparsed.append(sentence)
            else:
                self.negations[sentence] = f"Not {sentence}"
        parsed_sentences = self.parser.pipe(unparsed, batch_size=PARSER_BATCH)
        for sentence, parsed in zip(unparsed, parsed_sentences, strict=True):
            words = [Word(word.text, word.dep_, word.tag_, word.lemma_) for word in parsed]
            self.negations[sentence] = negation(words)
        return [self.negations[sentence] for sentence in sentences]


def negation(words: Sequence[Word]) -> str:
    """Negate a parsed sentence (generate_soft_negative_samples.py:9-54).

    If the sentence has a "not", the first one is left out. Otherwise its first auxiliary or its
    root is negated, whichever comes first. If that word cannot be negated, the sentence gets a
    "Not" before it.

    Returns:
        The words, with spaces between them.
    """
    texts = [word.text for word in words]
    if "not" in texts:
        texts.remove("not")
        return " ".join(texts)
    index = auxiliary_or_root(words)
    if index is not None:
        negated = negated_verb(words[index])
        if negated is not None:
            texts[index] = negated
            return " ".join(texts)
    return " ".join(["Not", *texts])


def auxiliary_or_root(words: Sequence[Word]) -> int | None:
    """Return the index of the first auxiliary or root of a sentence, or None if it has neither."""
    for index, word in enumerate(words):
        if word.relation in AUXILIARIES or word.relation == ROOT:
            return index
    return None


def negated_verb(word: Word) -> str | None:
    """Negate an auxiliary or the root of a sentence.

    Returns:
        Its text with a "not" after it, or a form of "do not" and its lemma. None if the root is
        neither a form of "be", nor a modal, nor in the present or past tense.
    """
    is_auxiliary = word.relation in AUXILIARIES
    if is_auxiliary or word.text.lower() in NEGATED_BY_NOT:
        return f"{word.text} not"
    if word.tag in FORMS_OF_DO:
        return f"{FORMS_OF_DO[word.tag]} not {word.lemma}"
    return None
