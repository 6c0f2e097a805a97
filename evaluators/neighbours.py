"""Nearest neighbours among captions of Flickr30k, as MSSE shows them.

Idea: captions of one image say the same in other words, so they should be nearest neighbours.
Score: recall@1 (ours): the share of captions whose nearest neighbour is of the same image. The
paper prints no number, only the three nearest captions of four queries.
Paper: MSSE Table 8 and App. G. Official code: none.
Items: `queries` (4,), `neighbours` and `cosines` (4, 3); `published` (4, 2, 3), the captions that
RankCSE and MSSE retrieve in the paper; `searched` (images,) first captions, and `hit` (images,)
bool, whether each retrieved its image.
Relations: `stsb_retrieval` and `beir` also search; here pages show the texts themselves.
"""

from pathlib import Path

import numpy as np

from csebench.base.errors import BadInput
from csebench.data.corpus import draw_subset, read_lines
from csebench.model.embedder import Embedder
from csebench.model.metrics import unit
from csebench.score.score_types import Items, Score

PUBLISHED = {  # query: three captions of RankCSE, then three of MSSE, as printed
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
    "texts": {
        "queries": "queries",
        "retrieved": "neighbours",
        "printed": "published",
        "labels": ["RankCSE", "MSSE"],
    },
    "source": "MSSE App. G and Table 8 (no code)",
    "deviations": [
        (
            "the paper searches an unknown sample of 30k captions, of all five of an image (its"
            " sentences are numbers 0 to 4); ours: every caption of 6,000 images drawn by seed, and"
            " of the images of the sentences that it prints"
        ),
        (
            "a query never finds its own string, nor a caption of its own image: the paper's sample"
            " has few of those"
        ),
        (
            "recall@1 is ours: the first caption of every image searches all other captions of the"
            " sample"
        ),
    ],
}
NEAREST = 3  # captions that are shown of a query
CHUNK = 500  # queries compared at a time


def evaluate(model: Embedder, data_root: Path, images: int, seed: int) -> tuple[list[Score], Items]:
    """Find the neighbours of the paper's queries, and of the first caption of every image.

    Args:
        images: number of images that are drawn, in addition to those of the paper's sentences.

    Returns:
        One row, recall@1; items (module docstring).
    """
    file = data_root / DECLARATION["files"][0]
    captions = read(file)
    image_of = {key(text): image for image, text in captions}
    text_of = {key(text): text for _, text in captions}

    # the pool: every caption of the images that are drawn
    drawn = images_of_paper(image_of)
    distinct_images = list(dict.fromkeys(image for image, _ in captions))
    drawn.update(draw_subset(distinct_images, images, seed))
    of_drawn = [(image, text) for image, text in captions if image in drawn]
    owners = [image for image, _ in of_drawn]
    pool = [text for _, text in of_drawn]

    # the queries follow the pool; a query that is no caption counts as an image of its own
    queries = [text_of.get(key(query), query) for query in PUBLISHED]
    images_of_queries = [image_of.get(key(query), query) for query in PUBLISHED]
    texts = pool + queries
    truth = owners + images_of_queries
    text_number = np.unique(texts, return_inverse=True)[1]
    image_number = np.unique(truth, return_inverse=True)[1]
    asked = np.arange(len(pool), len(texts))
    check_candidates(file, pool, asked, text_number, image_number)

    documents = unit(model.embed_documents(texts, truth)).astype(np.float32)
    vectors = unit(model.embed_queries(texts, truth)).astype(np.float32)
    neighbours, cosines = nearest(
        vectors, documents, asked, len(pool), (text_number, image_number), NEAREST
    )
    # the first caption of every image searches the captions of all images, its own image included
    searched = np.sort(np.unique(image_number[: len(pool)], return_index=True)[1])
    first, _ = nearest(vectors, documents, searched, len(pool), (text_number,), 1)
    hit = image_number[first[:, 0]] == image_number[searched]
    items = {
        "queries": np.array(queries),
        "neighbours": np.array(pool)[neighbours],
        "cosines": cosines,
        "published": np.array(list(PUBLISHED.values())).reshape(-1, 2, NEAREST),
        "searched": np.array(pool)[searched],
        "hit": hit,
    }
    return [Score("Flickr30k", "all", "recall@1", float(hit.mean()))], items


def images_of_paper(image_of: dict[str, str]) -> set[str]:
    """Find the images of the sentences that the paper prints.

    Args:
        image_of: image by the `key` of a caption.
    """
    images = set()
    for query, texts in PUBLISHED.items():
        for text in (query, *texts):
            if key(text) in image_of:
                images.add(image_of[key(text)])
    return images


def check_candidates(
    file: Path, pool: list[str], asked: np.ndarray, text: np.ndarray, image: np.ndarray
) -> None:
    """Check that every query has enough captions of other images to retrieve.

    Args:
        asked: row numbers of the queries.
        text, image: number of each row's text and image; the pool comes first.

    Raises:
        BadInput: there are too few.
    """
    too_few = len(set(pool)) < 2
    for query in asked:
        is_candidate = (text[: len(pool)] != text[query]) & (image[: len(pool)] != image[query])
        too_few = too_few or is_candidate.sum() < NEAREST
    if too_few:
        raise BadInput(f"{file}: too few captions to find {NEAREST} of other images.")


def nearest(
    vectors: np.ndarray,
    documents: np.ndarray,
    asked: np.ndarray,
    pool: int,
    groups: tuple[np.ndarray, ...],
    count: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Find the rows of the pool that are closest to each row of `asked`, the first of equals.

    Args:
        vectors: (N, D) of length one, of the texts as queries.
        documents: (N, D) of length one, of the same texts as documents. The first `pool` rows are
            the pool.
        asked: (Q,) row numbers.
        groups: each (N,) ints; no row retrieves one of its own group.

    Returns:
        (Q, count) row numbers, and their cosines. A cosine is -inf if too few rows are left.
    """
    neighbours = np.empty((len(asked), count), dtype=np.int64)
    cosines = np.empty((len(asked), count), dtype=np.float32)
    for start in range(0, len(asked), CHUNK):
        rows = asked[start : start + CHUNK]
        each = np.arange(len(rows))
        similarity = vectors[rows] @ documents[:pool].T
        for group in groups:
            similarity[group[rows][:, None] == group[:pool]] = -np.inf
        for place in range(count):
            best = similarity.argmax(1)
            neighbours[start : start + CHUNK, place] = best
            cosines[start : start + CHUNK, place] = similarity[each, best]
            similarity[each, best] = -np.inf
    return neighbours, cosines


def key(text: str) -> str:
    """Remove blanks, in which original and detokenised captions differ."""
    return text.replace(" ", "")


def read(path: Path) -> list[tuple[str, str]]:
    """Read (image, caption) of every line `image#number TAB caption`."""
    captions = []
    for number, line in enumerate(read_lines(path), 1):
        image, hash_, rest = line.partition("#")
        _, tab, text = rest.partition("\t")
        if not (image and hash_ and tab and text.strip()):
            raise BadInput(
                f"{path}: line {number}: expected IMAGE#NUMBER, a tab, a caption (got"
                f" {line[:60]!r})."
            )
        captions.append((image, text))
    return captions
