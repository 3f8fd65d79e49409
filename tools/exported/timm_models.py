# SPDX-License-Identifier: Apache-2.0
"""Image networks of the timm package that the other packages do not have, without pretrained
weights."""

from exported import live_weights
from exported.torch_export import Subject, cases
from exported.transformers_subject import signal

# Name: extent of the image and gain of the weights.
_NETWORKS = {
    "ghostnet_050": (64, 1.4),
    "hardcorenas_a": (64, 1.4),
    "repvgg_a0": (64, 1.4),
    "resmlp_12_224": (224, 1.0),
    "mixer_s32_224": (224, 1.0),
    "edgenext_xx_small": (64, 1.0),
    "efficientformer_l1": (224, 1.0),
    "fastvit_t8": (64, 1.0),
    "tf_efficientnet_lite0": (64, 1.4),
    "coatnet_pico_rw_224": (224, 1.0),
    "dla34": (64, 1.4),
    "xcit_nano_12_p16_224": (64, 1.0),
    "volo_d1_224": (224, 1.0),
    "cait_xxs24_224": (224, 1.0),
    "lambda_resnet26t": (256, 1.4),
    "halonet26t": (256, 1.4),
    "eca_botnext26ts_256": (256, 1.4),
    "res2net50_14w_8s": (64, 1.4),
    "hrnet_w18_small": (64, 1.4),
    "selecsls42b": (64, 1.4),
}


def _network(name, extent, gain):
    def make():
        import timm
        import torch

        torch.manual_seed(11)
        module = timm.create_model(name, pretrained=False, num_classes=10, exportable=True)
        module = live_weights.enliven(module, name, gain)
        batches = [(signal(7 + seed, 2, 3, extent, extent),) for seed in range(2)]
        live_weights.settle_statistics(module, name, *batches)
        inputs = [(signal(1, 1, 3, extent, extent),), (signal(2, 3, 3, extent, extent),)]
        return Subject(module, inputs, {0: {0: "batch"}}, 3e-4)

    return make


def list_cases():
    for name, entry in _NETWORKS.items():
        yield from cases(f"timm/{name}", _network(name, *entry))
