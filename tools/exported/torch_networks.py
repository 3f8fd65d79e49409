# SPDX-License-Identifier: Apache-2.0
"""Networks written here in PyTorch, of kinds that the model packages lack or hide: recurrent ones,
generators, graphs, points, clicks, diffusion."""

import zlib

from exported import live_weights
from exported.torch_export import SCRIPT, Subject, cases
from exported.transformers_subject import padded, signal, tokens

_BATCH = {0: {0: "batch"}}


def settle(name, module, *batches, gain=1.0):
    import torch

    torch.manual_seed(zlib.crc32(name.encode()))
    module = live_weights.enliven(module, name, gain)
    return live_weights.settle_statistics(module, name, *batches)


def _recurrent(kind, directions=1, layers=2):
    def make():
        import torch
        from torch import nn

        class Recurrent(nn.Module):
            def __init__(self):
                super().__init__()
                self.embedding = nn.Embedding(50, 12)
                self.cells = getattr(nn, kind)(
                    12, 16, layers, batch_first=True, bidirectional=directions == 2)  # fmt: skip
                self.head = nn.Linear(16 * directions, 7)

            def forward(self, sequence):
                answer, state = self.cells(self.embedding(sequence))
                state = state[0] if isinstance(state, tuple) else state
                return self.head(answer), state

        torch.manual_seed(1)
        inputs = [(tokens(1, 2, 9, 50),), (tokens(2, 3, 13, 50),)]
        return Subject(settle(kind, Recurrent()), inputs, {0: {0: "batch", 1: "length"}})

    return make


def _packed_lstm():
    """Sequences of lengths, as torch packs them."""
    import torch
    from torch import nn

    class Packed(nn.Module):
        def __init__(self):
            super().__init__()
            self.cells = nn.LSTM(8, 12, batch_first=True, bidirectional=True)

        def forward(self, sequence, lengths):
            packed = nn.utils.rnn.pack_padded_sequence(sequence, lengths, True, False)
            answer, _ = self.cells(packed)
            return nn.utils.rnn.pad_packed_sequence(answer, batch_first=True)[0]

    inputs = [(signal(1, 3, 7, 8), torch.tensor([7, 5, 2]))]
    return Subject(settle("packed", Packed()), inputs, {0: {0: "batch", 1: "length"},
                                                        1: {0: "batch"}})  # fmt: skip


def _conv_lstm():
    """A cell of convolutions, unrolled over frames."""
    import torch
    from torch import nn

    class Cell(nn.Module):
        def __init__(self):
            super().__init__()
            self.gates = nn.Conv2d(3 + 8, 32, 3, padding=1)

        def forward(self, frames):
            batch, count, _, height, width = frames.shape
            hidden = frames.new_zeros(batch, 8, height, width)
            cell = frames.new_zeros(batch, 8, height, width)
            for frame in range(count):
                gates = self.gates(torch.cat([frames[:, frame], hidden], 1))
                enter, forget, leave, candidate = gates.chunk(4, 1)
                cell = forget.sigmoid() * cell + enter.sigmoid() * candidate.tanh()
                hidden = leave.sigmoid() * cell.tanh()
            return hidden

    inputs = [(signal(1, 1, 4, 3, 12, 16),), (signal(2, 3, 4, 3, 9, 10),)]
    return Subject(settle("conv_lstm", Cell()), inputs, {0: {0: "batch", 3: "h", 4: "w"}})


def _unet():
    import torch
    from torch import nn

    def block(enter, leave):
        return nn.Sequential(
            nn.Conv2d(enter, leave, 3, padding=1), nn.GroupNorm(4, leave), nn.SiLU(),
            nn.Conv2d(leave, leave, 3, padding=1), nn.BatchNorm2d(leave), nn.ELU(0.7))  # fmt: skip

    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([block(3, 8), block(8, 16)])
            self.middle = block(16, 32)
            self.up = nn.ModuleList([block(16 + 32, 16), block(8 + 16, 8)])
            self.head = nn.Conv2d(8, 2, 1)

        def forward(self, image):
            kept = []
            for part in self.down:
                image = part(image)
                kept.append(image)
                image = nn.functional.max_pool2d(image, 2)
            image = self.middle(image)
            for part, other in zip(self.up, reversed(kept)):
                image = nn.functional.interpolate(
                    image, size=other.shape[2:], mode="bilinear", align_corners=False)  # fmt: skip
                image = part(torch.cat([image, other], 1))
            return self.head(image)

    module = settle("unet", UNet(), (signal(5, 4, 3, 32, 32),))
    inputs = [(signal(1, 1, 3, 32, 32),), (signal(2, 2, 3, 36, 44),)]
    return Subject(module, inputs, {0: {0: "batch", 2: "height", 3: "width"}}, 3e-4)


def _diffusion():
    """A block as of diffusion: time embedding, group norm, attention over pixels, upsampling."""
    import math

    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter = nn.Conv2d(4, 16, 3, padding=1)
            self.time = nn.Sequential(nn.Linear(16, 16), nn.SiLU(), nn.Linear(16, 16))
            self.norm = nn.GroupNorm(4, 16, eps=1e-4)
            self.attention = nn.MultiheadAttention(16, 4, batch_first=True)
            self.cross = nn.MultiheadAttention(16, 2, kdim=12, vdim=12, batch_first=True)
            self.leave = nn.ConvTranspose2d(16, 4, 4, 2, 1)

        def forward(self, latent, step, text):
            rates = torch.exp(torch.arange(8) * (-math.log(10000.0) / 8))
            angles = step[:, None].float() * rates[None]
            time = self.time(torch.cat([angles.sin(), angles.cos()], -1))
            image = self.enter(latent) + time[:, :, None, None]
            batch, channels, height, width = image.shape
            pixels = self.norm(image).flatten(2).transpose(1, 2)
            pixels = pixels + self.attention(pixels, pixels, pixels, need_weights=False)[0]
            pixels = pixels + self.cross(pixels, text, text, need_weights=False)[0]
            image = pixels.transpose(1, 2).reshape(batch, channels, height, width)
            return self.leave(nn.functional.interpolate(image, scale_factor=2.0, mode="nearest"))

    inputs = [
        (signal(1, 2, 4, 8, 8), torch.tensor([3, 700]), signal(2, 2, 5, 12)),
        (signal(3, 3, 4, 8, 12), torch.tensor([999, 0, 41]), signal(4, 3, 9, 12)),
    ]
    axes = {0: {0: "batch", 2: "height", 3: "width"}, 1: {0: "batch"}, 2: {0: "batch", 1: "words"}}
    return Subject(settle("diffusion", Block()), inputs, axes)


def _generator():
    from torch import nn

    layers = [
        nn.ConvTranspose2d(10, 32, 4, 1, 0, bias=False), nn.BatchNorm2d(32), nn.ReLU(),
        nn.ConvTranspose2d(32, 16, 4, 2, 1), nn.BatchNorm2d(16), nn.LeakyReLU(0.15),
        nn.ConvTranspose2d(16, 8, 5, 2, 2, 1, groups=4), nn.InstanceNorm2d(8, affine=True),
        nn.Conv2d(8, 12, 3, padding=1, padding_mode="reflect"), nn.PixelShuffle(2), nn.PReLU(3),
        nn.Conv2d(3, 3, 3, padding=2, dilation=2, padding_mode="replicate"), nn.Tanh(),
    ]  # fmt: skip
    module = settle("generator", nn.Sequential(*layers), (signal(5, 8, 10, 1, 1),))
    return Subject(module, [(signal(1, 1, 10, 1, 1),), (signal(2, 3, 10, 1, 1),)], _BATCH)


def _wavenet():
    import torch
    from torch import nn

    class WaveNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter = nn.Conv1d(2, 8, 1)
            self.filters = nn.ModuleList(nn.Conv1d(8, 16, 2, dilation=2**n) for n in range(4))
            self.skips = nn.ModuleList(nn.Conv1d(8, 8, 1) for _ in range(4))
            self.head = nn.utils.parametrizations.weight_norm(nn.Conv1d(8, 5, 1))

        def forward(self, sound):
            sound, total = self.enter(sound), 0
            for number, (convolution, skip) in enumerate(zip(self.filters, self.skips)):
                padded_sound = nn.functional.pad(sound, (2**number, 0))
                left, right = convolution(padded_sound).chunk(2, 1)
                gated = left.tanh() * right.sigmoid()
                total = total + skip(gated)
                sound = sound + gated
            return self.head(nn.functional.mish(total)).log_softmax(1)

    return Subject(settle("wavenet", WaveNet()), [(signal(1, 1, 2, 40),), (signal(2, 3, 2, 57),)],
                   {0: {0: "batch", 2: "samples"}})  # fmt: skip


def _graph_network():
    """Messages along edges, added up per node."""
    import torch
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.message = nn.Linear(12, 16)
            self.update = nn.GRUCell(16, 6)
            self.head = nn.Linear(12, 3)

        def forward(self, nodes, edges):
            source, target = edges[0], edges[1]
            messages = self.message(torch.cat([nodes[source], nodes[target]], -1)).relu()
            total = torch.zeros(nodes.shape[0], 16).index_add(0, target, messages)
            nodes = self.update(total, nodes)
            best = torch.full((nodes.shape[0], 6), -9.0).scatter_reduce(
                0, target[:, None].expand(-1, 6), nodes[source], "amax")  # fmt: skip
            return self.head(torch.cat([nodes, best], -1))

    inputs = [
        (signal(1, 6, 6), tokens(1, 2, 14, 9) - 3),
        (signal(2, 9, 6), tokens(2, 2, 21, 12) - 3),
    ]
    return Subject(settle("graph", Network()), inputs, {0: {0: "nodes"}, 1: {1: "edges"}})


def _point_net():
    import torch
    from torch import nn

    class PointNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv1d(3, 16, 1), nn.BatchNorm1d(16), nn.ReLU(), nn.Conv1d(16, 32, 1))  # fmt: skip
            self.head = nn.Linear(64, 5)

        def forward(self, points):
            distance = torch.cdist(points, points)
            nearest = distance.topk(3, -1, largest=False).indices
            rows = torch.arange(points.shape[0])[:, None, None]
            points = points[rows, nearest].mean(2)
            features = self.layers(points.transpose(1, 2))
            return self.head(torch.cat([features.amax(-1), features.std(-1)], -1))

    module = settle("point_net", PointNet(), (signal(5, 8, 20, 3),))
    inputs = [(signal(1, 2, 20, 3),), (signal(2, 3, 27, 3),)]
    return Subject(module, inputs, {0: {0: "batch", 1: "points"}})


def _recommender():
    """Tables of categories by bags, products of pairs, as click models are."""
    import torch
    from torch import nn

    class Recommender(nn.Module):
        def __init__(self):
            super().__init__()
            self.bags = nn.ModuleList(nn.EmbeddingBag(30, 8, mode=mode) for mode in ("sum", "mean"))
            self.dense = nn.Sequential(nn.Linear(5, 8), nn.SELU())
            self.top = nn.Sequential(nn.Linear(11, 16), nn.Softplus(), nn.Linear(16, 1))

        def forward(self, dense, first, second):
            dense = self.dense(dense)
            parts = torch.stack([dense, self.bags[0](first), self.bags[1](second)], 1)
            pairs = torch.bmm(parts, parts.transpose(1, 2))
            row, column = torch.tril_indices(3, 3, -1)
            return self.top(torch.cat([dense, pairs[:, row, column]], 1)).sigmoid()

    inputs = [
        (signal(n, batch, 5), tokens(n, batch, 4, 30), tokens(n + 1, batch, 3, 30))
        for n, batch in ((1, 6), (2, 11))
    ]
    axes = {number: {0: "batch"} for number in range(3)}
    return Subject(settle("recommender", Recommender()), inputs, axes)


def _encoder_decoder():
    from torch import nn

    class Network(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(40, 16)
            self.network = nn.Transformer(16, 4, 2, 2, 24, 0.0, batch_first=True, norm_first=True)
            self.head = nn.Linear(16, 40)

        def forward(self, source, target, hidden):
            mask = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
            answer = self.network(self.embedding(source), self.embedding(target), tgt_mask=mask,
                                  src_key_padding_mask=hidden == 0,
                                  memory_key_padding_mask=hidden == 0)  # fmt: skip
            return self.head(answer)

    inputs = [
        (tokens(n, batch, length, 40), tokens(n + 5, batch, length - 3, 40), padded(batch, length))
        for n, batch, length in ((1, 2, 8), (2, 3, 11))
    ]
    axes = {0: {0: "batch", 1: "source"}, 1: {0: "batch", 1: "target"}, 2: {0: "batch", 1: "source"}}
    return Subject(settle("encoder_decoder", Network()), inputs, axes)


_NETWORKS = {
    "lstm": _recurrent("LSTM"),
    "bidirectional_gru": _recurrent("GRU", 2),
    "rnn": _recurrent("RNN", 2, 1),
    "conv_lstm": _conv_lstm,
    "unet": _unet,
    "diffusion_block": _diffusion,
    "generator": _generator,
    "wavenet": _wavenet,
    "graph_network": _graph_network,
    "point_net": _point_net,
    "recommender": _recommender,
    "encoder_decoder": _encoder_decoder,
}


def list_cases():
    for name, make in _NETWORKS.items():
        yield from cases(f"torch/{name}", make)
    yield from cases("torch/packed_lstm", _packed_lstm, (SCRIPT,))
