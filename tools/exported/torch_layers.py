# SPDX-License-Identifier: Apache-2.0
"""Modules of layers that networks seldom have: sampling, spectra, volumes, sorting and counting, rare
arithmetic, loops and branches, narrow types."""

from exported.torch_export import DYNAMO, SCRIPT, Subject, cases
from exported.torch_networks import settle
from exported.transformers_subject import signal

_BATCH = {0: {0: "batch"}}


def _sampler():
    """A spatial transformer: an affine grid, sampled in both modes."""
    import torch
    from torch import nn

    class Sampler(nn.Module):
        def __init__(self):
            super().__init__()
            self.locate = nn.Sequential(nn.AdaptiveAvgPool2d((3, 2)), nn.Flatten(), nn.Linear(12, 6))

        def forward(self, image):
            angle = self.locate(image).view(-1, 2, 3) * 0.2 + torch.eye(2, 3)
            grid = nn.functional.affine_grid(angle, image.shape, align_corners=False)
            smooth = nn.functional.grid_sample(image, grid, "bicubic", "border", False)
            sharp = nn.functional.grid_sample(image, grid * 1.1, "bilinear", "reflection", True)
            return smooth + sharp.flip(-1)

    inputs = [(signal(1, 1, 2, 12, 14),), (signal(2, 3, 2, 12, 14),)]
    return Subject(settle("sampler", Sampler()), inputs, _BATCH)


def _spectrum():
    """Spectra by stft, and a filter in the frequency domain."""
    import torch
    from torch import nn

    class Spectrum(nn.Module):
        def __init__(self):
            super().__init__()
            self.head = nn.Linear(17, 6)

        def forward(self, sound):
            spectrum = torch.stft(sound, 32, 16, window=torch.hann_window(32), center=False,
                                  return_complex=True)  # fmt: skip
            power = torch.view_as_real(spectrum).square().sum(-1)
            return self.head((power + 1e-3).log().transpose(1, 2))

    return Subject(settle("spectrum", Spectrum()), [(signal(1, 2, 200),), (signal(2, 3, 200),)],
                   _BATCH)  # fmt: skip


def _fourier():
    import torch
    from torch import nn

    class Fourier(nn.Module):
        """Mixing of tokens and channels by their spectra."""

        def __init__(self):
            super().__init__()
            self.head = nn.Linear(8, 4)

        def forward(self, value):
            spectrum = torch.fft.rfft(value, dim=1, norm="ortho")
            mixed = torch.fft.irfft(spectrum * 0.5, n=16, dim=1, norm="ortho")
            return self.head(mixed) + torch.fft.fft(value, dim=-1).real.sum(-1, keepdim=True)

    return Subject(settle("fourier", Fourier()), [(signal(1, 2, 16, 8),), (signal(2, 5, 16, 8),)],
                   _BATCH)  # fmt: skip


def _interpolation():
    """Scales that are no float32: extents and nearest elements follow from their rounding."""
    import torch
    from torch import nn

    class Interpolation(nn.Module):
        def forward(self, image):
            def by(scale, mode):
                return nn.functional.interpolate(image, scale_factor=scale, mode=mode)

            return (by(0.7, "nearest"), by(1 / 3, "nearest"), by(1.4, "bilinear"),
                    by((0.9, 0.35), "bicubic"))  # fmt: skip

    inputs = [(signal(1, 1, 2, 20, 10),), (signal(2, 3, 2, 30, 50),)]
    return Subject(Interpolation(), inputs, {0: {0: "batch", 2: "height", 3: "width"}})


def _volume():
    from torch import nn

    layers = [
        nn.Conv3d(1, 8, 3, padding=1), nn.BatchNorm3d(8), nn.GELU("tanh"), nn.MaxPool3d(2, 2, 1),
        nn.ConvTranspose3d(8, 6, 3, 2, 1, 1), nn.Hardswish(), nn.AvgPool3d((1, 2, 2)),
        nn.Upsample(scale_factor=(2, 1.5, 1), mode="trilinear"), nn.Conv3d(6, 2, (1, 3, 3)),
    ]  # fmt: skip
    module = settle("volume", nn.Sequential(*layers), (signal(5, 4, 1, 8, 12, 10),))
    inputs = [(signal(1, 1, 1, 8, 12, 10),), (signal(2, 2, 1, 8, 12, 10),)]
    return Subject(module, inputs, _BATCH)


def _selection():
    """Sorting, searching, masking and counting, with results whose extents data tell."""
    import torch
    from torch import nn

    class Selection(nn.Module):
        def forward(self, scores, table):
            ordered, order = scores.sort(-1, descending=True)
            running = ordered.softmax(-1).cumsum(-1)
            kept = torch.where(running < 0.9, ordered, torch.full_like(ordered, -5.0))
            picked = table[order[:, 0]] + table.index_select(0, order[:, 1])
            bins = torch.bucketize(scores, torch.tensor([-1.0, -0.2, 0.3, 1.5]), right=True)
            flat = scores[scores > 0.5]
            places = torch.nonzero(bins == 2)
            triangle = torch.triu(scores @ scores.T, 1)
            return kept, picked, bins, flat, places, triangle

    inputs = [(signal(1, 4, 9), signal(2, 9, 3)), (signal(3, 6, 9), signal(4, 9, 3))]
    return Subject(Selection(), inputs, _BATCH)


def _arithmetic():
    """Element-wise functions off the beaten track."""
    import torch
    from torch import nn

    class Arithmetic(nn.Module):
        def forward(self, left, right):
            whole = (right * 7).to(torch.int64)
            return (
                torch.special.erf(left) + torch.atan2(left, right),
                torch.remainder(left, 0.7) + torch.fmod(right, 0.3),
                torch.logsumexp(left, -1, keepdim=True) + torch.cumsum(right, 0),
                whole // 3 + whole % 5 + (whole & 6) + (whole << 1),
                left.clamp(-0.5, 0.8).round() + left.trunc() + right.sign(),
                torch.lerp(left, right, 0.3).addcmul(left, right, value=2).square().rsqrt(),
                torch.einsum("bi,bj->bij", left, right).diagonal(dim1=1, dim2=2),
                left.roll(2, 1) + left.flip(0) + left.repeat_interleave(2, 1)[:, ::2],
                left.var(1, unbiased=False) + left.norm(p=3, dim=1) + left.prod(1) + left.argmin(1),
            )

    inputs = [(signal(1, 3, 7), signal(2, 3, 7)), (signal(3, 5, 7), signal(4, 5, 7))]
    return Subject(Arithmetic(), inputs, {0: {0: "batch"}, 1: {0: "batch"}})


def _special():
    """What only torch.export's way knows."""
    import torch
    from torch import nn

    class Special(nn.Module):
        def forward(self, left, right):
            return (
                torch.special.erfc(left) + torch.hypot(left, right),
                torch.logaddexp(left, right) + left.round(decimals=1),
                (left * right).rsqrt().nan_to_num(0.1) + left.clamp(-0.5, right.max()),
                left.median(-1).values + torch.linalg.vector_norm(right, 3, -1),
                torch.special.xlogy(left.abs(), right.abs()) + torch.special.expit(left),
                torch.cummax(left, 1).values + torch.diff(right, dim=1, prepend=left[:, :1]),
                torch.searchsorted(left.sort(-1).values, right) + left.argsort(-1),
                left.unfold(1, 3, 2).mean(-1) + torch.tensor_split(right, [3], 1)[0],
            )

    inputs = [(signal(1, 3, 7), signal(2, 3, 7)), (signal(3, 5, 7), signal(4, 5, 7))]
    return Subject(Special(), inputs, {0: {0: "batch"}, 1: {0: "batch"}})


def _folding():
    from torch import nn

    class Folding(nn.Module):
        def __init__(self):
            super().__init__()
            self.mix = nn.Linear(27, 27)

        def forward(self, image):
            columns = nn.functional.unfold(image, 3, padding=1, stride=2)
            columns = self.mix(columns.transpose(1, 2)).transpose(1, 2)
            return nn.functional.fold(columns, (12, 14), 3, padding=1, stride=2)

    inputs = [(signal(1, 1, 3, 12, 14),), (signal(2, 3, 3, 12, 14),)]
    return Subject(settle("folding", Folding()), inputs, _BATCH)


def _summation():
    """Sums of products over several axes, in another order in each factor, and of three factors;
    linear attention with a column of ones, as of networks for high resolutions."""
    import torch
    from torch import nn

    class Summation(nn.Module):
        def __init__(self):
            super().__init__()
            self.joints = nn.Parameter(signal(5, 3, 7, 7))
            self.out = nn.Parameter(signal(6, 8, 4, 10))
            self.scale = nn.Parameter(signal(7, 4))

        def forward(self, maps, heads):
            graph = torch.einsum("nkctv,kvw->nctw", maps, self.joints)
            joined = torch.einsum("bhnd,hdo->bno", heads, self.out[:, :, :6])
            scores = torch.einsum("bhnd,bhmd,d->bhnm", heads, heads, self.scale)
            ones = nn.functional.pad(heads, (0, 1), value=1.0)
            sums = heads.relu().transpose(-1, -2) @ ones
            return graph, joined, scores, heads.relu() @ sums

    inputs = [(signal(1, 2, 3, 4, 5, 7), signal(2, 2, 8, 9, 4)),
              (signal(3, 1, 3, 4, 5, 7), signal(4, 2, 8, 9, 4))]  # fmt: skip
    return Subject(settle("summation", Summation()), inputs, _BATCH)


def _length_regulator():
    """Each token as often as its rounded duration says: TorchScript's exporter loops over parts."""
    import torch
    from torch import nn

    class LengthRegulator(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.Embedding(11, 6)
            self.duration = nn.Linear(6, 1)
            self.head = nn.Linear(6, 5)

        def forward(self, tokens):
            rows = self.embed(tokens)
            counts = (self.duration(rows).squeeze(-1).abs() * 3).round().to(torch.int64) + 1
            return self.head(torch.repeat_interleave(rows, counts, dim=0))

    inputs = [(torch.arange(9) % 11,), (torch.arange(14) * 5 % 11,)]
    return Subject(settle("length_regulator", LengthRegulator()), inputs, {0: {0: "length"}})


def _scripted_loop():
    """A loop of which data tell the count, and a branch: what only scripting keeps."""
    import torch
    from torch import nn

    class Loop(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = nn.Linear(6, 6)

        def forward(self, value, count):
            # type: (torch.Tensor, int) -> torch.Tensor
            for number in range(count):
                value = torch.tanh(self.step(value)) + float(number)
                if bool(value.sum() > 0):
                    value = value * 0.5
                else:
                    value = value - 0.25
            return value

    module = torch.jit.script(settle("loop", Loop(), gain=1.5))
    inputs = [(signal(1, 2, 6), torch.tensor(3)), (signal(2, 5, 6), torch.tensor(6))]
    return Subject(module, inputs, _BATCH)


def _scripted_ranks():
    """Data choose a branch, and with it how many axes the layers behind it see."""
    import torch
    from torch import nn

    class Ranks(nn.Module):
        def __init__(self):
            super().__init__()
            self.step = nn.Linear(6, 6)

        def forward(self, value):
            # type: (torch.Tensor) -> torch.Tensor
            if bool(value.sum() > 0):
                result = self.step(value).reshape(-1)
            else:
                result = torch.tanh(value)
            result = torch.relu(result) + torch.softmax(result, -1)
            return torch.cumsum(result.reshape(-1), 0)

    module = torch.jit.script(settle("ranks", Ranks(), gain=1.5))
    value = signal(1, 3, 6)
    inputs = [(value.abs(),), (-signal(2, 5, 6).abs(),), (signal(3, 2, 6).abs(),)]
    return Subject(module, inputs, _BATCH)


def _conditional():
    """torch.cond, which torch.export keeps."""
    import torch
    from torch import nn

    class Conditional(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)

        def forward(self, value):
            return torch.cond(
                value.sum() > 0,
                lambda x: self.first(x).relu(),
                lambda x: self.second(x).sin(),
                (value,),
            )

    value = signal(1, 3, 6)
    module = settle("conditional", Conditional())
    return Subject(module, [(value.abs(),), (-signal(2, 5, 6).abs(),)], _BATCH)


def _activations():
    """A linear layer before each activation that ONNX Runtime's optimizer moves into one."""
    import torch
    from torch import nn

    layers = []
    for activation in (nn.ELU(0.8), nn.SELU(), nn.Softplus(), nn.Softsign(), nn.LeakyReLU(0.2), nn.Hardsigmoid(),
                       nn.Sigmoid(), nn.ReLU(), nn.Tanh()):  # fmt: skip
        layers += [nn.Linear(14, 14), activation]
    torch.manual_seed(1)
    inputs = [(signal(1, 2, 14),), (signal(2, 5, 14),)]
    return Subject(settle("activations", nn.Sequential(*layers), gain=1.5), inputs, _BATCH)


def _narrow(kind):
    """A small network in a narrow type; the module computes in it, too, with its own rounding."""

    def make():
        import torch
        from torch import nn

        layers = [
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(8, 16, 3, stride=2), nn.SiLU(), nn.Flatten(), nn.LayerNorm(144),
            nn.Linear(144, 10)]  # fmt: skip
        module = settle(kind, nn.Sequential(*layers), (signal(5, 8, 3, 14, 14),))
        dtype = getattr(torch, kind)
        module = module.to(dtype)
        inputs = [(signal(n, batch, 3, 14, 14).to(dtype),) for n, batch in ((1, 1), (2, 3))]
        return Subject(module, inputs, _BATCH, {"float16": 1e-2, "bfloat16": 6e-2}.get(kind, 1e-9))

    return make


_MODULES = {
    "activations": _activations,
    "sampler": _sampler,
    "interpolation": _interpolation,
    "volume": _volume,
    "selection": _selection,
    "arithmetic": _arithmetic,
    "folding": _folding,
    "summation": _summation,
    "float16": _narrow("float16"),
    "bfloat16": _narrow("bfloat16"),
    "float64": _narrow("float64"),
}


def list_cases():
    for name, make in _MODULES.items():
        yield from cases(f"torch/{name}", make)
    yield from cases("torch/scripted_loop", _scripted_loop, (SCRIPT,))
    yield from cases("torch/scripted_ranks", _scripted_ranks, (SCRIPT,))
    yield from cases("torch/length_regulator", _length_regulator, (SCRIPT,))
    yield from cases("torch/special", _special, (DYNAMO,))
    yield from cases("torch/spectrum", _spectrum, (DYNAMO,))
    yield from cases("torch/fourier", _fourier, (DYNAMO,))
    yield from cases("torch/conditional", _conditional, (DYNAMO,))
