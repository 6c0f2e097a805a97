"""`csebench pretrain`: a WordPiece vocabulary and a small BERT by masked LM, from one sentence per line."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from pydantic import BaseModel, Field
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

from csebench.base.display import bar
from csebench.base.errors import BadInput, RunFailed
from csebench.base.files import read_json, read_object, sha256, share_weights, write_json, write_text
from csebench.base.model_files import LISTED, WEIGHTS, list_files
from csebench.base.progress import Progress
from csebench.base.provenance import processor
from csebench.base.run_dir import PROGRESS, remove_checkpoint
from csebench.data.corpus import Lines
from csebench.model.layers import additive, can_compile, to_device
from csebench.train import checkpoint
from csebench.train.checkpoint import TrainState
from csebench.train.loop import CHECKPOINT_SECONDS, run_steps, stop_signals
from csebench.train.mlm import mask_batch, mask_tokens, masked_lm_loss

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HELD_OUT = 2_000  # last lines of the corpus, for the loss in the model card
EVALUATIONS = 20  # points of the held-out curve
CHUNK = 5_000  # sentences tokenised in one call
POSITIONS = 256  # that the encoder can read
CONFIG, REPORT = "config.json", "pretraining.json"
PRECISION = torch.bfloat16  # of matrix products; weights and the loss are in fp32


def train_tokenizer(sentences: Sequence[str], vocab_size: int) -> BertTokenizerFast:
    """Lower-cased WordPiece with BERT's own normalisation and pre-tokenisation; the same sentences, the same pieces.

    The library numbers the characters inside words in the order of a hash map, which differs in every process, and
    breaks ties between equally frequent pieces by these numbers. Given in order, as if they were special, they do not.
    """
    wordpiece = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    wordpiece.normalizer = normalizers.BertNormalizer(lowercase=True)
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    wordpiece.decoder = decoders.WordPiece()
    inside = set()
    for sentence in sentences:
        words = wordpiece.pre_tokenizer.pre_tokenize_str(wordpiece.normalizer.normalize_str(sentence))
        inside.update(letter for word, _ in words for letter in word[1:])
    numbered = [*SPECIAL, *(f"##{letter}" for letter in sorted(inside))]
    trainer = trainers.WordPieceTrainer(vocab_size=vocab_size, special_tokens=numbered, show_progress=False)
    wordpiece.train_from_iterator(sentences, trainer)
    vocab = wordpiece.get_vocab()
    return BertTokenizerFast(vocab=dict(sorted(vocab.items(), key=lambda item: item[1])), do_lower_case=True)


class Sizes(BaseModel):
    """What is read of the config of an encoder to go on from, by the names of `Settings`."""

    layers: int = Field(alias="num_hidden_layers")
    hidden: int = Field(alias="hidden_size")
    heads: int = Field(alias="num_attention_heads")
    vocab_size: int


class Point(BaseModel):
    tokens: int


class Seen(BaseModel):
    """What is read of its pre-training."""

    name: str
    curve: list[Point] = Field(min_length=1)


@dataclass(frozen=True)
class Settings:
    """What decides the encoder, besides the corpus and the seed."""

    tokens: int  # seen, with repetition and without padding; those that `start` saw are counted
    layers: int = 4
    hidden: int = 256
    heads: int = 4
    vocab_size: int = 8192
    batch_tokens: int = 4096  # of a step, with padding
    max_length: int = 128
    learning_rate: float = 1e-3
    warmup: float = 0.03  # share of the steps
    weight_decay: float = 0.01
    mask_probability: float = 0.2
    whole_word: bool = False  # mask all pieces of a word, or none
    snapshots: tuple[int, ...] = ()  # token counts after which the encoder is also kept
    seed: int = 42
    start: Path | None = None  # an encoder of `pretrain` to go on from: its weights and vocabulary

    def check(self) -> None:
        """Raises BadInput where a size is impossible."""
        if self.hidden % self.heads:
            raise BadInput(f"--hidden {self.hidden} is not a multiple of --heads {self.heads}.")
        if self.max_length > POSITIONS:
            raise BadInput(f"--max-length {self.max_length}: the encoder reads {POSITIONS} tokens at most.")
        if self.vocab_size > 2**16:
            raise BadInput(f"--vocab-size {self.vocab_size}: token ids are kept in 2 bytes, at most {2**16}.")

    def seen_before(self) -> dict | None:
        """Name, weights and tokens of the encoder to go on from. Raises BadInput where it does not fit."""
        if self.start is None:
            return None
        for size, value in Sizes.model_validate(read_object(self.start / CONFIG, Sizes)):
            if value != getattr(self, size):
                option = f"--{size.replace('_', '-')}"
                raise BadInput(f"{option} {getattr(self, size)}: {self.start} has {value}; give that.")
        report = read_object(self.start / REPORT, Seen)
        tokens = report["curve"][-1]["tokens"]
        if min((self.tokens, *self.snapshots)) <= tokens:
            raise BadInput(f"--tokens and --snapshots count from the beginning: {self.start} saw {tokens:,} already.")
        return {"name": report["name"], "weights": sha256(self.start / WEIGHTS), "tokens": tokens}


# ---------------------------------------------------------------- data


@dataclass
class TokenIds:
    """Token ids of many sentences in one array: 2 bytes per token, nothing per sentence but its end."""

    ids: np.ndarray  # (tokens,) uint16
    ends: np.ndarray  # (sentences,)

    @classmethod
    def tokenise(cls, sentences: Sequence[str], tokenizer, max_length: int) -> TokenIds:
        ids, lengths = [], []
        for start in bar(range(0, len(sentences), CHUNK), "tokenising", "chunk"):
            rows = tokenizer(sentences[start : start + CHUNK], truncation=True, max_length=max_length)["input_ids"]
            ids.append(np.concatenate(rows, dtype=np.uint16, casting="unsafe"))
            lengths += map(len, rows)
        return cls(np.concatenate(ids), np.cumsum(lengths))

    @property
    def lengths(self) -> np.ndarray:
        return np.diff(self.ends, prepend=0)

    def batch(self, index: np.ndarray, length: int, pad_id: int) -> torch.Tensor:
        """(len(index), length) int64 on the host: these sentences, padded."""
        ends = self.ends[index, None]
        positions = np.where(index > 0, self.ends[index - 1], 0)[:, None] + np.arange(length)
        ids = np.where(positions < ends, self.ids[np.minimum(positions, ends - 1)], pad_id)
        return torch.from_numpy(ids.astype(np.int64))


def batches(lengths: np.ndarray, batch_tokens: int, multiple: int, rng: np.random.Generator) -> list:
    """One epoch in random order, as (indices, padded length) of sentences of similar length.

    All batches of one padded length have equally many rows, as many as fit into `batch_tokens`: with `multiple` 8
    there are max_length / 8 shapes. What does not fill a batch of its length joins the next length; what is left
    over in the end, less than one batch, is not in this epoch.
    """
    order = rng.permutation(len(lengths))
    padded = -(-lengths[order] // multiple) * multiple
    epoch, rest = [], order[:0]
    for length in np.unique(padded):
        rest = np.concatenate([rest, order[padded == length]])
        rows = max(1, batch_tokens // length)
        full = len(rest) // rows * rows
        epoch += [(index, int(length)) for index in rest[:full].reshape(-1, rows)]
        rest = rest[full:]
    epoch = epoch or [(rest, int(length))]
    return [epoch[i] for i in rng.permutation(len(epoch))]


# ---------------------------------------------------------------- masked language modelling


def mask_words(tokenizer, ids, probability, continues):
    """As `mask_batch`, with one decision per word: all pieces of a chosen word are chosen (whole-word masking of
    Devlin et al.'s later checkpoints). 80 / 10 / 10 is still drawn per piece, as there.

    Args:
        ids: (rows, length) on the host.
        continues: (vocabulary,) bool, True at pieces that continue a word (`##…`).
    """
    special = torch.isin(ids, torch.tensor(tokenizer.all_special_ids))
    places = torch.arange(ids.shape[1]).expand_as(ids)
    word = places.masked_fill(continues[ids], 0).cummax(1).values  # where the word of each piece begins
    chosen = torch.rand(ids.shape).gather(1, word) < probability
    return mask_tokens(ids, chosen & ~special, tokenizer.mask_token_id, len(tokenizer), probability=1.0)


class MaskedLanguageModelling:
    """Pre-training as a task of the loop. Masks are drawn on the host, seeded for each batch, so that a resumed run
    needs no random state and the loop does not wait for a GPU."""

    def __init__(self, name, model, tokenizer, rows, test, settings: Settings, out: Path, before: int = 0):
        self.name, self.model, self.tokenizer, self.before, self.out = name, model, tokenizer, before, out
        self.rows, self.test, self.settings = rows, test, settings
        self.device, self.peak_learning_rate = model.device, settings.learning_rate
        self.optimizer = make_optimizer(model, settings.learning_rate, settings.weight_decay)
        self.multiple = 8 if model.device.type == "cuda" else 1  # few shapes to compile, or little padding
        pieces = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
        self.continues = torch.tensor([piece.startswith("##") for piece in pieces])
        self.epoch = lru_cache(maxsize=1)(self._epoch)
        first = self.epoch(0)
        self.per_epoch = len(first)  # the same in every epoch
        self.per_step = sum(rows.lengths[index].sum() for index, _ in first) / self.per_epoch  # tokens, on average
        self.steps = self.step_after(settings.tokens)
        self.snapshots = {self.step_after(tokens): tokens for tokens in settings.snapshots}
        self.evaluations = {round(self.steps * (i + 1) / EVALUATIONS) for i in range(EVALUATIONS)} | {*self.snapshots}

    def step_after(self, tokens: int) -> int:
        """Of this training, when this many tokens are seen, those before it included."""
        return max(1, round((tokens - self.before) / self.per_step))

    def _epoch(self, number: int) -> list:
        rng = np.random.default_rng([self.settings.seed, number])
        return batches(self.rows.lengths, self.settings.batch_tokens, self.multiple, rng)

    def learning_rate(self, step: int) -> float:
        """Linear warm-up, then linear decay to zero."""
        warm = max(1, round(self.settings.warmup * self.steps))
        return self.peak_learning_rate * min((step + 1) / warm, (self.steps - step) / max(1, self.steps - warm))

    def make_step(self, step: int) -> torch.Tensor:
        number, position = divmod(step, self.per_epoch)
        index, length = self.epoch(number)[position]
        ids = self.rows.batch(index, length, self.tokenizer.pad_token_id)
        loss, _ = self.loss(ids, self.settings.seed * 1_000_003 + step)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def loss(self, ids: torch.Tensor, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
        """(loss, share of the masked tokens predicted correctly) of ids (rows, length) on the host."""
        torch.manual_seed(seed)
        if self.settings.whole_word:
            masked, labels = mask_words(self.tokenizer, ids, self.settings.mask_probability, self.continues)
        else:
            masked, labels = mask_batch(self.tokenizer, ids, self.settings.mask_probability)
        masked, real = (to_device(t, self.device) for t in (masked, ids != self.tokenizer.pad_token_id))
        with torch.autocast(self.device.type, PRECISION, enabled=torch.float32 != PRECISION):
            states = self.model.bert(masked, attention_mask=additive(real, PRECISION)).last_hidden_state
            return masked_lm_loss(self.model.cls, states, labels)

    def evaluates(self, step: int) -> bool:
        return step in self.evaluations

    def evaluate(self, state: TrainState) -> None:
        """The held-out loss; and a copy of the encoder where a snapshot is wanted."""
        loss, accuracy = self.held_out()
        if not np.isfinite(loss):
            raise RunFailed(f"{self.name}: held-out loss is {loss} at step {state.step}; lower the learning rate.")
        tokens = self.before + round(state.step * self.per_step)
        point = {"step": state.step, "tokens": tokens, "loss": loss, "accuracy": accuracy}
        state.curve.append(point | {"seconds": round(state.seconds)})
        if state.step in self.snapshots:
            write_model(self.model, self.tokenizer, self.out / "snapshots" / str(self.snapshots[state.step]))

    @torch.no_grad()
    def held_out(self) -> tuple[float, float]:
        """(loss, accuracy) on all held-out sentences, always under the same masks."""
        lengths = self.test.lengths
        parts = np.array_split(np.argsort(lengths, kind="stable"), max(1, lengths.sum() // self.settings.batch_tokens))
        self.model.eval()
        with torch.compiler.set_stance("force_eager"):  # their shapes are not those of training
            values = [
                torch.stack(self.loss(self.test.batch(index, lengths[index].max(), self.tokenizer.pad_token_id), seed))
                for seed, index in enumerate(parts)
            ]
        self.model.train()
        loss, accuracy = torch.stack(values).mean(0).tolist()
        return loss, accuracy


# ---------------------------------------------------------------- the model


def new_model(tokenizer, layers: int, hidden: int, heads: int) -> BertForMaskedLM:
    """A BERT with random weights, without dropout; on the GPU, its layers compiled, if there is one."""
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        max_position_embeddings=POSITIONS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    gpu = torch.cuda.is_available()
    attention = "sdpa" if gpu else "eager"  # eager is a quarter faster on a CPU at these lengths
    model = BertForMaskedLM._from_config(config, attn_implementation=attention)
    if gpu:
        model.to("cuda")
        compile_layers(model)
    return model.train()


def compile_layers(model) -> None:
    """Let torch.compile fuse the layers, once for each shape of a batch."""
    if not can_compile():
        return
    for layer in model.bert.encoder.layer:
        layer.compile(dynamic=False)


def make_optimizer(model, learning_rate: float, weight_decay: float):
    decayed = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.98), eps=1e-6, fused=True)


def write_model(model: BertForMaskedLM, tokenizer, folder: Path) -> None:
    """In half precision, to be computed in single; with BERT's dropout."""
    config = copy.deepcopy(model.config)
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.1
    half = BertForMaskedLM(config).half()
    half.load_state_dict(model.state_dict())
    half.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    written = json.loads((folder / CONFIG).read_text()) | {"dtype": "float32"}
    (folder / CONFIG).write_text(json.dumps(written, indent=2, sort_keys=True) + "\n")
    share_weights(folder, CONFIG)


# ---------------------------------------------------------------- the whole


def pretrain(corpus: Path, out: Path, settings: Settings, threads: int = 2, name: str | None = None) -> dict:
    """Train and write a BertForMaskedLM (fp16 safetensors) with its tokenizer; returns what the card reports.

    Dropout is off during pre-training (a small model on much text underfits), and back at BERT's 0.1 in the config
    that is written, which the contrastive methods need. A tokenizer that lies in `out` is used as it is. Resumes from
    a checkpoint that is written every minute. A snapshot's learning rate has not fallen yet, so it is a little worse
    than a run that ends there. With `settings.start`, the weights and the vocabulary are those of that encoder; the
    learning rate rises and falls anew.

    Raises:
        BadInput: the corpus is too short, a size is impossible, the encoder to go on from does not fit, or `out` holds
            the beginning of another pre-training.
        RunFailed: the loss is not finite.
        Stopped: SIGTERM or SIGINT asked for an end; the checkpoint was written.
    """
    settings.check()
    start = settings.seen_before()
    torch.set_num_threads(threads)
    name, sentences = name or out.name, Lines(corpus)
    held = min(HELD_OUT, len(sentences) // 20)
    if held == 0:
        raise BadInput(f"{corpus}: {len(sentences)} lines; at least 20 are needed, some are held out.")
    facts = {"corpus": corpus.name, "corpus_sha256": sha256(corpus), **vars(settings), "start": start}
    facts = json.loads(json.dumps(facts))
    unfinished = out / ".settings.json"
    if unfinished.exists() and read_json(unfinished) != facts:
        raise BadInput(
            f"{out}: holds the beginning of another pre-training ({unfinished.name} differs); delete it first."
        )
    write_json(unfinished, facts)

    if settings.start:
        BertTokenizerFast.from_pretrained(settings.start, trust_remote_code=False).save_pretrained(out)
    elif not (out / "tokenizer.json").exists():
        train_tokenizer(sentences[:-held], settings.vocab_size).save_pretrained(out)
    tokenizer = BertTokenizerFast.from_pretrained(out, trust_remote_code=False)
    print(f"{name}  tokenising {len(sentences):,} sentences", file=sys.stderr, flush=True)
    test = TokenIds.tokenise(sentences[-held:], tokenizer, settings.max_length)
    rows = TokenIds.tokenise(sentences, tokenizer, settings.max_length)
    rows.ends = rows.ends[:-held]
    del sentences

    torch.manual_seed(settings.seed)
    model = new_model(tokenizer, settings.layers, settings.hidden, settings.heads)
    if settings.start:
        start_model = BertForMaskedLM.from_pretrained(settings.start, trust_remote_code=False)
        model.load_state_dict(start_model.state_dict())
    before = start["tokens"] if start else 0
    task = MaskedLanguageModelling(name, model, tokenizer, rows, test, settings, out, before)
    state = TrainState(model, task.optimizer)
    checkpoint.resume(state, out, name, task.steps)
    with Progress(out, name) as progress, stop_signals() as stop:
        run_steps(task, state, out, progress, stop, CHECKPOINT_SECONDS)

    write_model(model, tokenizer, out)
    report = {"name": name, **facts, "sentences": len(rows.ends), "held_out": held, "steps": state.step}
    report |= {"threads": threads, "processor": processor(), "curve": state.curve}
    report |= {"gpu": torch.cuda.get_device_name() if model.device.type == "cuda" else None}
    write_text(out / REPORT, json.dumps(report, indent=2) + "\n")
    write_text(out / "README.md", card(report))
    files = [CONFIG, WEIGHTS, "tokenizer.json", "tokenizer_config.json"]
    write_text(out / LISTED, list_files(out, files))
    remove_checkpoint(out)
    for path in (out / PROGRESS, unfinished):
        path.unlink(missing_ok=True)
    return report


def card(report: dict) -> str:
    """The model card: what it is, what it was made from, and how good its masked LM is on held-out text."""
    last = report["curve"][-1]
    start = report["start"]
    after = f", the first {start['tokens']:,} as `{start['name']}` (weights {start['weights'][:12]})" if start else ""
    masked = f"{report['mask_probability']:.0%} of the {'words' if report['whole_word'] else 'tokens'} masked"
    return (
        f"# {report['name']}\n\nA BERT of {report['layers']} layers, hidden size {report['hidden']},"
        f" {report['heads']} heads, {report['vocab_size']} lower-cased WordPieces, pre-trained from scratch by"
        f" `csebench pretrain` with masked LM only ({masked}, bf16 autocast, no dropout). Weights are stored in half"
        " precision.\n\n"
        f"- Corpus: {report['sentences']:,} sentences of `{report['corpus']}` (sha256 {report['corpus_sha256']}), cut"
        f" after {report['max_length']} tokens.\n"
        f"- Trained on {last['tokens']:,} tokens{after}: {report['steps']:,} steps of {report['batch_tokens']:,}"
        f" tokens, learning rate {report['learning_rate']:g}, seed {report['seed']}, {last['seconds'] / 60:.0f}"
        f" minutes on {report['gpu'] or str(report['threads']) + ' threads'}.\n"
        f"- Held-out ({report['held_out']:,} sentences): loss {last['loss']:.3f}, {last['accuracy']:.1%} of the masked"
        " tokens right.\n"
    )
