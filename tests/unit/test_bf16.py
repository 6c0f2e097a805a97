"""Products in bf16 on a CPU without instructions for them."""

import pytest
import torch

from csebench.base import cpu as cpu_facts
from csebench.model import bf16

X86 = "processor\t: 0\nflags\t\t: fpu avx2 avx512f {}\nprocessor\t: 1\n"


@pytest.fixture
def cpu(tmp_path, monkeypatch):
    """Let the test say what /proc/cpuinfo says. None: there is no such file."""

    def use(text: str | None):
        monkeypatch.setattr(cpu_facts, "CPU_INFO", tmp_path / "cpuinfo")
        if text is not None:
            cpu_facts.CPU_INFO.write_text(text)
        bf16.lacks_instructions.cache_clear()

    yield use
    bf16.lacks_instructions.cache_clear()


@pytest.mark.parametrize(
    ("text", "lacks"),
    [
        (X86.format("avx512vl"), True),
        (X86.format("avx512_bf16"), False),
        (X86.format("amx_bf16"), False),
        ("Features\t: fp asimd bf16\n", False),
        ("Features\t: fp asimd\n", True),
        ("", False),  # unknown
        (None, False),
    ],
)
def test_a_cpu_says_whether_it_has_bf16(cpu, text, lacks):
    cpu(text)
    assert bf16.lacks_instructions() == lacks


@pytest.mark.parametrize(
    ("device", "precision", "is_replaced"),
    [("cpu", "bf16", True), ("cpu", "fp32", False), ("cuda", "bf16", False)],
)
def test_only_bf16_on_such_a_cpu_is_computed_in_fp32(cpu, device, precision, is_replaced):
    cpu(X86.format(""))
    context = bf16.fast_products(torch.device(device), precision)
    assert isinstance(context, bf16.ProductsInFp32) == is_replaced


def product_and_gradients(layer, inputs):
    """Return a product under autocast, and the gradients of the inputs and the weights."""
    layer.zero_grad()
    leaf = inputs.clone().requires_grad_()
    with torch.autocast("cpu", torch.bfloat16):
        product = layer(leaf)
    product.float().square().sum().backward()
    return product, leaf.grad, layer.weight.grad.clone()


def test_a_layer_in_bf16_gets_the_same_numbers_up_to_rounding():
    generator = torch.Generator().manual_seed(0)
    layer = torch.nn.Linear(64, 32)
    inputs = torch.randn(16, 64, generator=generator)
    expected = product_and_gradients(layer, inputs)

    with bf16.ProductsInFp32():
        found = product_and_gradients(layer, inputs)

    for value, wanted in zip(found, expected, strict=True):
        assert value.dtype == wanted.dtype
        scale = wanted.abs().max()
        assert (value - wanted).abs().max() <= scale / 100  # a number in bf16 is right to 1/256


def test_a_product_is_rounded_once():
    generator = torch.Generator().manual_seed(0)
    left = torch.randn(8, 512, generator=generator).bfloat16()
    right = torch.randn(512, 8, generator=generator).bfloat16()

    with bf16.ProductsInFp32():
        product = left @ right

    assert torch.equal(product, (left.float() @ right.float()).bfloat16())


def test_products_of_other_numbers_stay_as_they_are():
    left = torch.rand(4, 8, dtype=torch.float64)
    right = torch.rand(8, 4, dtype=torch.float64)
    expected = left @ right

    with bf16.ProductsInFp32():
        assert torch.equal(left @ right, expected)
