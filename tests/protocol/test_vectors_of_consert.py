"""ConSERT and MoCoSE against what their official code gives."""

import copy
from types import SimpleNamespace

import torch
from torch import nn
from transformers import BertConfig, BertModel
from vector_cases import Case, cases

from csebench.model.pooling import Encoded, mean_pool
from csebench.plan.catalog.registry import typed_params
from csebench.train.losses import info_nce
from csebench.train.method import View, Views
from methods import consert, mocose

# ---------------------------------------------------------------- ConSERT


def loss_of_consert(case, z1, z2):
    """Compute the loss of the method without its encoder."""
    params = {"temperature": case.settings["temp"], "loss_weight": case.settings["loss_weight"]}
    method = SimpleNamespace(p=typed_params("consert", params))
    views = Views(View(z1, z1, batch={}), View(z2, z2, batch={}))
    return consert.Method.loss(method, views)


@cases("consert")
def test_loss_of_consert(name, precision):
    case = Case(name, precision)
    z1 = case.tensor("in_z1", grad=True)
    z2 = case.tensor("in_z2", grad=True)

    value = loss_of_consert(case, z1, z2)

    case.check("loss", value)
    case.check_gradients(value, z1=z1, z2=z2)


@cases("consert_edits")
def test_feature_cutoff_of_consert(name, precision):
    """The official code sets as many features to 0, and leaves the others as they are."""
    case = Case(name, precision)
    embedding = case.tensor("in_embedding")
    count, _, size = embedding.shape
    cut = case.tensor("cut")
    official = (cut != 0).any(dim=1, keepdim=True).to(case.dtype)  # (N, 1, D)
    assert torch.equal(embedding * official, cut)

    torch.manual_seed(0)
    kept = consert.kept_features(count, size, case.settings["cutoff"])

    assert kept.shape == official.shape
    assert torch.equal(kept.sum(-1), official.sum(-1).float())
    assert not torch.equal(kept[0], kept[1])  # every sentence loses others


def test_shuffled_tokens_have_the_mean_of_shuffled_positions():
    """The official code permutes position ids of real tokens, [CLS] and [SEP] included."""
    lengths = [7, 4, 5]
    config = BertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        initializer_range=0.3,
    )
    torch.manual_seed(0)
    model = BertModel(config, add_pooling_layer=False).double().eval()
    mask = torch.tensor([[1] * length + [0] * (7 - length) for length in lengths])
    ids = torch.randperm(30)[:21].view(3, 7).masked_fill(mask == 0, 39)

    shuffled = consert.shuffle_tokens({"input_ids": ids, "attention_mask": mask})["input_ids"]

    # where each token of a row has gone
    positions = (ids.unsqueeze(2) == shuffled.unsqueeze(1)).int().argmax(dim=2)
    positions = torch.where(mask == 1, positions, torch.arange(7))
    assert (positions[:, 0] > 0).any()  # [CLS] moves, too

    def mean(**inputs):
        return mean_pool(model(attention_mask=mask, **inputs).last_hidden_state, mask)

    with torch.no_grad():
        official = mean(input_ids=ids, position_ids=positions)
        torch.testing.assert_close(mean(input_ids=shuffled), official)
        assert not torch.allclose(mean(input_ids=ids), official)


@cases("consert_edits")
def test_positions_that_consert_shuffles(name, precision):
    """They are those of all real tokens, as in the official code."""
    case = Case(name, precision)
    mask = case.tensor("in_mask")
    official = case.tensor("positions")
    in_place = torch.arange(mask.shape[1]).expand_as(mask)

    shuffled = consert.shuffle_tokens({"input_ids": in_place, "attention_mask": mask})

    for positions in (official, shuffled["input_ids"]):
        assert torch.equal(positions.sort(dim=1).values, in_place)
        assert torch.equal(positions[mask == 0], in_place[mask == 0])


# ---------------------------------------------------------------- MoCoSE


@cases("mocose")
def test_info_nce_with_a_queue_is_the_loss_of_mocose(name, precision):
    case = Case(name, precision)
    queries = case.tensor("in_query", grad=True)
    keys = case.tensor("in_keys", grad=True)

    value = info_nce(queries, keys, case.settings["temp"], case.tensor("in_queue"))

    case.check("loss", value)
    case.check_gradients(value, query=queries, keys=keys)


@cases("mocose_momentum")
def test_momentum_rises_as_in_the_code_of_mocose(name, precision):
    case = Case(name, precision)
    params = typed_params("mocose", {"momentum": case.settings["momentum"]})
    method = SimpleNamespace(p=params)
    momenta = []
    for step in case.tensor("in_step").tolist():
        momenta.append(mocose.Method.momentum(method, step))
    case.check("kept", torch.tensor(momenta, dtype=case.dtype))


class Layers(nn.Module):
    """Stands in for a BERT in both codes: embeddings, a linear layer over neighbours, and tanh."""

    def __init__(self, vocabulary, length, size):
        super().__init__()
        self.embeddings = nn.ModuleDict(
            {
                "word_embeddings": nn.Embedding(vocabulary, size),
                "position_embeddings": nn.Embedding(length, size),
                "token_type_embeddings": nn.Embedding(2, size),
                "LayerNorm": nn.LayerNorm(size, eps=1e-12),
            }
        )
        self.mix = nn.Linear(size, size)

    def forward(self, ids):
        layer = self.embeddings
        states = layer["word_embeddings"](ids) + layer["token_type_embeddings"].weight[0]
        states = layer["LayerNorm"](states + layer["position_embeddings"].weight)
        return torch.tanh(self.mix(states + states.mean(1, keepdim=True)))


class StandIn(nn.Module):
    """The part of `Encoder` that MoCoSE uses."""

    device = "cpu"

    def __init__(self, model, size):
        super().__init__()
        self.model = model
        self.size = size
        self.attention_layers = set()

    def copy(self):
        return copy.deepcopy(self)

    def forward(self, batch, pooler, **unused):
        ids = batch["input_ids"]
        output = SimpleNamespace(last_hidden_state=self.model(ids))
        return Encoded(output, ids, torch.ones_like(ids).bool(), mask_id=0)


def mocose_method(case):
    """Build the method from the weights of the official one."""
    settings = case.settings
    model = Layers(settings["vocab"], settings["T"], settings["D"])
    names = ("queue", "initial", "momentum")
    params = {name: settings[name] for name in names} | {"dropout": 0.0}
    method = mocose.Method(StandIn(model, settings["D"]), typed_params("mocose", params))
    method.to(case.dtype)

    with torch.no_grad():
        for name, module in official_names(method).items():
            for key, weight in module.named_parameters():
                weight.copy_(case.tensor(f"in_{name}.{key}"))
    method.target.model.mix.load_state_dict(model.mix.state_dict())
    method.target_dense.load_state_dict(method.dense.state_dict())
    method.target_projection.load_state_dict(method.projection.state_dict())
    method.queue = case.tensor("in_queue")[: settings["initial"]]
    return method


def official_names(method):
    """Name the modules of the query network as the official code does."""
    model = method.encoder.model
    return {
        "online_embeddings": model.embeddings,
        "online_encoder.mix": model.mix,
        "online_pooler.dense": method.dense,
        "online_projection.dense": method.projection[0],
        "online_projection.LayerNorm": method.projection[1],
        "prodiction.mlp.mlp_0": method.predictor[0],
        "prodiction.mlp.layer_norm_0": method.predictor[1],
        "prodiction.dense": method.predictor[3],
    }


@cases("mocose_steps")
def test_steps_of_mocose(name, precision, monkeypatch):
    """Gradients flow through the keys, the target follows, and the newest keys are negatives."""
    case = Case(name, precision)
    method = mocose_method(case)
    watched = official_names(method)
    embeddings = watched.pop("online_embeddings")
    watched["online_embeddings.word_embeddings"] = embeddings["word_embeddings"]
    watched["target_projection.model.dense"] = method.target_projection[0]
    trained = [weight for weight in method.parameters() if weight.requires_grad]
    optimizer = torch.optim.SGD(trained, lr=case.settings["learning_rate"])

    monkeypatch.setattr(method, "tokenize", lambda ids: {"input_ids": ids})

    for step, ids in enumerate(case.tensor("in_ids")):
        loss = method.loss(method.views(ids))
        loss.backward()

        case.check(f"loss_{step}", loss)
        for official_name, module in watched.items():
            case.check(f"grad_{step}_{official_name}.weight", module.weight.grad)
        optimizer.step()
        optimizer.zero_grad()
        method.after_step()
