"""`csebench pretrain`: a WordPiece vocabulary and a small BERT by masked LM, from one sentence a line."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path

import numpy as np
import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from tqdm import tqdm
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

from csebench.base.errors import BadInput, RunFailed
from csebench.base.files import sha256, write_json
from csebench.data.corpus import lines
from csebench.train.mlm import mask_batch, masked_lm_loss

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
HELD_OUT = 2_000  # last lines of the corpus, for the loss in the model card
CHECK_EVERY = 1_000  # steps between held-out evaluations, which also write the checkpoint


def train_tokenizer(sentences, vocab_size: int) -> BertTokenizerFast:
    """Lower-cased WordPiece with BERT's own normalisation and pre-tokenisation.

    The library breaks ties between equally frequent pieces at random: two trainings may differ in a few pieces.
    """
    wordpiece = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    wordpiece.normalizer = normalizers.BertNormalizer(lowercase=True)
    wordpiece.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    wordpiece.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=vocab_size, special_tokens=SPECIAL, show_progress=False)
    wordpiece.train_from_iterator(sentences, trainer)
    vocab = wordpiece.get_vocab()
    return BertTokenizerFast(vocab=dict(sorted(vocab.items(), key=lambda item: item[1])), do_lower_case=True)


def batches(lengths: np.ndarray, size: int, rng: np.random.Generator):
    """Index arrays of one epoch: random order, but sentences of like length together so that little is padded."""
    order = rng.permutation(len(lengths))
    pools = np.array_split(order, max(1, len(order) // (size * 64)))
    epoch = [b for pool in pools for b in np.array_split(pool[np.argsort(lengths[pool])], max(1, len(pool) // size))]
    return [epoch[i] for i in rng.permutation(len(epoch))]


def collate(encoded, index, pad_id):
    rows = [encoded[i] for i in index]
    ids = torch.full((len(rows), max(map(len, rows))), pad_id, dtype=torch.long)
    for row, tokens in zip(ids, rows, strict=True):
        row[: len(tokens)] = torch.from_numpy(tokens.astype(np.int64))
    return ids


def loss_of(model, tokenizer, ids, probability):
    """MLM loss and accuracy of one batch of ids, masked anew."""
    masked, labels = mask_batch(tokenizer, ids, probability)
    with torch.autocast(ids.device.type, torch.bfloat16):
        states = model.bert(masked, attention_mask=(ids != tokenizer.pad_token_id).long()).last_hidden_state
        return masked_lm_loss(model.cls, states, labels)


@torch.no_grad()
def held_out(model, tokenizer, encoded, device, probability):
    """(loss, accuracy) on held-out sentences under one fixed mask; leaves the training's random state alone."""
    model.eval()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        order = np.argsort([len(e) for e in encoded])
        parts = [
            loss_of(model, tokenizer, collate(encoded, b, tokenizer.pad_token_id).to(device), probability)
            for b in np.array_split(order, max(1, len(order) // 128))
        ]
    model.train()
    return [float(torch.stack(x).mean()) for x in zip(*parts, strict=True)]


def pretrain(
    corpus: Path,
    out: Path,
    *,
    steps: int,
    layers: int = 4,
    hidden: int = 256,
    heads: int = 4,
    vocab_size: int = 8192,
    batch_size: int = 96,
    max_length: int = 128,
    learning_rate: float = 1e-3,
    warmup: float = 0.03,
    weight_decay: float = 0.01,
    mask_probability: float = 0.2,
    seed: int = 42,
    threads: int = 2,
    name: str = "bert-mini",
) -> dict:
    """Train and write a BertForMaskedLM (fp16 safetensors) with its tokenizer; returns what the card reports.

    Dropout is off during pre-training (a small model on much text underfits), and back at BERT's 0.1 in
    the config that is written, which the contrastive methods need. Resumes from `out/.checkpoint.pt`.
    """
    torch.set_num_threads(threads)
    torch.manual_seed(seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    sentences = lines(corpus)
    held = min(HELD_OUT, len(sentences) // 20)
    if held == 0:
        raise BadInput(f"{corpus}: {len(sentences)} lines; at least 20 are needed, some are held out.")
    settings = dict(sha256=sha256(corpus), steps=steps, batch_size=batch_size, learning_rate=learning_rate, seed=seed)
    settings |= dict(size=[layers, hidden, heads, vocab_size, max_length])
    checkpoint, begun = out / ".checkpoint.pt", out / ".settings.json"
    if begun.exists() and json.loads(begun.read_text()) != settings:
        raise BadInput(f"{out}: holds the beginning of another pre-training ({begun.name} differs); delete it first.")
    write_json(begun, settings)

    if not (out / "tokenizer.json").exists():
        train_tokenizer(sentences[:-held], vocab_size).save_pretrained(out)
    tokenizer = BertTokenizerFast.from_pretrained(out)
    encoded = []
    for start in tqdm(range(0, len(sentences), 20_000), desc="tokenise", disable=None):
        rows = tokenizer(sentences[start : start + 20_000], truncation=True, max_length=max_length)["input_ids"]
        encoded += [np.array(r, dtype=np.uint16) for r in rows]
    train, test = encoded[:-held], encoded[-held:]
    lengths = np.array([len(e) for e in train])

    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * hidden,
        max_position_embeddings=256,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    model = BertForMaskedLM._from_config(config, attn_implementation="eager").to(device)
    decayed = [p for p in model.parameters() if p.ndim > 1]
    rest = [p for p in model.parameters() if p.ndim <= 1]
    groups = [{"params": decayed, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=learning_rate, betas=(0.9, 0.98), eps=1e-6, fused=True)
    warm = max(1, round(warmup * steps))
    scheduler = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda s: min((s + 1) / warm, (steps - s) / max(1, steps - warm))
    )

    step, tokens, seconds, curve = 0, 0, 0.0, []
    if checkpoint.exists():
        state = torch.load(checkpoint, map_location=device, weights_only=False)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        scheduler.load_state_dict(state["scheduler"])
        torch.set_rng_state(state["rng"].cpu())
        step, tokens, seconds, curve = state["step"], state["tokens"], state["seconds"], state["curve"]

    model.train()
    started = time.perf_counter()
    per_epoch = len(batches(lengths, batch_size, np.random.default_rng(0)))
    bar = tqdm(total=steps, initial=step, desc=name, mininterval=5, disable=None)
    while step < steps:
        epoch, first = divmod(step, per_epoch)
        for index in batches(lengths, batch_size, np.random.default_rng([seed, epoch]))[first:]:
            ids = collate(train, index, tokenizer.pad_token_id).to(device)
            loss, _ = loss_of(model, tokenizer, ids, mask_probability)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad(set_to_none=True)
            step, tokens = step + 1, tokens + int(lengths[index].sum())
            bar.update()
            if step % CHECK_EVERY == 0 or step == steps:
                test_loss, accuracy = held_out(model, tokenizer, test, device, mask_probability)
                if not math.isfinite(test_loss):
                    raise RunFailed(f"{name}: held-out loss is {test_loss} at step {step}; lower the learning rate.")
                elapsed = seconds + time.perf_counter() - started
                point = dict(step=step, tokens=tokens, loss=test_loss, accuracy=accuracy, seconds=round(elapsed))
                curve.append(point)
                bar.write(json.dumps(point))
                state = dict(model=model.state_dict(), optimizer=optimizer.state_dict(), step=step, tokens=tokens)
                state |= dict(
                    scheduler=scheduler.state_dict(), rng=torch.get_rng_state(), seconds=elapsed, curve=curve
                )
                torch.save(state, checkpoint.with_suffix(".tmp"))
                checkpoint.with_suffix(".tmp").replace(checkpoint)
            if step == steps:
                break
    bar.close()
    model.config.hidden_dropout_prob = model.config.attention_probs_dropout_prob = 0.1
    model.half().save_pretrained(out)
    written = json.loads((out / "config.json").read_text())
    written["dtype"] = "float32"  # stored in half precision, computed in single
    (out / "config.json").write_text(json.dumps(written, indent=2, sort_keys=True) + "\n")
    report = dict(name=name, corpus=corpus.name, sha256=sha256(corpus), sentences=len(train), held_out=held)
    report |= dict(steps=steps, batch_size=batch_size, learning_rate=learning_rate, mask_probability=mask_probability)
    report |= dict(seed=seed, threads=threads, curve=curve)
    (out / "pretraining.json").write_text(json.dumps(report, indent=2) + "\n")
    (out / "README.md").write_text(card(report, config))
    checkpoint.unlink()
    begun.unlink()
    return report


def card(report: dict, config) -> str:
    """The model card: what it is, what it was made from, and how good its masked LM is on held-out text."""
    last = report["curve"][-1]
    return (
        f"# {report['name']}\n\nA BERT of {config.num_hidden_layers} layers, hidden size {config.hidden_size},"
        f" {config.num_attention_heads} heads, {config.vocab_size} lower-cased WordPieces, pre-trained from scratch by"
        f" `csebench pretrain` with masked LM only ({report['mask_probability']:.0%} of the tokens masked, bf16"
        " autocast, no dropout). Weights are stored in half precision.\n\n"
        f"- Corpus: {report['sentences']:,} sentences of `{report['corpus']}` (sha256 {report['sha256']}).\n"
        f"- Trained on {last['tokens']:,} tokens: {report['steps']:,} steps of {report['batch_size']} sentences,"
        f" learning rate {report['learning_rate']:g}, seed {report['seed']}, {last['seconds'] / 60:.0f} minutes on"
        f" {report['threads']} threads.\n"
        f"- Held-out ({report['held_out']:,} sentences): loss {last['loss']:.3f}, {last['accuracy']:.1%} of the masked"
        " tokens right.\n"
    )
