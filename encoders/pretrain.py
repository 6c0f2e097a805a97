"""Make an encoder like bert-mini-wiki: a WordPiece vocabulary and a small BERT, by masked LM on a
text file.

    python encoders/pretrain.py sentences.txt --out encoders/mine --steps 13000

The defaults are those of bert-mini-wiki. The same command resumes a run that was stopped, from its
last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertTokenizerFast,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainingArguments,
)
from transformers.trainer_utils import get_last_checkpoint

from csebench.base.files import sha256
from csebench.base.models import model_sha256
from csebench.data.corpus import read_lines
from csebench.plan.schema.declarations import TrainingSettings

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HELD_OUT = 2_000  # last lines of the corpus, for the loss in the model card
EVALUATIONS = 20  # of the held-out loss, each with a checkpoint
POSITIONS = 256  # tokens that the encoder can read, or --max-length if that is more
DROPOUT = 0.1  # BERT's, in the configuration that is written: contrastive methods need it


def train_tokenizer(sentences: Sequence[str], vocab_size: int) -> BertTokenizerFast:
    """Lower-cased WordPiece with BERT's own normalisation and pre-tokenisation; the same sentences,
    the same pieces.

    The library numbers the characters inside words in the order of a hash map, which differs in
    every process, and breaks ties between equally frequent pieces by these numbers. Given in order,
    as if they were special, they do not.
    """
    wordpiece = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    wordpiece.normalizer = normalizers.BertNormalizer(lowercase=True)
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    wordpiece.decoder = decoders.WordPiece()
    inside = set()
    for sentence in sentences:
        words = wordpiece.pre_tokenizer.pre_tokenize_str(
            wordpiece.normalizer.normalize_str(sentence)
        )
        inside.update(letter for word, _ in words for letter in word[1:])
    numbered = [*SPECIAL, *(f"##{letter}" for letter in sorted(inside))]
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=numbered, show_progress=False
    )
    wordpiece.train_from_iterator(sentences, trainer)
    vocab = wordpiece.get_vocab()
    return BertTokenizerFast(
        vocab=dict(sorted(vocab.items(), key=lambda item: item[1])), do_lower_case=True
    )


class Tokenised(Dataset):
    """Sentences as the collator takes them, tokenised when they are asked for."""

    def __init__(self, sentences: Sequence[str], tokenizer: BertTokenizerFast, max_length: int):
        self.sentences, self.tokenizer, self.max_length = sentences, tokenizer, max_length

    def __len__(self) -> int:
        return len(self.sentences)

    def __getitem__(self, index: int) -> dict:
        text = self.sentences[index]
        return self.tokenizer(
            text, truncation=True, max_length=self.max_length, return_special_tokens_mask=True
        )


def parser() -> argparse.ArgumentParser:
    formatter = argparse.ArgumentDefaultsHelpFormatter
    options = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], formatter_class=formatter
    )
    options.add_argument("corpus", type=Path, help="text file, one sentence per line")
    options.add_argument("--out", type=Path, required=True, help="folder of the encoder")
    options.add_argument(
        "--steps", type=int, required=True, help="optimiser steps; bert-mini-wiki: 13,000"
    )
    options.add_argument("--batch-size", type=int, default=96, help="sentences per step")
    options.add_argument("--max-length", type=int, default=128, help="tokens per sentence")
    options.add_argument("--layers", type=int, default=4, help="transformer layers")
    options.add_argument(
        "--hidden", type=int, default=256, help="size of hidden states, a multiple of --heads"
    )
    options.add_argument("--heads", type=int, default=4, help="attention heads")
    options.add_argument("--vocab-size", type=int, default=8192, help="word pieces")
    options.add_argument(
        "--learning-rate", type=float, default=1e-3, help="peak; linear warm-up and decay"
    )
    options.add_argument(
        "--clip",
        type=float,
        default=TrainingSettings.model_fields["clip"].default,
        help="gradient norm",
    )
    options.add_argument(
        "--mask-probability", type=float, default=0.2, help="share of the tokens to mask"
    )
    options.add_argument("--seed", type=int, default=42, help="of weights, order and masks")
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parser()
    args = options.parse_args(arguments)
    sentences = read_lines(args.corpus)
    held = min(HELD_OUT, len(sentences) // 20)
    if held == 0:
        options.error(
            f"{args.corpus}: {len(sentences)} lines; at least 20 are needed, some are held out."
        )
    tokenizer = train_tokenizer(sentences[:-held], args.vocab_size)

    # without dropout: a small model on much text underfits
    torch.manual_seed(args.seed)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=args.hidden,
        num_hidden_layers=args.layers,
        num_attention_heads=args.heads,
        intermediate_size=4 * args.hidden,
        max_position_embeddings=max(POSITIONS, args.max_length),
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    checkpoints = args.out / "checkpoints"
    every = max(1, args.steps // EVALUATIONS)
    training = TrainingArguments(
        checkpoints,
        max_steps=args.steps,
        per_device_train_batch_size=args.batch_size,
        learning_rate=args.learning_rate,
        warmup_steps=round(0.03 * args.steps),
        weight_decay=0.01,
        adam_beta2=0.98,
        adam_epsilon=1e-6,
        max_grad_norm=args.clip,
        bf16=True,
        use_cpu=not torch.cuda.is_available(),
        eval_strategy="steps",
        eval_steps=every,
        save_steps=every,
        save_total_limit=1,
        logging_steps=every,
        remove_unused_columns=False,  # the collator reads special_tokens_mask
        report_to="none",
        seed=args.seed,
    )
    trainer = Trainer(
        BertForMaskedLM(config),
        training,
        DataCollatorForLanguageModeling(tokenizer, mlm_probability=args.mask_probability),
        Tokenised(sentences[:-held], tokenizer, args.max_length),
        Tokenised(sentences[-held:], tokenizer, args.max_length),
    )
    trainer.train(
        resume_from_checkpoint=get_last_checkpoint(checkpoints) if checkpoints.exists() else None
    )

    # weights in half precision, to be computed in single
    model = trainer.model
    model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = DROPOUT
    model.save_pretrained(
        args.out, state_dict={name: w.detach().half() for name, w in model.named_parameters()}
    )
    # not its owner alone
    (args.out / "model.safetensors").chmod((args.out / "config.json").stat().st_mode)
    tokenizer.save_pretrained(args.out)
    facts = vars(args) | {
        "corpus": args.corpus.name,
        "out": args.out.name,
        "corpus_sha256": sha256(args.corpus),
    }
    facts |= {"sentences": len(sentences) - held, "held_out": held}
    curve = [point for point in trainer.state.log_history if "eval_loss" in point]
    (args.out / "pretraining.json").write_text(
        json.dumps(facts | {"curve": curve}, indent=2) + "\n"
    )
    (args.out / "README.md").write_text(
        f"# {args.out.name}\n\nA BERT of {args.layers} layers, hidden size {args.hidden},"
        f" {args.heads} heads and {len(tokenizer)} lower-cased WordPieces, pre-trained by masked LM"
        " (`encoders/pretrain.py`; settings and curve in `pretraining.json`) on"
        f" {len(sentences) - held:,} sentences of `{args.corpus.name}`. Held-out loss:"
        f" {curve[-1]['eval_loss']:.3f} ({held:,} sentences). Weights are stored in half"
        " precision.\n"
    )
    shutil.rmtree(checkpoints)
    print(f"{args.out}: its revision, for a file of config/, is {model_sha256(args.out)}")


if __name__ == "__main__":
    main()
