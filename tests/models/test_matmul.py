"""oneDNN's products equal torch's own, forwards and backwards; other types and empty tensors stay with torch."""

import pytest
import torch
from torch.testing import assert_close

from heedful.models import matmul as products
from heedful.models.matmul import Linear, addmm, is_onednn_faster, matmul

M, K, N = 7, 11, 13


@pytest.fixture(params=[True, False])
def onednn(request, monkeypatch):
    if request.param and not torch.backends.mkldnn.is_available():
        pytest.skip("this torch has no oneDNN")
    monkeypatch.setattr(products, "is_onednn_faster", lambda: request.param)
    return request.param


@pytest.mark.parametrize("transposed", [False, True])
def test_products_equal_double_precision(onednn, transposed):
    a = torch.randn(K, M).t() if transposed else torch.randn(M, K)
    b = torch.randn(N, K).t() if transposed else torch.randn(K, N)
    c = torch.randn(M, N)
    exact = a.double() @ b.double()
    assert_close(matmul(a, b).double(), exact, atol=1e-5, rtol=1e-5)
    assert_close(addmm(c, a, b).double(), c.double() + exact, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("bias", [False, True])
def test_linear_has_the_gradients_of_torch(onednn, bias):
    torch.manual_seed(0)
    layer, x = Linear(K, N, bias=bias), torch.randn(2, M, K, requires_grad=True)
    exact = torch.nn.Linear(K, N, bias=bias, dtype=torch.float64)
    exact.load_state_dict({name: w.double() for name, w in layer.state_dict().items()})
    x_exact = x.detach().double().requires_grad_()
    layer(x).sin().sum().backward()
    exact(x_exact).sin().sum().backward()
    assert_close(x.grad.double(), x_exact.grad, atol=1e-5, rtol=1e-5)
    for own, other in zip(layer.parameters(), exact.parameters(), strict=True):
        assert_close(own.grad.double(), other.grad, atol=1e-5, rtol=1e-5)


def test_frozen_weights_get_no_gradient(onednn):
    layer = Linear(K, N).requires_grad_(False)
    x = torch.randn(M, K, requires_grad=True)
    layer(x).sum().backward()
    assert x.grad is not None
    assert layer.weight.grad is None


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows_and_double_precision(onednn, rows):
    assert Linear(K, N)(torch.randn(rows, K)).shape == (rows, N)
    assert matmul(torch.randn(rows, K), torch.randn(K, N)).shape == (rows, N)
    assert Linear(K, N, dtype=torch.float64)(torch.randn(rows, K, dtype=torch.float64)).dtype == torch.float64


def test_only_amd_processors_with_avx512(monkeypatch, tmp_path):
    info = tmp_path / "cpuinfo"
    monkeypatch.setattr(products, "CPU_INFO", info)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: "AVX512")
    answers = []
    for vendor in ("AuthenticAMD", "GenuineIntel", None):
        info.unlink(missing_ok=True)
        if vendor:
            info.write_text(f"vendor_id\t: {vendor}\n")
        answers.append(is_onednn_faster.__wrapped__())
    assert answers == [torch.backends.mkldnn.is_available() and torch.backends.mkl.is_available(), False, False]
