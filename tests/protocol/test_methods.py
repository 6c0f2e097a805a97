"""What single methods and components promise beyond the conformance suite.

The losses and gradients of their first steps are in tests/conformance/first_steps.json. Here are
the steps of their computations, most of them compared with values computed by NumPy and SciPy.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from scipy.spatial.distance import jensenshannon
from scipy.special import expit, rel_entr, softmax
from scipy.stats import entropy
from torch.nn.functional import normalize

from csebench.base.errors import BadInput
from csebench.model.encoder import Encoder
from csebench.model.pooling import PROMPT_TEMPLATES, pool
from csebench.plan.catalog.registry import COMPONENTS, load, typed_params
from csebench.plan.schema.declarations import EncoderRef
from csebench.train.augment import copy, delete, insert_copies, reverse, shuffle
from csebench.train.losses import cos_sim
from csebench.train.method import Views, concat_views
from methods import rankcse, scd
from methods.components import auxiliary_mlm, rtd

PADDING_ID = 7
PADDING = {"input_ids": PADDING_ID, "attention_mask": 0, "labels": -100}


@pytest.fixture
def build(make_spec, tiny_bert):
    """Build a method with its components on a tiny BERT: `build("simcse", components={"mlm": {}})`.

    Returns:
        The method, followed by its components.
    """

    def build_modules(name, **kwargs):
        spec = make_spec(name, **kwargs)
        dropout = spec.params["dropout"]
        encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local"), dropout)
        torch.manual_seed(0)
        method = load(name)(encoder, typed_params(name, spec.params)).train()
        components = []
        for component_name, component in spec.components.items():
            params = typed_params(component_name, component.params, COMPONENTS)
            module = load(component_name, COMPONENTS)(method, params)
            components.append(module.train())
        return method, *components

    return build_modules


def test_rows_of_both_views_are_padded_to_the_longer():
    """Each key has its own padding: the tokenizer's for ids, "restore nothing" for labels."""
    views = []
    for length in (2, 3):
        batch = {key: torch.ones(2, length, dtype=torch.long) for key in PADDING}
        views.append(SimpleNamespace(batch=batch, ids=batch["input_ids"]))

    joined = concat_views(Views(*views), PADDING_ID)

    assert joined.keys() == PADDING.keys()
    for key, padding in PADDING.items():
        of_view1 = [[1, 1, padding], [1, 1, padding]]
        of_view2 = [[1, 1, 1], [1, 1, 1]]
        assert joined[key].tolist() == of_view1 + of_view2


def test_pretraining_hands_its_layers_over(finished, build):
    """InfoCSE starts from a condenser run: its encoder, upper layers and masked-LM head."""
    folder = finished("condenser") / "model"
    stored = load_file(folder / "modules.safetensors")
    method, fresh = build("infocse")
    method.encoder = Encoder.load(EncoderRef(name=str(folder), revision="local"))

    component = auxiliary_mlm.Component(method, fresh.p)

    for key, value in component.upper.state_dict().items():
        assert torch.equal(value, stored[f"upper.{key}"])
    for key, value in component.head.state_dict().items():
        assert torch.equal(value, stored[f"lm_head.{key}"])


def test_generator_with_another_vocabulary(build, tiny_roberta):
    method, component = build("diffcse")
    params = component.p.model_copy(update={"generator": str(tiny_roberta)})
    with pytest.raises(BadInput, match=r"rtd.generator: .* vocabulary"):
        rtd.Component(method, params)


def test_edits():
    torch.manual_seed(0)
    ids = list(range(10, 20))
    shuffled = draw_edits(shuffle, ids)
    deleted = draw_edits(delete, ids)
    inserted = draw_edits(insert_copies, ids)

    assert copy(ids) == ids
    assert reverse(torch.tensor(ids)).tolist() == ids[::-1]
    for result in shuffled:
        assert sorted(result) == ids
    assert len({tuple(result) for result in shuffled}) > 100
    for result in deleted:
        assert len(result) == 8
        assert result == sorted(set(result))
    for result in inserted:
        assert len(result) == 12
        assert set(result) == set(ids)


def draw_edits(edit, ids):
    """Edit the same ids 200 times."""
    return [edit(torch.tensor(ids)).tolist() for _ in range(200)]


@pytest.mark.parametrize("edit", [copy, reverse, shuffle, delete, insert_copies])
def test_no_token_or_one_is_left_by_an_edit(edit):
    for length in (0, 1):
        assert len(edit(torch.arange(length))) == length


@pytest.mark.parametrize(("length", "edited_length"), [(20, 24), (29, 30), (30, 30)])
def test_inserted_copies_end_at_the_longest_sentence(length, edited_length, build):
    """PCL copies 4 of 20 tokens. It copies 1 of 29 tokens, because that leaves room for one more,
    and none of 30 (train.py:602)."""
    (method,) = build("pcl")
    edit = method.edit("insert_copies")
    assert len(edit(torch.arange(length))) == edited_length


def test_long_sentences_are_cut_between_cls_and_sep(build):
    """A sentence is cut at `max_length`. An edited one is cut at what the encoder reads."""
    method, _ = build("esimcse", params={"max_length": 100})
    tokenizer = method.encoder.tokenizer
    sentence = "a b c " * 60

    plain = method.tokenize([sentence])["input_ids"]
    doubled = method.tokenize_edited([sentence], [lambda ids: ids.repeat(2)])["input_ids"]

    assert plain.shape == (1, 100)
    (row,) = doubled.tolist()
    assert len(row) == method.encoder.max_seq_length
    assert row[0] == tokenizer.cls_token_id
    assert row[-1] == tokenizer.sep_token_id


@pytest.mark.parametrize("pooler", PROMPT_TEMPLATES)
def test_a_long_sentence_gives_way_to_its_prompt_and_its_own_mask_is_not_pooled(
    pooler, tiny_bert, sentences
):
    """tests/conformance compares the tokens of a prompt with those of AutoTokenizer."""
    encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local")).eval()
    tokenizer = encoder.tokenizer

    # the sentence is cut, the end of the template stays
    (long_row,) = encoder.in_template(encoder.ids([sentences[0] * 50]), pooler)
    _, _, end_of_template = PROMPT_TEMPLATES[pooler].partition("[X]")
    end = tokenizer(end_of_template, add_special_tokens=False)["input_ids"]
    assert len(long_row) == encoder.max_seq_length
    assert long_row[-1 - len(end) : -1] == end

    # the sentence has a mask before that of the template
    batch = encoder.tokenize([f"a [MASK] in {sentences[0]}"], pooler=pooler)
    mask_positions = (batch["input_ids"][0] == tokenizer.mask_token_id).nonzero()
    states = encoder(batch).output.last_hidden_state  # at every position
    pooled = pool(pooler, encoder(batch, pooler))
    torch.testing.assert_close(pooled, states[:, int(mask_positions[-1])])


# ---------------------------------------------------------------- losses by hand


def cosine(a, b):
    return float(a @ b) / float(a @ a) ** 0.5 / float(b @ b) ** 0.5


def test_scd_pushes_the_views_apart(build):
    """The loss adds α·cos/τ, and Barlow Twins of the projected vectors as weighted in the README
    of SCD."""
    torch.manual_seed(0)
    z1, z2 = torch.randn(2, 4, 6, dtype=torch.float64)
    (method,) = build("scd")
    method.projector = torch.nn.Identity()

    loss = method.loss(Views(SimpleNamespace(z=z1), SimpleNamespace(z=z2)))

    cosines = [cosine(a, b) for a, b in zip(z1, z2, strict=True)]
    repulsion = sum(cosines) / 4 / 0.05
    decorrelation = float(scd.barlow_twins(z1, z2, 0.012))
    assert float(loss) == pytest.approx(repulsion + 0.005225 * decorrelation)


def test_smoothing_is_over_the_nearest_but_its_own(build):
    """IS-CSE leaves the best match out, because it is the sentence's own copy. The weights are
    softmax(cos/2)."""
    (method,) = build("iscse")  # 12 entries, 3 neighbours
    torch.manual_seed(0)
    method.buffer = normalize(torch.randn(12, 5), dim=1)
    own = 7
    z = method.buffer[own]

    smoothed = method.smooth(z[None], method.buffer)[0]

    def similarity_to_z(entry):
        return cosine(z, entry)

    others = [entry for index, entry in enumerate(method.buffer) if index != own]
    nearest = sorted(others, key=similarity_to_z, reverse=True)[:3]
    group = [z, *nearest]
    cosines = torch.tensor([cosine(z, entry) for entry in group])
    weights = torch.softmax(cosines / 2, dim=0)
    expected = sum(weight * entry for weight, entry in zip(weights, group, strict=True))
    torch.testing.assert_close(smoothed, expected)


def test_loss_of_pcl(build):
    """Every term is computed by hand for two sentences with two positives and the copy.

    The divergence is from main to peer.
    """
    method, *_ = build("pcl")
    torch.manual_seed(0)
    main, peer = torch.randn(2, 3, 2, 5, dtype=torch.float64)
    view1 = SimpleNamespace(z=main.flatten(0, 1), blocks=3)
    view2 = SimpleNamespace(z=peer.flatten(0, 1), blocks=3)

    loss = method.loss(Views(view1, view2))

    expected = rel_entr(pcl_rows(peer, peer), pcl_rows(main, main)).mean()
    expected += rel_entr(pcl_rows(peer, main), pcl_rows(main, peer)).mean()
    for z in (main, peer):
        expected += info_nce_of_copies(z)
        is_correct = expit(pcl_rows(z, z) * [1, 1, -1])  # the rows are the logits of a BCE
        expected -= np.log(is_correct).mean()
    assert float(loss) == pytest.approx(expected)


def pcl_rows(anchors, others):
    """Compare view 0 of each of two sentences with its two positives, then with the other sentence.

    Args:
        anchors, others: (3, 2, D), the views of both sentences.

    Returns:
        (2, 3) softmax of each sentence's cosines.
    """
    logits = []
    for sentence, other_sentence in ((0, 1), (1, 0)):
        anchor = anchors[0, sentence]
        compared = [others[1, sentence], others[2, sentence], others[0, other_sentence]]
        logits.append([cosine(anchor, vector) / 0.05 for vector in compared])
    return softmax(logits, axis=1)


def info_nce_of_copies(z):
    """Compute InfoNCE between view 0 and view 1, which are a sentence and its copy."""
    logits = []
    for vector in z[0]:
        logits.append([cosine(vector, copied) / 0.05 for copied in z[1]])
    return -np.log(np.diag(softmax(logits, axis=1))).mean()


def test_consistency_of_rankings():
    """RankCSE: the loss is SciPy's divergence, and 0 if both views rank the same way.

    The form of the released code is an entropy.
    """
    torch.manual_seed(0)
    z1, z2 = torch.randn(2, 6, 5, dtype=torch.float64)
    logits = cos_sim(z1, z2).numpy() / 0.05
    p = softmax(logits, axis=1)
    q = softmax(logits.T, axis=1)

    same = rankcse.ranking_consistency(z1, z1, 0.05)
    divergence = rankcse.ranking_consistency(z1, z2, 0.05)
    released = rankcse.ranking_consistency(z1, z2, 0.05, "entropy")

    assert same == pytest.approx(0, abs=1e-12)
    assert divergence == pytest.approx(np.mean(jensenshannon(p, q, axis=1) ** 2))
    mean_entropy = np.mean(entropy(p, axis=1) + entropy(q, axis=1))
    assert released == pytest.approx(-0.5 * mean_entropy)


def smoothing_weights(build, variant=None, **params):
    """List the weights of IS-CSE's term over a run of 100 steps."""
    (method,) = build("iscse", variant=variant, params={"steps": 100, **params})
    weights = []
    for step in range(100):
        method.step = step
        weights.append(method.weight())
    return weights


def test_smoothing_rises_over_half_the_run(build):
    weights = smoothing_weights(build, "large")
    assert weights == sorted(weights)
    assert weights[0] == pytest.approx(0.005)
    assert weights[25] == pytest.approx(0.0182, abs=1e-4)
    assert weights[50:] == pytest.approx([0.05] * 50)


@pytest.mark.parametrize("variant", [None, "large"])
def test_a_searched_smoothing_keeps_the_shape_of_its_schedule(build, variant):
    weights = smoothing_weights(build, variant, smoothing=0.1)
    doubled = smoothing_weights(build, variant, smoothing=0.2)
    assert doubled == pytest.approx([2 * weight for weight in weights])


def test_smoothing_is_constant_for_the_base_models(build):
    assert smoothing_weights(build) == [0.1] * 100


def test_whitening_makes_the_covariance_the_identity():
    """A direction without variance is dropped."""
    deviations = np.diag([3.0, 1.0, 0.1, 0.01, 0.0])
    vectors = np.random.default_rng(0).standard_normal((200, 5)) @ deviations + 2

    shift, matrix = load("whitening").fit(vectors, typed_params("whitening", {}))
    white = (vectors - shift) @ matrix

    np.testing.assert_allclose(np.cov(white.T), np.diag([1, 1, 1, 1, 0]), atol=1e-3)
    assert abs(white.mean(0)).max() < 1e-3
    assert shift.dtype == np.float32
    assert matrix.dtype == np.float32
