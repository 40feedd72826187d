"""How much of some work is matrix products, which no rearrangement makes cheaper, and how fast they run."""

from collections.abc import Callable
from typing import Any

import torch

PRODUCTS = ("aten::mm", "aten::addmm", "aten::addmm_", "aten::bmm")
LAYERS = ("aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward")  # of LSTMs, whose products are not told apart


def share_of_products(run: Callable[[], Any], ratio: float) -> str:
    """A sentence of the share of products in our time, and of the ratio to the peer's if that were all of it."""
    run()
    with torch.profiler.profile(with_flops=True) as profiler:
        run()
    spent = profiler.key_averages()
    products = [event for event in spent if event.key in PRODUCTS]
    taken = sum(event.self_cpu_time_total for event in products)
    share = taken / sum(event.self_cpu_time_total for event in spent)
    speed = sum(event.flops for event in products) / taken / 1e3
    inside = sum(event.self_cpu_time_total for event in spent if event.key in LAYERS)
    if inside > taken:
        bound = (taken + inside) / sum(event.self_cpu_time_total for event in spent)
        return (
            f"{bound:.0%} of our time goes into matrix products and torch's own LSTM layers; were all else free, the "
            f"ratio would be {ratio / bound:.3g}×."
        )
    return (
        f"{share:.0%} of our time goes into matrix products, which run at {speed:.0f} GFLOP/s on one core; "
        f"were all else free, the ratio would be {ratio / share:.3g}×."
    )
