# SPDX-License-Identifier: Apache-2.0
"""Networks of the transformers package as subjects of torch's exporters: made small from their
configuration classes, with drawn weights, nothing loaded from anywhere."""

import zlib

from exported import live_weights
from exported.torch_export import Subject


def make_model(name, config_class, model_class, settings, gain=1.0):
    import torch
    import transformers

    transformers.utils.logging.set_verbosity_error()
    torch.manual_seed(zlib.crc32(name.encode()))
    config = getattr(transformers, config_class)(**settings)
    model = getattr(transformers, model_class)(config).eval()
    for part in model.modules():
        # Products of groups of rows, which experts are by default, have no operator of ONNX.
        if hasattr(getattr(part, "config", None), "_experts_implementation"):
            part.config._experts_implementation = "batched_mm"
    return live_weights.enliven(model, name, gain)


def wrap(model, names, choose=None, **fixed):
    """A module of positional tensors over a network of keywords; its answers are the tensors of
    the network's, or what `choose` takes of them."""
    import torch

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, *tensors):
            answer = self.model(**dict(zip(names, tensors)), **fixed)
            if choose is not None:
                return choose(answer)
            answer = answer.to_tuple() if hasattr(answer, "to_tuple") else answer
            return tuple(part for part in answer if isinstance(part, torch.Tensor))

    return Wrapped().eval()


def tokens(seed, batch, length, vocabulary):
    import torch

    generator = torch.Generator().manual_seed(seed)
    return torch.randint(3, vocabulary, (batch, length), generator=generator)


def padded(batch, length):
    """A mask of which every second sequence is shorter."""
    import torch

    mask = torch.ones(batch, length, dtype=torch.int64)
    mask[1::2, length - 2 :] = 0
    return mask


def signal(seed, *shape):
    import torch

    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def make_text(name, config_class, model_class, settings, names=("input_ids", "attention_mask"),
              gain=1.0, tolerance=1e-4, sizes=((2, 9), (3, 14)), **fixed):
    """Tokens and a mask in, of any batch and length."""
    vocabulary = settings["vocab_size"]

    def make():
        model = make_model(name, config_class, model_class, settings, gain)
        inputs = []
        for seed, (batch, length) in enumerate(sizes):
            given = [tokens(seed, batch, length, vocabulary)]
            if "attention_mask" in names:
                given.append(padded(batch, length))
            if "token_type_ids" in names:
                given.append(tokens(seed + 9, batch, length, 8) % 2)
            if "decoder_input_ids" in names:
                given.append(tokens(seed + 5, batch, length - 4, vocabulary))
            inputs.append(tuple(given))
        axes = {number: {0: "batch", 1: "length"} for number in range(len(names))}
        if "decoder_input_ids" in names:
            axes[len(names) - 1] = {0: "batch", 1: "target_length"}
        return Subject(wrap(model, names, **fixed), inputs, axes, tolerance)

    return make


def make_image(name, config_class, model_class, settings, sizes=((1, 32, 32), (3, 32, 32)),
               axes=None, gain=1.0, tolerance=1e-4, channels=3, names=("pixel_values",), **fixed):
    """Pixels in; batch is a symbol, height and width where `axes` says so."""

    def make():
        model = make_model(name, config_class, model_class, settings, gain)
        wrapped = wrap(model, names, **fixed)
        inputs = [
            (signal(seed, batch, channels, height, width),)
            for seed, (batch, height, width) in enumerate(sizes)
        ]
        batches = [(signal(40 + seed, 4, channels, *sizes[0][1:]),) for seed in range(3)]
        live_weights.settle_statistics(wrapped, name, *batches)
        return Subject(wrapped, inputs, {0: axes or {0: "batch"}}, tolerance)

    return make
