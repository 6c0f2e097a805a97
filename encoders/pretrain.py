"""Make an encoder like bert-mini-wiki from a text file.

It has a WordPiece vocabulary and a small BERT, trained by masked LM.

    python encoders/pretrain.py sentences.txt --out encoders/mine --steps 13000

The defaults are those of bert-mini-wiki, which had 13,000 steps. The corpus may be compressed (.gz,
.xz). The same command resumes a run that was stopped, from its last checkpoint.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from torch.utils.data import Dataset
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertTokenizerFast,
    DataCollatorForLanguageModeling,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_utils import get_last_checkpoint

from csebench.base.files import decoded, read_compressed, sha256
from csebench.base.models import model_sha256
from csebench.data.corpus import split_lines
from csebench.plan.schema.declarations import TrainingSettings

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HELD_OUT = 2_000  # last lines of the corpus, for the loss in the model card
EVALUATIONS = 20  # of the held-out loss, each with a checkpoint
POSITIONS = 256  # tokens that the encoder can read, or --max-length if that is more
MIB = 2**20
# Options that pretraining.json does not state: they say when to stop and how files are cut.
UNRECORDED = ("minutes", "parts")
HEADER = MIB // 16  # bytes that are kept free in each part for its header
TOKENISED_AT_ONCE = 10_000  # sentences
DROPOUT = 0.1  # BERT's; written into the configuration, because contrastive methods need it


def main(arguments: list[str] | None = None) -> None:
    options = parser()
    args = options.parse_args(arguments)
    limit = TimeLimit(args.minutes)
    refuse_small_parts(args, options)
    sentences = split_lines(decoded(read_compressed(args.corpus), args.corpus), args.corpus)
    held_out = min(HELD_OUT, len(sentences) // 20)
    if held_out == 0:
        options.error(
            f"{args.corpus}: {len(sentences)} lines; at least 20 are needed, some are held out."
        )
    tokenizer = train_tokenizer(sentences[:-held_out], args.vocab_size)
    trainer = make_trainer(args, tokenizer, sentences[:-held_out], sentences[-held_out:])
    trainer.add_callback(limit)
    checkpoint = None
    checkpoints = checkpoint_folder(args)
    if checkpoints.exists():
        checkpoint = get_last_checkpoint(checkpoints)
    trainer.train(resume_from_checkpoint=checkpoint)
    if trainer.state.global_step < args.steps:
        checkpoint = get_last_checkpoint(checkpoints)
        tokenizer.save_pretrained(checkpoint)
        print(
            f"{checkpoint}: stopped after step {trainer.state.global_step:,} of {args.steps:,},"
            f" because {args.minutes:g} minutes are over. The same command goes on from there."
        )
        return

    save_model(trainer.model, args.out, args.parts)
    tokenizer.save_pretrained(args.out)
    curve = [point for point in trainer.state.log_history if "eval_loss" in point]
    write_facts(args, len(sentences) - held_out, held_out, curve)
    write_model_card(args, len(sentences) - held_out, held_out, len(tokenizer), curve)
    shutil.rmtree(checkpoints)
    print(f"{args.out}: its revision, for a file of config/, is {model_sha256(args.out)}")


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(
        description=__doc__.splitlines()[0],
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    options.add_argument(
        "corpus", type=Path, help="text file, one sentence per line; may be .gz or .xz"
    )
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
    options.add_argument(
        "--minutes",
        type=float,
        help="stop after the step in which this time is over, and keep a checkpoint",
    )
    options.add_argument("--parts", type=int, help="write the weights in files below so many MiB")
    return options


def refuse_small_parts(args: argparse.Namespace, options: argparse.ArgumentParser) -> None:
    """Refuse a size of parts that one matrix alone exceeds, because matrices are not split."""
    if args.parts is None:
        return
    rows = max(args.vocab_size, 4 * args.hidden, POSITIONS, args.max_length)
    largest = 2 * rows * args.hidden  # bytes, in half precision
    if largest > args.parts * MIB - HEADER:
        options.error(
            f"--parts {args.parts}: the largest matrix has {largest / MIB:.1f} MiB, and a matrix is"
            " not split; state more."
        )


# ---------------------------------------------------------------- training


class TimeLimit(TrainerCallback):
    """Stops training with a checkpoint. The time counts from the making of this object."""

    def __init__(self, minutes: float | None):
        self.end = None
        if minutes is not None:
            self.end = time.monotonic() + 60 * minutes

    def on_step_end(self, args, state, control, **kwargs):
        if self.end is not None and time.monotonic() >= self.end:
            control.should_save = True
            control.should_training_stop = True


def train_tokenizer(sentences: Sequence[str], vocab_size: int) -> BertTokenizerFast:
    """Train lower-cased WordPiece with BERT's own normalisation and pre-tokenisation.

    The same sentences give the same pieces. The library does not do so by itself: it numbers the
    characters inside words in the order of a hash map, which differs in every process, and breaks
    ties between equally frequent pieces by these numbers. Characters that are given as special
    tokens are numbered in the given order.
    """
    wordpiece = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    wordpiece.normalizer = normalizers.BertNormalizer(lowercase=True)
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    wordpiece.decoder = decoders.WordPiece()
    characters = [f"##{character}" for character in sorted(inner_characters(sentences, wordpiece))]
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=[*SPECIAL, *characters], show_progress=False
    )
    wordpiece.train_from_iterator(sentences, trainer)
    vocab = wordpiece.get_vocab()
    by_number = sorted(vocab.items(), key=lambda item: item[1])
    return BertTokenizerFast(vocab=dict(by_number), do_lower_case=True)


def inner_characters(sentences: Sequence[str], wordpiece: Tokenizer) -> set[str]:
    """Collect the characters inside words, which are not the first of their word."""
    characters: set[str] = set()
    for sentence in sentences:
        normal = wordpiece.normalizer.normalize_str(sentence)
        for word, _ in wordpiece.pre_tokenizer.pre_tokenize_str(normal):
            characters.update(word[1:])
    return characters


class Tokenised(Dataset):
    """Sentences as the collator takes them. All are tokenised once, into one array."""

    def __init__(self, sentences: Sequence[str], tokenizer: BertTokenizerFast, max_length: int):
        arrays = []
        lengths = [0]
        for start in range(0, len(sentences), TOKENISED_AT_ONCE):
            texts = list(sentences[start : start + TOKENISED_AT_ONCE])
            rows = tokenizer(texts, truncation=True, max_length=max_length)["input_ids"]
            lengths.extend(len(row) for row in rows)
            arrays.append(np.concatenate([np.array(row, np.int32) for row in rows]))
        self.tokens = np.concatenate(arrays)
        self.bounds = np.cumsum(lengths)  # sentence i is tokens[bounds[i] : bounds[i + 1]]

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, index: int) -> dict:
        tokens = self.tokens[self.bounds[index] : self.bounds[index + 1]].tolist()
        return {
            "input_ids": tokens,
            "token_type_ids": [0] * len(tokens),
            "attention_mask": [1] * len(tokens),
            "special_tokens_mask": [1, *[0] * (len(tokens) - 2), 1],  # [CLS] and [SEP]
        }


def make_trainer(
    args: argparse.Namespace,
    tokenizer: BertTokenizerFast,
    sentences: Sequence[str],
    held_out: Sequence[str],
) -> Trainer:
    """Make the trainer of a new BERT."""
    torch.manual_seed(args.seed)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=args.hidden,
        num_hidden_layers=args.layers,
        num_attention_heads=args.heads,
        intermediate_size=4 * args.hidden,
        max_position_embeddings=max(POSITIONS, args.max_length),
        # without dropout, because a small model on much text underfits
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    evaluation_interval = max(1, args.steps // EVALUATIONS)
    training = TrainingArguments(
        checkpoint_folder(args),
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
        eval_steps=evaluation_interval,
        save_steps=evaluation_interval,
        save_total_limit=1,
        logging_steps=evaluation_interval,
        remove_unused_columns=False,  # the collator reads special_tokens_mask
        report_to="none",
        seed=args.seed,
        **gpu_settings(),
    )
    return Trainer(
        BertForMaskedLM(config),
        training,
        DataCollatorForLanguageModeling(tokenizer, mlm_probability=args.mask_probability),
        Tokenised(sentences, tokenizer, args.max_length),
        Tokenised(held_out, tokenizer, args.max_length),
    )


def gpu_settings() -> dict:
    """Return the settings of the trainer that a GPU needs to be busy. A CPU keeps its bits."""
    if not torch.cuda.is_available():
        return {}
    return {
        "optim": "adamw_torch_fused",
        "train_sampling_strategy": "group_by_length",
        "dataloader_num_workers": 4,
    }


def checkpoint_folder(args: argparse.Namespace) -> Path:
    return args.out / "checkpoints"


# ---------------------------------------------------------------- files of the encoder


def save_model(model, folder: Path, parts: int | None = None) -> None:
    """Write the configuration, and the weights in half precision.

    csebench computes with them in single precision.

    Args:
        parts: size in MiB that each file of weights stays below. None writes one file.
    """
    model.config.hidden_dropout_prob = DROPOUT
    model.config.attention_probs_dropout_prob = DROPOUT
    weights = {name: weight.detach().half() for name, weight in model.named_parameters()}
    if parts is None:
        model.save_pretrained(folder, state_dict=weights)
    else:
        model.save_pretrained(folder, state_dict=weights, max_shard_size=parts * MIB - HEADER)
    # the library lets only the owner read the weights
    for file in folder.glob("*.safetensors"):
        file.chmod((folder / "config.json").stat().st_mode)


def write_facts(
    args: argparse.Namespace, sentence_count: int, held_out_count: int, curve: list[dict]
) -> None:
    """Write pretraining.json: settings, corpus and the held-out loss during training."""
    settings = {name: value for name, value in vars(args).items() if name not in UNRECORDED}
    facts = settings | {
        "corpus": args.corpus.name,
        "out": args.out.name,
        "corpus_sha256": sha256(args.corpus),
        "sentences": sentence_count,
        "held_out": held_out_count,
        "curve": curve,
    }
    (args.out / "pretraining.json").write_text(json.dumps(facts, indent=2) + "\n")


def write_model_card(
    args: argparse.Namespace,
    sentence_count: int,
    held_out_count: int,
    vocab_size: int,
    curve: list[dict],
) -> None:
    (args.out / "README.md").write_text(
        f"# {args.out.name}\n\nA BERT of {args.layers} layers, hidden size {args.hidden},"
        f" {args.heads} heads and {vocab_size} lower-cased WordPieces, pre-trained by masked LM"
        " (`encoders/pretrain.py`; settings and curve in `pretraining.json`) on"
        f" {sentence_count:,} sentences of `{args.corpus.name}`. Held-out loss:"
        f" {curve[-1]['eval_loss']:.3f} ({held_out_count:,} sentences). Weights are stored in half"
        " precision.\n"
    )


if __name__ == "__main__":
    main()
