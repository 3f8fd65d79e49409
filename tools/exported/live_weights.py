# SPDX-License-Identifier: Apache-2.0
"""Weights that leave no part of a PyTorch module without effect.

Fresh modules hide faults: biases of zero, gains of one, statistics of a batch normalisation that
change nothing, attention so flat that a lost mask goes unnoticed. enliven() draws every parameter
anew from a seed and lets batch normalisations see data.
"""

import math
import zlib

import torch

_BATCH_NORMS = (torch.nn.modules.batchnorm._BatchNorm,)


def _draw(parameter, generator, mean, deviation):
    values = torch.randn(parameter.shape, generator=generator) * deviation + mean
    parameter.copy_(values.to(parameter.dtype))


def _is_norm(module):
    return "Norm" in type(module).__name__ or "norm" in type(module).__name__


def _redraw(module, name, parameter, generator, gain):
    kind = type(module).__name__
    if name == "weight" and _is_norm(module):
        _draw(parameter, generator, 1.0, 0.2)
    elif name == "weight" and isinstance(module, torch.nn.Embedding):
        _draw(parameter, generator, 0.0, 0.7)
    elif name == "weight" and kind == "Conv1D":  # transformers' own: [in, out]
        _draw(parameter, generator, 0.0, gain / math.sqrt(parameter.shape[0]))
    elif parameter.ndim >= 2 and name.split("_")[0] == "weight":
        is_transposed = "ConvTranspose" in kind
        groups = getattr(module, "groups", 1)
        fan_in = parameter[0].numel() if not is_transposed else parameter[:, 0].numel() // groups
        _draw(parameter, generator, 0.0, gain / math.sqrt(max(fan_in, 1)))
    elif name.startswith("bias") or name == "beta":
        _draw(parameter, generator, 0.0, 0.1)
    elif parameter.numel() > 1 and float(parameter.float().std()) < 0.05:
        # Tokens, positions, gates: around what they begin with, so that their meaning stays.
        start = parameter.float().mean()
        _draw(parameter, generator, float(start), 0.2 * max(1.0, abs(float(start))))


@torch.no_grad()
def enliven(module, name, gain=1.0, keep=()):
    """Draws the parameters of `module` from the seed of `name`; those whose name ends in one of
    `keep` stay. Returns the module in evaluation mode."""
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    done = set()
    for prefix, part in module.named_modules():
        for key, parameter in part.named_parameters(recurse=False):
            full = f"{prefix}.{key}"
            if id(parameter) in done or not parameter.is_floating_point():
                continue
            done.add(id(parameter))
            if not any(full.endswith(end) for end in keep):
                _redraw(part, key, parameter, generator, gain)
    return module.eval()


@torch.no_grad()
def settle_statistics(module, name, *batches):
    """Lets batch normalisations take their statistics from runs, then moves them further: what is
    normalised exactly hides an epsilon or a swapped pair."""
    norms = [part for part in module.modules() if isinstance(part, _BATCH_NORMS)]
    norms = [part for part in norms if part.running_mean is not None]
    if not norms:
        return module.eval()
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()) + 1)
    for norm in norms:
        norm.train()
        norm.momentum = None
        norm.reset_running_stats()
    for batch in batches:
        module(*batch)
    for norm in norms:
        spread = norm.running_var.sqrt()
        shift = torch.randn(spread.shape, generator=generator) * 0.2
        norm.running_mean.add_(spread * shift.to(spread.dtype))
        factor = torch.rand(spread.shape, generator=generator) * 0.8 + 0.6
        norm.running_var.mul_(factor.to(spread.dtype))
        norm.momentum = 0.1
    return module.eval()
