"""PromptBERT: the vector is the state at [MASK] of a sentence that stands in a template.

Idea: BERT is asked to fill the gap in `This sentence of "…" means [MASK].` Two templates give two
views of a sentence. What a template says without a sentence is the same in all vectors, so it is
taken off in training (template denoising).

    loss = -log exp(cos(z1_i, z2_i)/τ) / Σ_j exp(cos(z1_i, z2_j)/τ),   mean over i
    z1 = MLP(h1 - b1),  z2 = MLP(h2 - b2)
    h1, h2 = states at [MASK] of the sentence in template 1 and in template 2
    b1, b2 = states at [MASK] of these templates without a sentence, whose words keep the positions
             that they have around the sentence

Source: official code: kongds/Prompt-BERT prompt_bert/models.py:78-285, run.sh (unsup-bert).
Inputs: a batch of N sentences; h, b, z (N, D). At test, the vector is h of template 1.
Relations: simcse's loss and head on other views. msse pools [MASK], too, in a shorter template.
"""

import copy
from dataclasses import replace

import torch
from tokenizers.processors import TemplateProcessing
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from csebench.base.errors import BadInput
from csebench.model.encoder import Encoder
from csebench.model.layers import Head, to_device
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.losses import info_nce
from csebench.train.method import Method as Base
from csebench.train.method import View, Views

# The pooler `mask` goes on with `"[X]" means [MASK].`
OPENING_1 = "This sentence of"  # at test, too
OPENING_2 = "This sentence :"

DECLARATION = {
    "name": "prompt_bert",
    "version": 1,
    "title": "PromptBERT",
    "paper": "Jiang et al. 2022 (EMNLP)",
    "citation": (
        """@inproceedings{jiang2022promptbert, title={{PromptBERT}: Improving {BERT} Sentence
Embeddings with Prompts}, author={Jiang, Ting and Jiao, Jian and Huang, Shaohan and Zhang, Zihan and
Wang, Deqing and Zhuang, Fuzhen and Wei, Furu and Huang, Haizhen and Deng, Denvy and Zhang, Qi},
booktitle={EMNLP}, year={2022}}"""
    ),
    "refuses": {"queue": "a queue would hold vectors without template denoising"},
    "trains": "encoder, head",
    "colours": {"": "#3A5A98"},
    "params": {
        "steps": (3907, "run.sh: 1 epoch of 10^6 sentences at batch 256"),
        "batch_size": (256, "run.sh, unsup-bert"),
        "learning_rate": (1e-5, "run.sh, unsup-bert"),
        "max_length": (32, "run.sh; words alone, without special tokens and template"),
        "evaluate_every": (125, "run.sh"),
        "pooler": ("mask", "run.sh: the template ends with `means [MASK].`"),
        "temperature": (0.05, "run.sh"),
        "denoising": (True, "run.sh: mask_embedding_sentence_delta"),
    },
    "keeps": ["pooler"],
    "variants": {
        "default": (
            "as released",
            (
                "the command unsup-bert of run.sh: two templates, whose own states are taken off in"
                " training"
            ),
        ),
        "without_denoising": {"denoising": False},
    },
    "deviations": [
        "the paper was not at hand; loss and settings are the code's, values its README's",
        (
            "the official evaluation adds a full stop to a test sentence that does not end with one"
            " of .?\"' (evaluation.py:201); here, sentences are embedded as they are"
        ),
        (
            "the best step is chosen by h on STS-B dev, which is the vector at test; the official"
            " trainer chooses it by h - b (models.py:288-302, 361-368)"
        ),
        (
            "the printed 78.54 ± 0.15 is of ten seeds; the released checkpoint is the best of them"
            " (78.87)"
        ),
        (
            "the templates are those for BERT; the official script has others for RoBERTa, with"
            " apostrophes in place of quotation marks, not run here"
        ),
        (
            "the exported tokenizer puts the opening of template 1 before every sentence, so other"
            " programs must not add it"
        ),
    ],
}


class TwoTemplates(Base):
    """A method that reads sentences in two templates, which differ in their opening.

    The exported tokenizer puts the opening of template 1 before every sentence.

    Args:
        name: of the method, for messages.
        opening1, opening2: the words before the template of the pooler `mask`.

    Attributes:
        before1, before2: token ids before a sentence in template 1 and in template 2.
        after: token ids behind a sentence without a template.
    """

    def __init__(
        self,
        encoder: Encoder,
        params: Hyperparameters,
        name: str,
        opening1: str,
        opening2: str,
    ):
        super().__init__(encoder, params)
        if self.p.pooler != "mask":
            raise BadInput(f"{name}.pooler: {self.p.pooler}: the template needs the pooler `mask`.")
        tokenizer = encoder.tokenizer
        before, _, self.after = encoder.parts(tokenizer("")["input_ids"])
        first = before[:1]  # [CLS]
        self.before1 = [*first, *tokenizer(opening1, add_special_tokens=False)["input_ids"]]
        self.before2 = [*first, *tokenizer(opening2, add_special_tokens=False)["input_ids"]]
        open_sentences_with(encoder, self.before1, self.after)

    def ids(self, sentences: list[str]) -> list[list[int]]:
        """Return token ids of sentences behind the opening of template 1.

        A sentence is cut after `max_length` tokens. The opening does not count.
        """
        special = self.encoder.special_tokens
        return self.encoder.ids(sentences, special.before + self.p.max_length + special.after)

    def in_template(self, rows: list[list[int]], before: list[int]) -> dict[str, Tensor]:
        """Make a padded batch of sentences in a template.

        Args:
            rows: token ids of sentences, with the opening of template 1.
            before: token ids of the template's opening.
        """
        filled = []
        for row in self.encoder.in_template(rows, self.p.pooler):
            filled.append([*before, *row[len(self.before1) :]])
        return self.encoder.pad(filled)


class Method(TwoTemplates):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params, "prompt_bert", OPENING_1, OPENING_2)
        self.mlp = Head(encoder.size)

    def views(self, sentences: list[str]) -> Views:
        rows = self.ids(sentences)
        return Views(self.denoised(rows, self.before1), self.denoised(rows, self.before2))

    def denoised(self, rows: list[list[int]], before: list[int]) -> View:
        """Encode sentences in a template, and take the template's own state off.

        See `in_template` for the arguments.
        """
        view = self.encode(self.in_template(rows, before))
        pooled = view.pooled  # (N, D)
        if self.p.denoising:
            template = self.without_words(before)  # (L, T)
            states = self.pool(self.encoder(template, self.p.pooler))  # (L, D)
            template_length = template["attention_mask"][0].sum()
            lengths = view.batch["attention_mask"].sum(1) - template_length  # (N,)
            pooled = denoise(pooled, states, to_device(lengths, pooled.device))
        return replace(view, z=self.mlp(pooled), pooled=pooled)

    def without_words(self, before: list[int]) -> dict[str, Tensor]:
        """Make a batch of a template around 0, 1, … max_length hidden words, (L, T).

        Attention does not see a hidden word. But what follows has the position that it has after a
        sentence of so many words.

        Args:
            before: token ids of the template's opening.
        """
        any_word = before[-1:]
        rows = []
        for length in range(self.p.max_length + 1):
            rows.append([*self.before1, *any_word * length, *self.after])
        batch = self.in_template(rows, before)
        mask = batch["attention_mask"]  # (L, T)
        lengths = mask.sum(1, keepdim=True) - mask[0].sum()  # (L, 1)
        start = len(before) + 1  # a quotation mark opens the sentence
        positions = torch.arange(mask.shape[1])  # (T,)
        is_hidden = (positions >= start) & (positions < start + lengths)  # (L, T)
        return batch | {"attention_mask": mask.masked_fill(is_hidden, 0)}

    def loss(self, views: Views) -> Tensor:
        return info_nce(views.z1, views.z2, self.p.temperature)


def denoise(states: Tensor, template_states: Tensor, lengths: Tensor) -> Tensor:
    """Take the state of the template off, (N, D) -> (N, D) (models.py:166-172).

    Args:
        states: (N, D) states at [MASK] of sentences in the template.
        template_states: (L, D) states at [MASK] of the template around 0, 1, … hidden words.
        lengths: (N,) number of tokens of each sentence, without special tokens and template.
    """
    return states - template_states[lengths]


def open_sentences_with(encoder: Encoder, before: list[int], after: list[int]) -> None:
    """Let the tokenizer of an encoder put token ids before and after every sentence.

    They count as special tokens, and are exported with the tokenizer.
    """
    tokenizer = encoder.tokenizer
    opening = {"id": "opening", "ids": before, "tokens": tokenizer.convert_ids_to_tokens(before)}
    closing = {"id": "closing", "ids": after, "tokens": tokenizer.convert_ids_to_tokens(after)}
    backend = copy.deepcopy(tokenizer.backend_tokenizer)
    backend.post_processor = TemplateProcessing(
        single="opening $A closing", special_tokens=[opening, closing]
    )
    # A BertTokenizer replaces the post-processor by its own when it is loaded. This class keeps it.
    encoder.tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend,
        model_max_length=tokenizer.model_max_length,
        truncation_side=tokenizer.truncation_side,
        padding_side=tokenizer.padding_side,
        **tokenizer.special_tokens_map,
    )
    del encoder.special_tokens  # counted with the old tokenizer
