"""What the attention of two views has in common: against the cosine of the views, by syntax, and as histograms.

Idea: miCSE aligns attention maps of dropout views, so that mutual information on attention stands for likeness of
syntax. Paper: miCSE Figures 5, 6, 8 and App. B, D; no code was released for them, nor a number.
"""

import copy

import numpy as np

from csebench.base.errors import BadInput, RunFailed
from csebench.data.corpus import draw_subset, read_corpus
from csebench.model.metrics import cosine

DECLARATION = {
    "name": "attention",
    "version": 1,
    "title": "Attention mutual information against cosine",
    "protocol": "micse-figures-5-6-8",
    "tasks": ["similarity", "syntax", "histogram"],
    "files": ["wiki/*.txt"],
    "ordered": "sentences are drawn by seed and number of the line",
    "params": {"sentences": 1000, "parsed": 10000, "words": 10, "views": 16, "tokens": 32, "seed": 42},
    "best": {},
    "chance": {},
    "needs": "a BERT or RoBERTa encoder; for the task syntax spaCy with en_core_web_sm",
    "source": "miCSE Figures 5, 6, 8 and App. B, D (no code)",
    "deviations": [
        "1,000 sentences drawn by seed, cut at 32 tokens as in training; dropout 0.1 for every model, even one trained"
        " with another",
        "a negative pair is a sentence and the next one drawn, also in two dropout views; attention is compared by"
        " position, up to the end of the shorter one",
        "mutual information as AMI takes it (last third of the layers, pairs of heads), every entry once, in nats",
        "syntax: the linearised tree of the paper, relation and head of every word; equal trees are rare, and then"
        " often of one template, so 10,000 sentences of at most 10 words and with a full stop are parsed, and every"
        " tree gives one pair, whose first sentence also pairs with one of as many words and another tree",
        "without spaCy there is no split by syntax: 0 pairs, and the item `syntax/parser` says why",
        "histograms: 3 groups of layers by 4 of heads, which for BERT-base are 4 layers by 3 heads; the logarithms"
        " that AMI correlates, over 16 pairs of views instead of one, without entries that dropout zeroed",
        "distance: of the centroids in the plane of cosine and nats; ours",
    ],
}
DROPOUT = 0.1
BATCH = 32
BINS = 40
SENTENCE = "the best thing you can do is to know your stuff."


def evaluate(model, data_root, sentences, parsed, words, views, tokens, seed):
    """Attention of a model.

    Args:
        model: csebench.model.sentence_encoder.SentenceEncoder.
        sentences: drawn for the pairs; parsed: drawn for the split by syntax, of at most `words` words.
        views: pairs of dropout views behind the histograms.

    Returns:
        (rows, items): cosine and mutual information at the centroid of positive and negative pairs, and of identical
        and non-identical trees, the distance of the two; mutual information of every slice. Items:
        `similarity/GROUP` and `syntax/GROUP` (pairs, 2), cosine and mutual information, with their `sentences`;
        `syntax/parser`; `histogram/joint` (slices, BINS, BINS), each summing to one, with `edges` and `slices`.
    """
    import torch

    from csebench.model.encoder import BERTS

    files = sorted(data_root.glob(DECLARATION["files"][0]))
    corpus = list(dict.fromkeys(s for path in files for s in read_corpus(path) if s.strip()))
    drawn = draw_subset(corpus, sentences, seed)
    if len(drawn) < 2:
        raise BadInput(f"{files[0]}: {len(drawn)} sentences, needs at least two.")
    if getattr(model, "encoder", None) is None or model.encoder.model.config.model_type not in BERTS:
        raise BadInput(f"attention: needs a model with attention maps: an encoder of the kinds {', '.join(BERTS)}.")
    short = draw_subset([s for s in corpus if len(s.split()) <= words and s.endswith(".")], parsed, seed)
    trees, parser = parse(short)
    pairs = by_syntax(short, trees)
    asked = {"similarity/positive": (drawn, drawn), "similarity/negative": (drawn, drawn[1:] + drawn[:1])}
    if pairs:
        anchors, same, others = map(list, zip(*pairs, strict=True))
        asked |= {"syntax/identical": (anchors, same), "syntax/non-identical": (anchors, others)}
    with torch.random.fork_rng(), torch.inference_mode():
        torch.manual_seed(seed)
        view = dropout_views(model)
        joint, edges, slices, shared = histograms(view, views)  # first: its masks are the same without spaCy
        groups = {name: compare(view, *sides, tokens) for name, sides in asked.items()}

    rows = [row("syntax", "identical", "pairs", len(pairs))]
    rows += [row("histogram", name, "mutual information", v) for name, v in zip(slices, shared, strict=True)]
    rows += [row("histogram", "all", "mutual information", np.mean(shared))]
    centres = {name: points.mean(0, dtype=np.float64) for name, points in groups.items()}
    for name, centre in centres.items():
        rows += [row(*name.split("/"), m, v) for m, v in zip(("cosine", "mutual information"), centre, strict=True)]
    for task in dict.fromkeys(name.split("/")[0] for name in centres):
        one, two = (centre for name, centre in centres.items() if name.startswith(task))
        rows += [row(task, "all", "distance", np.linalg.norm(one - two))]
    if not np.isfinite([r["value"] for r in rows]).all():
        raise RunFailed("attention: a value is not a number: the model's vectors or attention are not finite.")
    items = groups | {"similarity/sentences": np.array(drawn), "syntax/parser": np.array(parser)}
    items |= {"syntax/sentences": np.array(pairs)} if pairs else {}
    return rows, items | {"histogram/joint": joint, "histogram/edges": edges, "histogram/slices": np.array(slices)}


def row(task, subset, metric, value):
    return {"task": task, "subset": subset, "metric": metric, "value": float(value)}


def dropout_views(model):
    """`view(sentences, tokens)`: a pass with all its attention, each under other dropout masks, and its vectors."""
    from csebench.model.pooling import pool

    encoder = copy.deepcopy(model.encoder).train()
    encoder.set_dropout(DROPOUT)
    encoder.keep_attention(range(encoder.num_layers))

    def view(sentences, tokens=None):
        out = encoder(encoder.tokenize(sentences, tokens, model.pooler), model.pooler)
        vectors = pool(model.pooler, out).float().cpu().numpy()
        return out, vectors if model.transform is None else model.transform(vectors)

    return view


def compare(view, left, right, tokens):
    """(pairs, 2) cosine and attention mutual information of pairs of sentences, each in a view of its own."""
    found = []
    for start in range(0, len(left), BATCH):
        (one, u), (two, v) = (view(side[start : start + BATCH], tokens) for side in (left, right))
        shared = [mutual_information(one, two, number) for number in range(len(u))]
        found.append(np.stack([cosine(u, v), shared], axis=1))
    return np.concatenate(found).astype(np.float32)


def mutual_information(one, two, number):
    """AMI of one pair of sentences of two passes, over all entries that both have."""
    import torch

    from csebench.train.losses import ami_paper
    from methods.components.ami import layers_read

    size = int(torch.minimum(one.mask[number].sum(), two.mask[number].sum()))
    layers = layers_read("paper", len(one.attention))
    maps = ([side.attention[i][number, None, :, :size, :size].float() for i in layers] for side in (one, two))
    return ami_paper(*maps, one.mask[number, None, :size], samples=None).item()


def parse(sentences):
    """The linearised dependency tree of every sentence, and with what; ([], why not) without spaCy."""
    try:
        import spacy

        parser = spacy.load("en_core_web_sm", exclude=["tagger", "attribute_ruler", "lemmatizer", "ner"])
    except (ImportError, OSError) as e:
        return [], f"left out: spaCy with en_core_web_sm cannot be loaded: {str(e).splitlines()[0]}"
    trees = [tuple((word.dep_, word.head.i) for word in tree) for tree in parser.pipe(sentences)]
    return trees, f"spaCy {spacy.__version__}, {parser.meta['name']} {parser.meta['version']}"


def by_syntax(sentences, trees):
    """(sentence, one of the same tree, one of another tree of as many words) of every tree that has two sentences."""
    of_tree, of_length = {}, {}
    for sentence, tree in zip(sentences, trees, strict=False):
        of_tree.setdefault(tree, []).append(sentence)
    for tree in of_tree:
        of_length.setdefault(len(tree), []).append(tree)
    found = []
    for alike in of_length.values():
        for tree, other in zip(alike, alike[1:] + alike[:1], strict=True):
            if len(of_tree[tree]) > 1 and other != tree:
                found.append((*of_tree[tree][:2], of_tree[other][0]))
    return found


def histograms(view, views):
    """Joint histograms of the log attention of both views of SENTENCE, over slices of adjacent layers and heads.

    Returns:
        (slices, BINS, BINS), edges (slices, BINS + 1) that both views share, names, mutual information of each slice.
    """
    import torch

    from csebench.train.losses import gaussian_mi

    (one, _), (two, _) = (view([SENTENCE] * views) for _ in range(2))
    maps = ([a.float().cpu() for a in side.attention.values()] for side in (one, two))
    one, two = map(torch.stack, maps)  # (L, N, H, T, T)
    names, logs = [], []
    for layers in np.array_split(np.arange(len(one)), min(3, len(one))):
        for heads in np.array_split(np.arange(one.shape[2]), min(4, one.shape[2])):
            a, b = (x[layers][:, :, heads].flatten() for x in (one, two))
            both = (a > 0) & (b > 0)
            logs.append((a[both].double().log(), b[both].double().log()))
            names.append(f"{span('layer', layers)}, {span('head', heads)}")
    edges = np.stack([np.linspace(*map(float, torch.cat(pair).aminmax()), BINS + 1) for pair in logs])
    counts = [np.histogram2d(a.numpy(), b.numpy(), own)[0] for (a, b), own in zip(logs, edges, strict=True)]
    shared = [gaussian_mi(a.exp(), b.exp()).item() for a, b in logs]
    return np.stack([c / c.sum() for c in counts]).astype(np.float32), edges, names, shared


def span(kind, numbers):
    """Counted from one: layer 4, layers 4-6."""
    first, last = numbers[0] + 1, numbers[-1] + 1
    return f"{kind} {first}" if first == last else f"{kind}s {first}-{last}"
