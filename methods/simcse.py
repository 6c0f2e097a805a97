"""SimCSE, unsupervised.

Idea: encode a sentence twice under different dropout masks. The two vectors are a positive pair.
The other sentences of the batch are negatives.

    loss = -log exp(cos(z1_i, z2_i)/τ) / Σ_j exp(cos(z1_i, z2_j)/τ),   mean over i

Source: Eq. 1; official code: princeton-nlp/SimCSE simcse/models.py:194-212.
Inputs: a batch of N sentences; z1, z2 (N, D) = head([CLS]) of the two views.
Relations: every other contrastive method here starts from this one. With the components ami and
moco it is miCSE. Only with the component moco, the vectors of a queue are further negatives.
"""

from torch import Tensor
from torch.nn.functional import cosine_similarity

from csebench.train.losses import info_nce, upcast_fp32
from csebench.train.method import ClsHeadMethod, Views

DECLARATION = {
    "name": "simcse",
    "version": 2,
    "title": "SimCSE (unsupervised)",
    "paper": "Gao et al. 2021 (EMNLP), sec. 3",
    "citation": (
        """@inproceedings{gao2021simcse, title={{SimCSE}: Simple Contrastive Learning of Sentence Embeddings},
author={Gao, Tianyu and Yao, Xingcheng and Chen, Danqi}, booktitle={EMNLP}, year={2021}}"""
    ),
    "trains": "encoder, head",
    "colours": {"": "#0072B2", "ami": "#17A2A2", "moco": "#B03A78"},
    "params": {
        "steps": (15625, "1 epoch of 10^6 sentences at batch 64"),
        "batch_size": (64, "README table, run_unsup_example.sh"),
        "learning_rate": (3e-5, "README table, BERT base"),
        "max_length": (32, "run_unsup_example.sh"),
        "evaluate_every": (125, "run_unsup_example.sh"),
        "pooler": ("cls_before_pooler", "[CLS]; its MLP is used in training only (mlp_only_train)"),
        "temperature": (0.05, "sec. 3, run_unsup_example.sh"),
        "negatives": (
            "batch",
            "sec. 3; zeroed: miCSE's `diag_only` (models.py:320-321); none: -cos/τ alone",
        ),
    },
    "search": {
        "learning_rate": (1e-5, 3e-5, 1e-4),
        "temperature": (0.02, 0.05, 0.1),
        "pooler": ("cls_before_pooler", "avg", "avg_first_last_2021"),
    },
    "choices": {"negatives": ["batch", "zeroed", "none"]},
    "variants": {
        "default": (
            "as released",
            "evaluation on STS-B dev every 125 steps (run_unsup_example.sh)",
        ),
        "paper": (
            "as printed",
            "evaluation every 250 steps (App. A); the learning rate is 3e-5 in both (Table A.1)",
            {"evaluate_every": 250},
        ),
        "mlm": (
            "as printed",
            "w/ MLM: masked copies of both views are restored, the views themselves are not masked",
            {"components": {"mlm": {}}},
        ),
        "mlm_in_place": (
            "as released",
            (
                "w/ MLM until commit a0867f4 (2021-11-23): masks were written into the views that"
                " the loss compares"
            ),
            {"components": {"mlm": {"form": "in_place"}}},
        ),
        "no_negatives": (
            "as printed",
            (
                "without negatives (miCSE, Appendix E), read as a loss without denominator: -cos/τ"
                " alone"
            ),
            {"negatives": "none"},
        ),
        "zeroed_negatives": (
            "as released",
            (
                "without negatives in miCSE's code (`diag_only`): logits of other sentences are set"
                " to 0, not removed"
            ),
            {"negatives": "zeroed"},
        ),
    },
    "deviations": [
        (
            "precision as the scale says, fp32 or bf16, where the official script trains in fp16;"
            " cosines are in fp32 in all three"
        ),
        "STS-B dev is embedded in the run's precision; the official trainer uses fp32",
        (
            "`without negatives` (miCSE Appendix E) has two readings, each a variant: logits of other"
            " sentences are 0 (the code), or there is no denominator, and then no use for a queue"
        ),
    ],
}


class Method(ClsHeadMethod):
    def loss(self, views: Views) -> Tensor:
        if self.p.negatives == "none":  # the loss without its denominator
            cosines = cosine_similarity(upcast_fp32(views.z1), upcast_fp32(views.z2))
            return -cosines.mean() / self.p.temperature
        return info_nce(
            views.z1,
            views.z2,
            self.p.temperature,
            views.queue,
            in_batch_negatives=self.p.negatives == "batch",
        )
