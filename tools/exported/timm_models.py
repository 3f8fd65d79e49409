# SPDX-License-Identifier: Apache-2.0
"""Image networks of the timm package that the other packages do not have, without pretrained
weights."""

from exported import live_weights
from exported.torch_export import DYNAMO, Subject, cases
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
# Through torch.export alone.
_BY_DYNAMO = {
    "gcresnext26ts": (64, 1.4),
    "gernet_s": (64, 1.4),
    "coat_lite_tiny": (224, 1.0),
    "convit_tiny": (224, 1.0),
    "convnext_atto_rms": (64, 1.0),
    "cpubone_nano": (64, 1.4),
    "crossvit_9_dagger_240": (240, 1.0),
    "csatv2": (128, 1.0),
    "cs3darknet_focus_s": (64, 1.4),
    "cspnext_tiny": (64, 1.4),
    "davit_tiny": (64, 1.0),
    "deit3_small_patch16_224": (224, 1.0),
    "dpn48b": (64, 1.4),
    "efficientformerv2_s0": (224, 1.0),
    "efficientvim_m1": (64, 1.0),
    "efficientvit_b0": (64, 1.4),
    "efficientvit_m0": (64, 1.4),
    "eva02_tiny_patch14_224": (224, 1.0),
    "fasternet_t0": (64, 1.4),
    "focalnet_tiny_srf": (64, 1.0),
    "gcvit_xxtiny": (224, 1.0),
    "hgnetv2_b0": (64, 1.4),
    "hiera_tiny_224": (224, 1.0),
    "sam2_hiera_tiny": (128, 1.0),
    "iformer_t": (64, 1.0),
    "inception_next_atto": (64, 1.0),
    "inception_v4": (96, 1.4),
    "lcnetv2_small": (64, 1.4),
    "lowformer_b0": (64, 1.4),
    "mambaout_femto": (64, 1.0),
    "maxvit_pico_rw_256": (256, 1.0),
    "caformer_s18": (64, 1.0),
    "mobilevitv2_050": (64, 1.4),
    "mvitv2_tiny": (224, 1.0),
    "nest_tiny": (224, 1.0),
    "nextvit_small": (64, 1.0),
    "eca_nfnet_l0": (64, 1.0),
    "pit_ti_224": (224, 1.0),
    "rdnet_tiny": (64, 1.0),
    "repghostnet_050": (64, 1.4),
    "repvit_m0_9": (64, 1.4),
    "resnest14d": (64, 1.4),
    "ecaresnet26t": (64, 1.4),
    "mobilenetv4_conv_small": (64, 1.0),
    "regnetz_c16": (64, 1.0),
    "ghostnetv2_100": (64, 1.0),
    "resnetv2_50d_evos": (64, 1.4),
    "resnetv2_50d_frn": (64, 1.4),
    "rexnet_100": (64, 1.4),
    "legacy_seresnet18": (64, 1.4),
    "sequencer2d_s": (64, 1.0),
    "shvit_s1": (64, 1.4),
    "skresnet18": (64, 1.4),
    "starnet_s050": (64, 1.4),
    "swiftformer_xs": (64, 1.4),
    "swinv2_cr_tiny_ns_224": (224, 1.0),
    "tiny_vit_5m_224": (224, 1.0),
    "tnt_s_patch16_224": (224, 1.0),
    "tresnet_m": (64, 1.4),
    "twins_svt_small": (64, 1.0),
    "twins_pcpvt_small": (64, 1.0),
    "visformer_tiny": (224, 1.0),
    "vit_tiny_r_s16_p8_224": (224, 1.0),
    "test_vit_relpos": (160, 1.0),
    "ese_vovnet19b_slim": (64, 1.4),
    "xception41p": (64, 1.4),
    "pvt_v2_b0": (64, 1.0),
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
    for name, entry in _BY_DYNAMO.items():
        yield from cases(f"timm/{name}", _network(name, *entry), (DYNAMO,))
