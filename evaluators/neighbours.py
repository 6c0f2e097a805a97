"""Nearest neighbours among captions of Flickr30k, as MSSE shows them.

Idea: of each query that the paper prints, the captions with the highest cosine; and, so that there is a number, how
often a caption's nearest neighbour is of the same image. Paper: MSSE Table 8 and App. G; no code was released.
"""

import numpy as np

from csebench.base.errors import BadInput
from csebench.data.corpus import draw_subset, lines
from csebench.model.metrics import unit

PUBLISHED = {  # query: the three captions that RankCSE finds, and MSSE, as printed
    "A group of men climb ladders outdoors.": (
        "Two people standing on a roof while another climbs a ladder.",
        "A firefighter climbs a ladder towards the fire above him.",
        "A person is climbing a wooden ladder up a rocky ledge.",
        "Two people standing on a roof while another climbs a ladder.",
        "Two men sitting on the roof of a house while another one stands on a ladder.",
        "Three people in t-shirt, yellow helmets and harnesses begin to climb ladder.",
    ),
    "A man in a white cap and shirt plays the violin with other street performers.": (
        "A man in a white shirt is playing the flute to someone in a red skirt.",
        "A man in a white shirt plays an electric violin.",
        "A man in a red shirt plays the guitar.",
        "A man in a white shirt is playing the flute to someone in a red skirt.",
        "A man in a white shirt plays an electric violin.",
        "A man with glasses wearing a tie plays the violin.",
    ),
    "A man in a black outfit poses in front of the eiffel tower.": (
        "A man carrying trinkets with the Eiffel tower in the background.",
        "A man wearing black jacket poses with a smile.",
        "A man wearing a black long-sleeved shirt is taking a photo of a building.",
        "A man carrying trinkets with the Eiffel tower in the background.",
        "A man in formal wear is posing in front of a building.",
        "A man wearing a black long-sleeved shirt is taking a photo of a building.",
    ),
    "Two women wearing ceremonial costumes are walking outside a white building.": (
        "Two women wearing blue jeans are walking outside.",
        "Two women wearing dresses are walking by a building.",
        "Men in traditional dress stand outside.",
        "Two women wearing dresses are walking by a building.",
        "Two people are wearing flower costumes and walking down a street.",
        "Two women wearing skirts and heels walking down a sidewalk.",
    ),
}
DECLARATION = {
    "name": "neighbours",
    "version": 1,
    "title": "Nearest neighbours in Flickr30k captions",
    "protocol": "msse-table8-{images}images",
    "tasks": ["Flickr30k"],
    "files": ["misc/flickr30k/captions.token"],
    "ordered": "images are drawn by seed and number",
    "params": {"images": 6000, "seed": 42},
    "best": {"recall@1": 1.0},
    "chance": {"recall@1": (0.0, 0.2)},
    "source": "MSSE App. G and Table 8 (no code)",
    "deviations": [
        "the paper searches an unknown sample of 30k captions, of all five of an image (its sentences are numbers 0 to"
        " 4); ours: every caption of 6,000 images drawn by seed, and of the images of the sentences that it prints",
        "a query never finds its own string, nor a caption of its own image: the paper's sample has few of those",
        "recall@1 is ours: the first caption of every image searches all other captions of the sample",
    ],
}
FOUND = 3  # neighbours of a query
CHUNK = 500  # queries compared at a time


def evaluate(model, data_root, images, seed):
    """Neighbours of a model.

    Args:
        model: csebench.model.embedder.Embedder.
        images: drawn, besides those of the paper's sentences.

    Returns:
        (rows, items): recall@1; items: `queries` (4,), `neighbours` and `cosines` (4, 3), `published` (4, 2, 3) what
        RankCSE and MSSE find in the paper, `searched` the first captions and `hit`, whether each found its image.
    """
    captions = read(data_root / DECLARATION["files"][0])
    image_of = {key(text): image for image, text in captions}
    text_of = {key(text): text for _, text in captions}
    printed = {image_of.get(key(s)) for query, own in PUBLISHED.items() for s in (query, *own)} - {None}
    drawn = printed.union(draw_subset(list(dict.fromkeys(image for image, _ in captions)), images, seed))
    owners, pool = map(list, zip(*(c for c in captions if c[0] in drawn), strict=True))
    queries = [text_of.get(key(q), q) for q in PUBLISHED]
    of_query = [image_of.get(key(q), q) for q in PUBLISHED]

    vectors = unit(model.embed(pool + queries, owners + of_query)).astype(np.float32)
    text, image = (np.unique(names, return_inverse=True)[1] for names in (pool + queries, owners + of_query))
    asked, searched = np.arange(len(pool), len(vectors)), np.sort(np.unique(image[: len(pool)], return_index=True)[1])
    found, cosines = nearest(vectors, asked, len(pool), (text, image), FOUND)
    first, best = nearest(vectors, searched, len(pool), (text,), 1)
    if not (np.isfinite(cosines).all() and np.isfinite(best).all()):
        raise BadInput(f"{data_root / DECLARATION['files'][0]}: too few captions to find {FOUND} of other images.")
    hit = image[first[:, 0]] == image[searched]
    items = {
        "queries": np.array(queries),
        "neighbours": np.array(pool)[found],
        "cosines": cosines,
        "published": np.array(list(PUBLISHED.values())).reshape(-1, 2, FOUND),
        "searched": np.array(pool)[searched],
        "hit": hit,
    }
    return [{"task": "Flickr30k", "subset": "all", "metric": "recall@1", "value": float(hit.mean())}], items


def nearest(vectors, asked, pool, groups, count):
    """The rows of the pool closest to some rows; of equals, the first.

    Args:
        vectors: (N, D) of length one; the pool is the first `pool` rows.
        asked: (Q,) row numbers.
        groups: each (N,) ints; no row finds one of its own group.

    Returns:
        (Q, count) row numbers, and their cosines: -inf where too few rows are left.
    """
    found = np.empty((len(asked), count), dtype=np.int64)
    cosines = np.empty((len(asked), count), dtype=np.float32)
    for start in range(0, len(asked), CHUNK):
        rows = asked[start : start + CHUNK]
        near = vectors[rows] @ vectors[:pool].T
        for group in groups:
            near[group[rows][:, None] == group[:pool]] = -np.inf
        for place in range(count):
            at = near.argmax(1)
            found[start : start + CHUNK, place] = at
            cosines[start : start + CHUNK, place] = near[np.arange(len(rows)), at]
            near[np.arange(len(rows)), at] = -np.inf
    return found, cosines


def key(text):
    """Original and detokenised captions differ in blanks only."""
    return text.replace(" ", "")


def read(path):
    """(image, caption) of every line `image#number TAB caption`."""
    found = []
    for number, line in enumerate(lines(path), 1):
        image, hash_, rest = line.partition("#")
        _, tab, text = rest.partition("\t")
        if not (image and hash_ and tab and text.strip()):
            raise BadInput(f"{path}: line {number}: expected IMAGE#NUMBER, a tab, a caption (got {line[:60]!r}).")
        found.append((image, text))
    return found
