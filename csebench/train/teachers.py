"""Frozen encoders beside the one that is trained.

DistillCSE and RankCSE learn the similarities that these encoders see between sentences. RankEncoder
learns how one of them ranks a corpus. DCLR asks one of them which negatives are false.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from csebench.base.errors import BadInput
from csebench.base.gpus import device_type
from csebench.base.hub import EncoderRef
from csebench.model.encoder import Encoder
from csebench.model.pooling import pool
from csebench.train import parallel
from csebench.train.losses import cos_sim


def load_teacher(name: str, encoder: Encoder, parameter: str) -> Encoder:
    """Load an encoder that is not trained, without dropout.

    Args:
        name: a model of the hub at a pinned revision, or `self` for a copy of `encoder`.
        parameter: the parameter that has the name, for messages.

    Raises:
        BadInput: the revision is not pinned, the model cannot be read, or its vocabulary is not
            the encoder's.
    """
    if name == "self":
        teacher = encoder.copy()
    else:
        ref = EncoderRef.parse(name)
        ref.refuse_unpinned(f"{parameter}: {name}")
        teacher = load_with_vocabulary(ref, encoder, parameter)
    teacher.set_dropout(0.0)
    return teacher.requires_grad_(False)


def load_with_vocabulary(ref: EncoderRef, encoder: Encoder, parameter: str) -> Encoder:
    """Load a model that has the vocabulary of `encoder`.

    Args:
        parameter: the parameter that names the model, for messages.

    Raises:
        BadInput: the model cannot be read, or its vocabulary is another one.
    """
    model = Encoder.load(ref)
    if model.tokenizer.get_vocab() != encoder.tokenizer.get_vocab():
        raise BadInput(
            f"{parameter}: {ref.name} has another vocabulary than the encoder; name a model with"
            " the same one."
        )
    return model


def load_teachers(names: str, encoder: Encoder, parameter: str) -> nn.ModuleList:
    """Load encoders that are not trained, without dropout.

    Args:
        names: the names that `load_teacher` takes, with spaces between.
        parameter: the parameter that has the names, for messages.

    Raises:
        BadInput: no name is given, or `load_teacher` refuses one.
    """
    if not names.split():
        raise BadInput(f"{parameter}: names no model; name at least one, or `self`.")
    return nn.ModuleList(load_teacher(name, encoder, parameter) for name in names.split())


def teacher_similarities(teachers: Iterable[nn.Module], batch: dict[str, Tensor]) -> Tensor:
    """Compute each teacher's cosines between the sentences of all processes.

    Args:
        batch: tokenised sentences of this process.

    Returns:
        (K, N, N) for K teachers.
    """
    return torch.stack([teacher_cosines(teacher, batch) for teacher in teachers])


@torch.no_grad()
def teacher_cosines(
    teacher: nn.Module, batch: dict[str, Tensor], others: Tensor | None = None
) -> Tensor:
    """Compute the cosines of a teacher's [CLS] vectors of the sentences of all processes.

    The teacher computes in fp32, also under autocast, because small temperatures and ranks magnify
    rounding.

    Args:
        batch: tokenised sentences of this process.
        others: (M, D) vectors to compare with; None for the vectors themselves.

    Returns:
        (N, M), or (N, N).
    """
    pooler = "cls_before_pooler"
    with torch.autocast(device_type(), enabled=False):
        vectors = parallel.gather(pool(pooler, teacher(batch, pooler)))  # (N, D)
        if others is None:
            others = vectors
        return cos_sim(vectors, others)
