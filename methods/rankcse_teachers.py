"""RankCSE with its two teachers: the student also ranks a batch as they do.

Idea: two trained models, DiffCSE and SimCSE large, say how similar the sentences of a batch are.
The student learns the whole order, not only which two vectors are views of one sentence.

    loss = InfoNCE(z1, z2) + β · JS(rankings of both views) + γ · ranking distillation(s, t)
    s_ij = cos(z1_i, z2_j)/τ,   t_ij = (α cos(h_i, h_j) + (1-α) cos(g_i, g_j))/τ_t

    ListMLE:  -Σ_k log exp s_i(k) / Σ_{l ≥ k} exp s_i(l),   (k): the k-th sentence in the order of t_i
    ListNet:  CE(softmax t_i, softmax s_i), for j ≠ i
    Both are means over i.

Source: no official code was found; community code: perceptiveshawty/RankCSE
rankcse/models.py:63-109, 282-294, rankcse/trainers.py:472-530, run_rankcse.sh.
Inputs: a batch of N sentences; z1, z2 (N, D) = head([CLS]) of the two dropout views; h, g (N, D') =
[CLS] of the two teachers, without dropout and head.
Relations: rankcse + a term. ListNet is distillcse's term without shuffling, between both views.
"""

from torch import Tensor

from csebench.base.errors import BadInput
from csebench.model.encoder import Encoder
from csebench.plan.schema.declarations import Hyperparameters
from csebench.train.losses import cos_sim, off_diagonal
from csebench.train.method import Views
from csebench.train.teachers import load_teachers, teacher_similarities
from methods.distillcse import distil
from methods.rankcse import Method as RankCSE

DECLARATION = {
    "name": "rankcse_teachers",
    "version": 1,
    "extends": "rankcse",
    "title": "RankCSE with two teachers",
    "paper": "Liu et al. 2023 (ACL)",
    "citation": "see methods/rankcse.py",
    "needs": "trained teachers",
    "trains": "encoder, head",
    "colours": {"": "#B07CC6"},
    "params": {
        "steps": (7813, "1 epoch of 10^6 sentences at batch 128"),
        "batch_size": (128, "run_rankcse.sh"),
        "learning_rate": (3e-5, "run_rankcse.sh"),
        "max_length": (32, "run_rankcse.sh"),
        "evaluate_every": (125, "run_rankcse.sh"),
        "pooler": ("cls_before_pooler", "run_rankcse.sh: mlp_only_train"),
        "temperature": (0.05, "run_rankcse.sh"),
        "negatives": ("batch", "models.py:264-282"),
        "consistency": (1.0, "run_rankcse.sh: beta_, which the code never multiplies by"),
        "form": ("js", "as in rankcse; entropy: what the community code computes (models.py:60)"),
        "distillation": (1.0, "run_rankcse.sh: gamma_"),
        "ranking": ("listmle", "run_rankcse.sh: distillation_loss"),
        "teacher_temperature": (0.05, "run_rankcse.sh: tau2"),
        "first_share": (
            0.33,
            "run_rankcse.sh: alpha_, of the first teacher; the second has the rest",
        ),
        "teachers": (
            "voidism/diffcse-bert-base-uncased-sts@ea605f716bd57f97407640374487c2c9effc94af"
            " princeton-nlp/unsup-simcse-bert-large-uncased@a6db567693e8fec332a718036c4ad58f9c85cd21",
            (
                "run_rankcse.sh; two models, with a space between; `self`: the run's own encoder as"
                " it was before training"
            ),
        ),
    },
    "search": {"distillation": (0.1, 1.0, 10.0)},
    "weights": ["consistency", "distillation"],
    "below": [("first_share", 1), (0, "teacher_temperature")],
    "choices": {
        "negatives": ["batch", "zeroed", "none"],
        "form": ["js", "entropy"],
        "ranking": ["listmle", "listnet"],
    },
    "variants": {
        "default": (
            "released, repaired",
            (
                "the community code with ListMLE, but its consistency term is the divergence that"
                " rankcse has"
            ),
        ),
        "listnet": (
            "released, repaired",
            "the same with ListNet, the community code's other distillation",
            {"ranking": "listnet"},
        ),
        "code": (
            "as released",
            "the community code as it is: its consistency term is an entropy (models.py:60)",
            {"form": "entropy"},
        ),
    },
    "deviations": [
        "the settings and both losses are the community code's; the paper's were not at hand",
        (
            "as in the code, ListMLE also ranks the sentence's own second view, which the teachers"
            " put first, and adds 1e-7 to the sums whose logarithm it takes"
        ),
        "sentences that the teachers find equally similar keep their order; the code draws it",
        (
            "as in the code, ListNet's student has the temperature of the contrast; its README says"
            " that half of tau2 is a temperature, which no line reads"
        ),
        "teachers compute in fp32; the code rounds their vectors to fp16 before the cosines",
    ],
}


class Method(RankCSE):
    def __init__(self, encoder: Encoder, params: Hyperparameters):
        super().__init__(encoder, params)
        self.teachers = load_teachers(self.p.teachers, encoder, "rankcse_teachers.teachers")
        if len(self.teachers) != 2:
            raise BadInput(
                f"rankcse_teachers.teachers: names {len(self.teachers)} models; name two, with a"
                " space between."
            )

    def loss(self, views: Views) -> Tensor:
        first, second = teacher_similarities(self.teachers, views.view1.batch)  # (N, N) each
        taught = self.p.first_share * first + (1 - self.p.first_share) * second  # (N, N)
        student = cos_sim(views.z1, views.z2) / self.p.temperature  # (N, N)
        if self.p.ranking == "listmle":
            term = list_mle(student, taught)
        else:
            taught = taught / self.p.teacher_temperature
            term = distil(off_diagonal(student), off_diagonal(taught))
        return super().loss(views) + self.p.distillation * term


def list_mle(student: Tensor, taught: Tensor) -> Tensor:
    """Compute how unlikely the teachers' order is to the student, mean over rows (ListMLE).

    The student draws a row's sentences without replacement, each with a probability proportional to
    the exponential of its logit. The loss is -log of the probability to draw them in the order of
    the teachers.

    Args:
        student: (N, M) logits.
        taught: (N, M) similarities. Only their order in a row matters.
    """
    order = taught.argsort(dim=-1, descending=True, stable=True)  # (N, M)
    ranked = student.gather(-1, order)
    ranked = ranked - ranked.max(-1, keepdim=True).values
    remaining = ranked.exp().flip(-1).cumsum(-1).flip(-1)  # (N, M), sums over ranks k and below
    return ((remaining + 1e-7).log() - ranked).sum(-1).mean()
