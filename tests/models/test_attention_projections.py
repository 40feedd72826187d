"""The simplex maps: known values, the entmax package, masks, gradients."""

import itertools
from fractions import Fraction

import entmax as peer
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck
from torch.testing import assert_close

from heedful.errors import ProjectionError
from heedful.models import attention as P

B, T, L = 2, 3, 5
MAPS = [
    ("softmax", None),
    ("sparsemax", None),
    ("sparsegen", 0.5),
    ("sparsegen", -3.0),
    ("entmax15", None),
    ("entmax", 1.3),
]
SPARSE = [m for m in MAPS if m[0] not in ("softmax", "sparsegen")]


def random_scores(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64, scale: float = 1.0) -> Tensor:
    return scale * torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def random_mask(*shape: int, seed: int = 0) -> Tensor:
    mask = torch.rand(*shape, generator=torch.Generator().manual_seed(seed)) < 0.6
    mask[..., 0] = True
    return mask


def test_known_values() -> None:
    assert_close(P.sparsemax(torch.tensor([1.0, 0.8, 0.1])), torch.tensor([0.6, 0.4, 0.0]))
    assert_close(P.sparsegen(torch.tensor([0.3, 0.1]), lam=0.9), torch.tensor([1.0, 0.0]))
    assert_close(P.entmax15(torch.zeros(4)), torch.full((4,), 0.25))
    assert_close(P.uniform(torch.randn(T, L)), torch.full((T, L), 1 / L))
    assert_close(P.softmax(torch.tensor([0.0, float(np.log(3))])), torch.tensor([0.25, 0.75]))


def test_limits_of_sparsegen() -> None:
    z = torch.tensor([0.3, 0.2, -0.1])
    assert_close(P.sparsegen(z, lam=0.0), P.sparsemax(z))
    assert_close(P.sparsegen(z, lam=-1e6), torch.full((3,), 1 / 3), atol=1e-5, rtol=0)
    assert_close(P.sparsegen(z, lam=0.999), torch.tensor([1.0, 0.0, 0.0]))


def test_entmax_meets_its_neighbours() -> None:
    z = random_scores(B, T, L)
    assert_close(P.entmax(z, 1.0), P.softmax(z))
    assert_close(P.entmax(z, 1.5), P.entmax15(z))
    assert_close(P.entmax(z, 2.0), P.sparsemax(z))
    assert_close(P.entmax(z, 1.5 + 1e-7), P.entmax15(z), atol=1e-6, rtol=0)


@pytest.mark.parametrize(("name", "parameter"), MAPS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 40),
    scale=st.sampled_from([0.0, 1e-3, 1.0, 30.0, 1e6]),
    ties=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_simplex(
    name: str, parameter: float | None, dtype: torch.dtype, n: int, scale: float, ties: bool, seed: int
) -> None:
    z = random_scores(T, n, seed=seed, dtype=dtype, scale=scale)
    z = z.round() if ties else z
    p = P.project(name, z, None, parameter)
    assert p.dtype == dtype
    assert (p >= 0).all()
    assert_close(p.sum(-1), torch.ones(T, dtype=dtype), atol=1e-5 if dtype == torch.float32 else 1e-12, rtol=0)


@pytest.mark.parametrize("alpha", [1.5, 2.0])
@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 60),
    scale=st.floats(0.01, 50),
    ties=st.booleans(),
    masked=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_map_and_gradient_are_the_peers(
    alpha: float, n: int, scale: float, ties: bool, masked: bool, seed: int
) -> None:
    z = random_scores(B, T, n, seed=seed)
    z = (3 * z).round() / 3 if ties else z
    mask = random_mask(B, T, n, seed=seed) if masked else None
    p = P._entmax(z, mask, alpha, scale)
    theirs = peer.sparsemax if alpha == 2 else peer.entmax15
    assert_close(p, theirs(scale * P._masked(z, mask), dim=-1), atol=1e-9, rtol=1e-7)
    a, g = z.clone().requires_grad_(), random_scores(B, T, n, seed=seed + 1)
    P._entmax(a, mask, alpha, scale).backward(g)
    s = torch.where(p > 0, p ** (2 - alpha), 0.0)
    expected = scale * s * (g - (s * g).sum(-1, keepdim=True) / s.sum(-1, keepdim=True))
    assert_close(a.grad, expected, atol=1e-9, rtol=1e-9)


@pytest.mark.parametrize("scores", [(0, 0, 0, -0.2, -0.3, -0.4), (0, -1 / 7, -1 / 7, -3 / 7, -4 / 7)])
def test_a_score_exactly_at_the_threshold_does_not_keep_sparsemax_forever(scores: tuple[float, ...]) -> None:
    z = torch.tensor(scores, dtype=torch.float64)
    assert_close(P.sparsemax(z), peer.sparsemax(z, dim=-1), atol=1e-12, rtol=0)


def by_sorting(z: list[Fraction]) -> list[float]:
    """Sparsemax in fractions: the highest k scores, for the largest k whose last still lies above its threshold."""
    total, tau = Fraction(-1), Fraction(0)
    for k, score in enumerate(sorted(z, reverse=True), start=1):
        total += score
        tau = total / k if score > total / k else tau
    return [float(max(score - tau, Fraction(0))) for score in z]


EXTREME = [0.0, -0.0, 5e-324, -1e-310, 1e-16, -0.1, 0.2, -0.3, 1 / 3, 1.0, -1.0, 1e8, 1e16, -1e16, 1e38, -1e300, 1e308]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@settings(max_examples=60, deadline=None)
@given(scores=st.lists(st.sampled_from(EXTREME), min_size=1, max_size=9), lam=st.sampled_from([0.0, 0.9, -7.0]))
def test_extreme_and_tied_scores_are_solved_exactly(dtype: torch.dtype, scores: list[float], lam: float) -> None:
    largest = torch.finfo(dtype).max / 2
    z = torch.tensor(scores, dtype=torch.float64).clamp(-largest, largest).to(dtype)
    exact = by_sorting([Fraction(x) * Fraction(1 / (1 - lam)) for x in z.tolist()])
    close = {"atol": 1e-6 if dtype == torch.float32 else 1e-14, "rtol": 0}
    assert_close(P.sparsegen(z, lam), torch.tensor(exact, dtype=dtype), **close)
    for alpha in (1.5, 1.3, 4.0):
        p = P.entmax(z, alpha)
        assert_close(p.sum(), torch.tensor(1.0, dtype=dtype), **close)
        assert (p[z == z.max()] == p.max()).all()


@pytest.mark.parametrize("digits", [3, 7, 10])
def test_all_small_rows_of_tied_scores(digits: int) -> None:
    """Every row of five of these scores, many of which lie exactly at the threshold."""
    rows = list(itertools.product([0, 1, 2, 4], repeat=5))
    exact = [by_sorting([Fraction(-k, digits) for k in row]) for row in rows]
    z = -torch.tensor(rows, dtype=torch.float64) / digits
    assert_close(P.sparsemax(z), torch.tensor(exact, dtype=torch.float64), atol=1e-15, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_alpha_just_above_one_is_softmax_and_a_huge_one_the_highest(dtype: torch.dtype) -> None:
    z = torch.tensor([2.0, 1.0, 0.0, -3.0], dtype=dtype)
    assert_close(P.entmax(z, 1 + 1e-8), P.softmax(z), atol=1e-6, rtol=0)
    assert P.entmax(z, 1e300).tolist() == [1, 0, 0, 0]


def test_the_map_under_transforms_is_the_map() -> None:
    z = random_scores(T, L)
    for projection in (P.sparsemax, P.entmax15):
        assert_close(torch.func.vjp(projection, z)[0], projection(z))
        assert_close(torch.func.jacrev(projection)(z), torch.autograd.functional.jacobian(projection, z))


@pytest.mark.parametrize(("ours", "theirs"), [(P.sparsemax, peer.sparsemax), (P.entmax15, peer.entmax15)])
def test_gradient_is_the_peers(ours, theirs) -> None:  # type: ignore[no-untyped-def]
    z = random_scores(7, 101, scale=2.0)
    g = random_scores(7, 101, seed=1)
    a, b = z.clone().requires_grad_(), z.clone().requires_grad_()
    ours(a).backward(g)
    theirs(b, dim=-1).backward(g)
    assert_close(a.grad, b.grad)


@pytest.mark.parametrize(("name", "parameter"), MAPS)
def test_gradcheck(name: str, parameter: float | None) -> None:
    z = random_scores(B, T, L, scale=0.7).requires_grad_()
    mask = random_mask(B, 1, L)
    assert gradcheck(lambda z: P.project(name, z, None, parameter), (z,))
    assert gradcheck(lambda z: P.project(name, z, mask, parameter), (z,))
    assert gradgradcheck(lambda z: P.project(name, z, mask, parameter), (z,))


@pytest.mark.parametrize(("name", "parameter"), [*MAPS, ("uniform", None)])
def test_masked_is_removed(name: str, parameter: float | None) -> None:
    z, mask = random_scores(T, L), random_mask(T, L)
    p = P.project(name, z, mask, parameter)
    assert (p[~mask] == 0).all()
    for row, keep, out in zip(z, mask, p, strict=True):
        assert_close(out[keep], P.project(name, row[keep], None, parameter))


@pytest.mark.parametrize(("name", "parameter"), MAPS)
@pytest.mark.parametrize("rubbish", [float("nan"), float("inf"), -float("inf"), 1e30])
def test_what_is_masked_does_not_matter(name: str, parameter: float | None, rubbish: float) -> None:
    z, mask = random_scores(T, L), random_mask(T, L)
    dirty = torch.where(mask, z, rubbish).requires_grad_()
    clean = z.clone().requires_grad_()
    for x in (dirty, clean):
        (P.project(name, x, mask, parameter) * torch.arange(L)).sum().backward()
    assert_close(dirty.grad, clean.grad)
    assert (dirty.grad[~mask] == 0).all()


@pytest.mark.parametrize(("name", "parameter"), MAPS)
def test_batched_is_one_by_one_and_order_does_not_matter(name: str, parameter: float | None) -> None:
    z, order = random_scores(B, T, L), torch.tensor([3, 0, 4, 1, 2])
    p = P.project(name, z, None, parameter)
    one_by_one = torch.stack([P.project(name, row, None, parameter) for row in z.flatten(0, 1)]).view_as(z)
    assert_close(p, one_by_one)
    assert_close(P.project(name, z[..., order], None, parameter), p[..., order])


@pytest.mark.parametrize(("name", "parameter"), MAPS)
def test_strided_scores_and_broadcast_masks(name: str, parameter: float | None) -> None:
    z = random_scores(L, T, B).permute(2, 1, 0)
    mask = random_mask(B, 1, L)
    assert not z.is_contiguous()
    assert_close(
        P.project(name, z, mask, parameter),
        P.project(name, z.contiguous(), mask.expand(B, T, L).contiguous(), parameter),
    )
    assert_close(P.project(name, z, mask[0, 0], parameter), P.project(name, z, mask[0].expand(B, T, L), parameter))


@pytest.mark.parametrize(("name", "parameter"), SPARSE)
def test_under_torch_func(name: str, parameter: float | None) -> None:
    z = random_scores(T, L)
    by_loop = torch.stack(
        [torch.autograd.functional.jacobian(lambda x: P.project(name, x, None, parameter), r) for r in z]
    )
    assert_close(torch.func.vmap(torch.func.jacrev(lambda x: P.project(name, x, None, parameter)))(z), by_loop)
    x = z[0].clone().requires_grad_()
    (batched,) = torch.autograd.grad(
        P.project(name, x, None, parameter), x, torch.eye(L, dtype=z.dtype), is_grads_batched=True
    )
    assert_close(batched, by_loop[0])
    masks = random_mask(T, L)
    together = torch.func.vmap(lambda r, m: P.project(name, r, m, parameter))(z, masks)
    assert_close(together, P.project(name, z, masks, parameter))


@pytest.mark.parametrize(("name", "parameter"), [*MAPS, ("uniform", None)])
def test_fully_masked_row_is_named(name: str, parameter: float | None) -> None:
    mask = torch.ones(B, T, L, dtype=torch.bool)
    mask[1, 2] = False
    with pytest.raises(ProjectionError, match=r"row \[1, 2\] has every position masked"):
        P.project(name, random_scores(B, T, L), mask, parameter)


@pytest.mark.parametrize(("name", "parameter"), MAPS)
def test_nan_stays_in_its_row(name: str, parameter: float | None) -> None:
    z = random_scores(T, L)
    z[1, 3] = float("nan")
    p = P.project(name, z, None, parameter)
    assert p[1].isnan().all()
    assert not p[[0, 2]].isnan().any()


@pytest.mark.parametrize(("name", "parameter"), MAPS)
def test_half_precision_and_no_rows(name: str, parameter: float | None) -> None:
    assert P.project(name, torch.randn(T, L).bfloat16(), None, parameter).dtype == torch.bfloat16
    assert P.project(name, torch.empty(0, L), None, parameter).shape == (0, L)
    assert P.project(name, torch.empty(0, L), torch.ones(0, L, dtype=torch.bool), parameter).shape == (0, L)


def test_refusals() -> None:
    z = torch.zeros(L)
    for lam in (1.0, 1.5, float("nan"), -float("inf")):
        with pytest.raises(ProjectionError, match="below 1"):
            P.sparsegen(z, lam=lam)
    with pytest.raises(ProjectionError, match="1 or more"):
        P.entmax(z, alpha=0.5)
    with pytest.raises(ProjectionError, match="there are softmax, uniform"):
        P.project("hardmax", z)
    with pytest.raises(ProjectionError, match="needs its lambda"):
        P.project("sparsegen", z)
    with pytest.raises(ProjectionError, match="takes no parameter"):
        P.project("softmax", z, parameter=0.5)
    with pytest.raises(ProjectionError, match="no position"):
        P.sparsemax(torch.empty(2, 0))


def test_an_output_changed_in_place_is_noticed() -> None:
    z = random_scores(L).requires_grad_()
    p = P.sparsemax(z)
    p.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        p.sum().backward()


@pytest.mark.parametrize("lam", [-1e300, -1.7e308])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_sparsegen_of_a_lambda_far_below_zero_is_uniform(lam, dtype):
    scores = torch.tensor([[1.0, 0.8, 0.1], [3e38, -3e38, 0.0]], dtype=dtype, requires_grad=True)
    weights = P.sparsegen(scores, lam)
    assert_close(weights, torch.full_like(weights, 1 / 3))
    weights[:, 0].sum().backward()
    assert scores.grad.isfinite().all()
