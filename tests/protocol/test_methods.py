"""What single methods and components promise beyond the conformance suite, whose
first_steps.json holds the losses and gradients of their first steps."""

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
from csebench.plan.catalog.registry import COMPONENTS, load
from csebench.plan.schema.declarations import EncoderRef
from csebench.train.augment import copy, delete, insert_copies, reverse, shuffle
from csebench.train.losses import cos_sim
from csebench.train.method import Views, concat_views
from methods import rankcse, scd
from methods.components import auxiliary_mlm, rtd

BATCH = {"input_ids": 7, "attention_mask": 0, "labels": -100}  # what stands where nothing is


@pytest.fixture
def build(make_spec, tiny_bert):
    """A method with its components on a tiny BERT: `build("simcse", components={"mlm": {}})`."""

    def made(name, **kwargs):
        spec = make_spec(name, **kwargs)
        encoder = Encoder.load(
            EncoderRef(name=str(tiny_bert), revision="local"), spec.params["dropout"]
        )
        torch.manual_seed(0)
        method = load(name)(encoder, spec.params).train()
        components = [
            load(n, COMPONENTS)(method, c.params).train() for n, c in spec.components.items()
        ]
        return method, *components

    return made


def test_rows_of_both_views_are_padded_to_the_longer():
    """With the padding of the tokenizer; what is padded is not restored."""
    batches = [{key: torch.ones(2, n, dtype=torch.long) for key in BATCH} for n in (2, 3)]
    batch = concat_views(Views(*(SimpleNamespace(batch=b, ids=b["input_ids"]) for b in batches)), 7)
    assert {key: value[:, 2].tolist() for key, value in batch.items()} == {
        k: [v, v, 1, 1] for k, v in BATCH.items()
    }
    assert all(len(value) == 4 and (value[:, :2] == 1).all() for value in batch.values())


def test_pretraining_hands_its_layers_over(finished, build):
    """InfoCSE starts from the encoder, the upper layers and the masked-LM head of a condenser
    run."""
    folder = finished("condenser") / "model"
    stored = load_file(folder / "modules.safetensors")
    method, fresh = build("infocse")
    method.encoder = Encoder.load(EncoderRef(name=str(folder), revision="local"))
    component = auxiliary_mlm.Component(method, vars(fresh.p))
    for name, module in (("upper", component.upper), ("lm_head", component.head)):
        for key, value in module.state_dict().items():
            assert torch.equal(value, stored[f"{name}.{key}"])


def test_generator_with_another_vocabulary(build, tiny_roberta):
    method, component = build("diffcse")
    with pytest.raises(BadInput, match=r"rtd.generator: .* vocabulary"):
        rtd.Component(method, {**vars(component.p), "generator": str(tiny_roberta)})


def test_edits():
    torch.manual_seed(0)
    ids = list(range(10, 20))
    drawn = {
        edit: [edit(torch.tensor(ids)).tolist() for _ in range(200)]
        for edit in (shuffle, delete, insert_copies)
    }
    assert copy(ids) == ids and reverse(torch.tensor(ids)).tolist() == ids[::-1]
    assert (
        all(sorted(d) == ids for d in drawn[shuffle]) and len(set(map(tuple, drawn[shuffle]))) > 100
    )
    assert all(len(d) == 8 and d == sorted(set(d)) for d in drawn[delete])
    assert all(len(d) == 12 and set(d) == set(ids) for d in drawn[insert_copies])
    for edit in (copy, reverse, shuffle, delete, insert_copies):
        assert [len(edit(torch.arange(n))) for n in (0, 1)] == [0, 1]


def test_inserted_copies_end_at_the_longest_sentence(build):
    """PCL: of 20 tokens 4 are copied, of the 29 that leave room for one more one, of 30 none
    (train.py:602)."""
    (method,) = build("pcl")
    edit = method.edit("insert_copies")
    assert [len(edit(torch.arange(n))) for n in (20, 29, 30)] == [24, 30, 30]


def test_long_sentences_are_cut_between_cls_and_sep(build):
    """At `max_length`, and after an edit at what the encoder reads."""
    method, _ = build("esimcse", params={"max_length": 100})
    assert method.tokenize(["a b c " * 60])["input_ids"].shape == (1, 100)
    (row,) = method.tokenize_edited(["a b c " * 60], [lambda ids: ids.repeat(2)])[
        "input_ids"
    ].tolist()
    tokenizer = method.encoder.tokenizer
    assert len(row) == method.encoder.max_seq_length
    assert (row[0], row[-1]) == (tokenizer.cls_token_id, tokenizer.sep_token_id)


@pytest.mark.parametrize("pooler", PROMPT_TEMPLATES)
def test_a_long_sentence_gives_way_to_its_prompt_and_its_own_mask_is_not_pooled(
    pooler, tiny_bert, sentences
):
    """Token by token a prompt is what AutoTokenizer makes of it: tests/conformance."""
    encoder = Encoder.load(EncoderRef(name=str(tiny_bert), revision="local")).eval()
    (long,) = encoder.in_template(encoder.ids([sentences[0] * 50]), pooler)
    template = PROMPT_TEMPLATES[pooler].partition("[X]")[2]
    end = encoder.tokenizer(template, add_special_tokens=False)["input_ids"]
    assert len(long) == encoder.max_seq_length and long[-1 - len(end) : -1] == end
    batch = encoder.tokenize([f"a [MASK] in {sentences[0]}"], pooler=pooler)
    last = int((batch["input_ids"][0] == encoder.tokenizer.mask_token_id).nonzero()[-1])
    wanted = encoder(batch).output.last_hidden_state[:, last]  # of the states at every position
    torch.testing.assert_close(pool(pooler, encoder(batch, pooler)), wanted)


# ---------------------------------------------------------------- losses by hand


def cosine(a, b):
    return float(a @ b) / float(a @ a) ** 0.5 / float(b @ b) ** 0.5


def test_scd_pushes_the_views_apart(build):
    """α·cos/τ with a plus, and Barlow Twins of the projected vectors, weighted as in its README."""
    torch.manual_seed(0)
    one, two = (SimpleNamespace(z=z) for z in torch.randn(2, 4, 6, dtype=torch.float64))
    (method,) = build("scd")
    method.projector = torch.nn.Identity()
    repulsion = sum(cosine(a, b) for a, b in zip(one.z, two.z, strict=True)) / 4 / 0.05
    wanted = repulsion + 0.005225 * float(scd.barlow_twins(one.z, two.z, 0.012))
    assert float(method.loss(Views(one, two))) == pytest.approx(wanted)


def test_smoothing_is_over_the_nearest_but_its_own(build):
    """IS-CSE: the best match is the sentence's own copy and does not count; weights are
    softmax(cos/2)."""
    (method,) = build("iscse")  # 12 entries, 3 neighbours
    torch.manual_seed(0)
    method.buffer = normalize(torch.randn(12, 5), dim=1)
    z = method.buffer[[7]]
    others = sorted(
        (e for i, e in enumerate(method.buffer) if i != 7), key=lambda e: -cosine(z[0], e)
    )[:3]
    group = [z[0], *others]
    weights = torch.softmax(torch.tensor([cosine(z[0], e) / 2 for e in group]), dim=0)
    smoothed = method.smooth(z, method.buffer)[0]
    torch.testing.assert_close(smoothed, sum(w * e for w, e in zip(weights, group, strict=True)))


def test_loss_of_pcl(build):
    """Two positives besides the copy, two sentences: every term by hand, the divergence from
    main to peer."""
    method, *_ = build("pcl")
    torch.manual_seed(0)
    main, peer = torch.randn(2, 3, 2, 5, dtype=torch.float64)

    def rows(a, b):
        """Of either sentence: view 0 with its positives, then with the other sentence."""
        pairs = [[(a[0, i], b[k, i]) for k in (1, 2)] + [(a[0, i], b[0, 1 - i])] for i in (0, 1)]
        return softmax([[cosine(*pair) / 0.05 for pair in row] for row in pairs], axis=1)

    wanted = (
        rel_entr(rows(peer, peer), rows(main, main)).mean()
        + rel_entr(rows(peer, main), rows(main, peer)).mean()
    )
    for z in (main, peer):
        cosines = np.array([[cosine(one, two) / 0.05 for two in z[1]] for one in z[0]])
        wanted -= np.log(np.diag(softmax(cosines, axis=1))).mean()  # InfoNCE of the two copies
        wanted -= np.log(expit(rows(z, z) * [1, 1, -1])).mean()  # BCE of the rows as logits
    views = [SimpleNamespace(z=z.flatten(0, 1), blocks=3) for z in (main, peer)]
    assert float(method.loss(Views(*views))) == pytest.approx(wanted)


def test_consistency_of_rankings():
    """RankCSE: zero where both views rank alike, the divergence of SciPy else; the code's form
    is an entropy."""
    torch.manual_seed(0)
    z1, z2 = torch.randn(2, 6, 5, dtype=torch.float64)
    assert rankcse.ranking_consistency(z1, z1, 0.05) == pytest.approx(0, abs=1e-12)
    s = cos_sim(z1, z2).numpy() / 0.05
    p, q = softmax(s, axis=1), softmax(s.T, axis=1)
    assert rankcse.ranking_consistency(z1, z2, 0.05) == pytest.approx(
        np.mean(jensenshannon(p, q, axis=1) ** 2)
    )
    wanted = -0.5 * np.mean(entropy(p, axis=1) + entropy(q, axis=1))
    assert rankcse.ranking_consistency(z1, z2, 0.05, "entropy") == pytest.approx(wanted)


def test_smoothing_rises_over_half_the_run(build):
    (method,) = build("iscse", variant="large", params={"steps": 100})
    weights = []
    for method.step in range(100):
        weights.append(method.weight())
    assert weights[0] == pytest.approx(0.005) and weights[25] == pytest.approx(0.0182, abs=1e-4)
    assert weights[50:] == pytest.approx([0.05] * 50) and weights == sorted(weights)


def test_whitening_makes_the_covariance_the_identity():
    """A direction without variance is dropped."""
    vectors = (
        np.random.default_rng(0).standard_normal((200, 5)) @ np.diag([3.0, 1.0, 0.1, 0.01, 0.0]) + 2
    )
    shift, matrix = load("whitening").fit(vectors, {})
    white = (vectors - shift) @ matrix
    np.testing.assert_allclose(np.cov(white.T), np.diag([1, 1, 1, 1, 0]), atol=1e-3)
    assert shift.dtype == matrix.dtype == np.float32 and abs(white.mean(0)).max() < 1e-3
