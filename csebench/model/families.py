"""The table of encoders. For each architecture it states the poolers to evaluate with, whether
csebench trains it, and whether csebench computes its layers one by one.

docs/encoders.md shows this table, and tests/unit/test_encoders.py tests every row with a tiny
model. An architecture that is not in the table is tried out when it is opened. Such an architecture
is never trained.
"""

from dataclasses import dataclass
from typing import get_args

from csebench.base.errors import BadInput
from csebench.plan.schema.declarations import POOLERS, Averages, LastToken

AVERAGES: tuple[str, ...] = get_args(Averages)
LAST_TOKEN: tuple[str, ...] = get_args(LastToken)
# the poolers of a model that reads both ways, and of one without a pooler layer
ENCODER_POOLERS = tuple(pooler for pooler in POOLERS if pooler not in LAST_TOKEN)
NO_POOLER = tuple(pooler for pooler in ENCODER_POOLERS if pooler != "cls")
BERT_DROPOUT = ("hidden_dropout_prob", "attention_probs_dropout_prob")
OTHER_TOKENS = (
    "methods need one special token before a sentence and one behind it, which it has not"
)
LEFT_TO_RIGHT = "it reads from left to right, so its first token knows nothing of the sentence"
TWO_HALVES = "it is an encoder and a decoder, and methods train an encoder alone"
NOT_TRIED = "training it has not been tried"


@dataclass(frozen=True)
class EncoderFamily:
    """One row of the table.

    Attributes:
        title: the names that people use.
        model_types: the names in `config.json`.
        poolers: the poolers that the family can be evaluated with. Some of them also need special
            tokens from the tokenizer.
        dropout: keys of `config.json` that set dropout. Empty for a family that is not trained.
        not_trained: the reason why the family is not trained.
        states: which hidden states are pooled, if a model has several kinds.
        encoder_only: load the encoder half of an encoder-decoder.
        bert_layers: transformers gives it the same modules as BERT, so that `bert_layer` computes
            its layers one by one.
    """

    title: str
    model_types: tuple[str, ...]
    poolers: tuple[str, ...] = ENCODER_POOLERS
    dropout: tuple[str, ...] = ()
    not_trained: str = ""
    states: str = ""
    encoder_only: bool = False
    bert_layers: bool = False


FAMILIES = (
    EncoderFamily("BERT", ("bert",), dropout=BERT_DROPOUT, bert_layers=True),
    EncoderFamily("RoBERTa", ("roberta",), dropout=BERT_DROPOUT, bert_layers=True),
    EncoderFamily(
        "XLM-R, CamemBERT",
        ("xlm-roberta", "camembert"),
        dropout=BERT_DROPOUT,
        bert_layers=True,
    ),
    EncoderFamily("ERNIE", ("ernie",), dropout=BERT_DROPOUT, bert_layers=True),
    EncoderFamily("data2vec", ("data2vec-text",), dropout=BERT_DROPOUT, bert_layers=True),
    EncoderFamily("MPNet", ("mpnet",), dropout=BERT_DROPOUT),
    EncoderFamily("ALBERT", ("albert",), dropout=BERT_DROPOUT),
    EncoderFamily("ELECTRA", ("electra",), NO_POOLER, BERT_DROPOUT, bert_layers=True),
    EncoderFamily(
        "DeBERTa, DeBERTa-v2, DeBERTa-v3", ("deberta", "deberta-v2"), NO_POOLER, BERT_DROPOUT
    ),
    EncoderFamily("DistilBERT", ("distilbert",), NO_POOLER, ("dropout", "attention_dropout")),
    EncoderFamily(
        "ModernBERT",
        ("modernbert",),
        NO_POOLER,
        ("embedding_dropout", "attention_dropout", "mlp_dropout"),
    ),
    EncoderFamily("NomicBERT", ("nomic_bert",), NO_POOLER, BERT_DROPOUT),
    EncoderFamily(
        "BERT's relatives",
        ("megatron-bert", "rembert", "roberta-prelayernorm", "xlm-roberta-xl"),
        dropout=BERT_DROPOUT,
    ),
    EncoderFamily("RoFormer", ("roformer",), NO_POOLER, BERT_DROPOUT),
    EncoderFamily("XLNet", ("xlnet",), AVERAGES, not_trained=OTHER_TOKENS),
    EncoderFamily(
        "T5, mT5, UMT5",
        ("t5", "mt5", "umt5"),
        AVERAGES,
        not_trained=TWO_HALVES,
        states="those of the encoder",
        encoder_only=True,
    ),
    EncoderFamily(
        "BART, mBART",
        ("bart", "mbart"),
        ("avg",),
        not_trained=TWO_HALVES,
        states="those of the decoder, which reads the sentence too, as `AutoModel` gives them",
    ),
    EncoderFamily("GPT-2", ("gpt2",), (*AVERAGES, *LAST_TOKEN), not_trained=LEFT_TO_RIGHT),
    EncoderFamily(
        "Llama, Mistral, Qwen2, Qwen3, Gemma, Gemma 2, Gemma 3",
        ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text"),
        (*AVERAGES, *LAST_TOKEN),
        not_trained=LEFT_TO_RIGHT,
    ),
)
OTHER = EncoderFamily(
    "any other with a last hidden state for every token", (), POOLERS, not_trained=NOT_TRIED
)
BY_MODEL_TYPE = {model_type: family for family in FAMILIES for model_type in family.model_types}
BERT_LAYERS = ", ".join(family.title for family in FAMILIES if family.bert_layers)  # for messages


def family_of(model_type: str) -> EncoderFamily:
    """Return the row of an architecture, or OTHER if the table does not name it."""
    return BY_MODEL_TYPE.get(model_type, OTHER)


def dropout_keys(model_type: str, what: str) -> tuple[str, ...]:
    """Return the keys of `config.json` that set the dropout of an architecture.

    Raises:
        BadInput: the architecture is not trained.
    """
    family = family_of(model_type)
    if not family.dropout:
        raise BadInput(
            f"{what}: {model_type} is not trained, only evaluated: {family.not_trained}"
            " (docs/encoders.md)."
        )
    return family.dropout


def encoder_table() -> str:
    """Return the table in Markdown, as docs/encoders.md shows it."""
    lines = [
        "| architecture | `model_type` | evaluated with | trained | layers one by one |",
        "|---|---|---|---|---|",
    ]
    for family in (*FAMILIES, OTHER):
        names = "any other"
        if family.model_types:
            names = ", ".join(f"`{name}`" for name in family.model_types)
        poolers = poolers_in_words(family)
        if family.states:
            poolers += f"; hidden states are {family.states}"
        trained = "yes"
        if not family.dropout:
            trained = f"no: {family.not_trained}"
        layers = "yes" if family.bert_layers else "no"
        lines.append(f"| {family.title} | {names} | {poolers} | {trained} | {layers} |")
    return "\n".join(lines)


def poolers_in_words(family: EncoderFamily) -> str:
    """Return the text of the table about the poolers of a family."""
    if family is OTHER:
        return "every pooler for which it gives what is needed, found out when it is opened"
    if family.poolers == ENCODER_POOLERS:
        return "every pooler of encoders"
    if family.poolers == NO_POOLER:
        return "every pooler of encoders but `cls`: it has no pooler layer"
    return ", ".join(f"`{pooler}`" for pooler in family.poolers)
