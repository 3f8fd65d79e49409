# SPDX-License-Identifier: Apache-2.0
"""torchvision's networks without pretrained weights: classifiers, segmentation, detection, video
and optical flow, with small images."""

import zlib

from exported import live_weights
from exported.torch_export import SCRIPT, Subject, cases
from exported.transformers_subject import signal

_BATCH = {0: {0: "batch"}}
_EXTENTS = {0: {0: "batch", 2: "height", 3: "width"}}

# Name: extent of the image, further settings, gain of the weights; of any extent where the last
# says so.
_CLASSIFIERS = {
    "alexnet": (96, {}, 1.4, True),
    "vgg11_bn": (64, {}, 1.4, False),
    "squeezenet1_1": (64, {}, 1.4, True),
    "resnet18": (64, {}, 1.4, True),
    "resnext50_32x4d": (64, {}, 1.4, True),
    "densenet121": (64, {}, 1.4, True),
    "googlenet": (64, {"aux_logits": False, "init_weights": False}, 1.4, True),
    "inception_v3": (96, {"aux_logits": False, "init_weights": False}, 1.4, False),
    "shufflenet_v2_x0_5": (64, {}, 1.4, True),
    "mobilenet_v2": (64, {}, 1.4, True),
    "mobilenet_v3_small": (64, {}, 1.4, True),
    "mnasnet0_5": (64, {}, 1.4, True),
    "efficientnet_b0": (64, {}, 1.0, True),
    "efficientnet_v2_s": (64, {}, 1.0, True),
    "regnet_y_400mf": (64, {}, 1.4, True),
    "convnext_tiny": (64, {}, 1.0, True),
    "swin_t": (64, {}, 1.0, False),
    "swin_v2_t": (64, {}, 1.0, False),
    "maxvit_t": (224, {"input_size": (224, 224)}, 1.0, False),
}
_SEGMENTATION = ("fcn_resnet50", "deeplabv3_mobilenet_v3_large", "lraspp_mobilenet_v3_large")
_VIDEOS = ("r3d_18", "mc3_18", "r2plus1d_18", "s3d")


def _damp_blocks(module):
    """Lets blocks add little to what goes past them, as training does. Of random blocks that add as much,
    each amplifies a rounding, and float32 would tell nothing of the answers."""
    import torch
    from torchvision.models.efficientnet import FusedMBConv, MBConv

    for part in module.modules():
        if isinstance(part, (MBConv, FusedMBConv)) and part.use_res_connect:
            with torch.no_grad():
                part.block[-1][1].weight *= 0.2


def _build(name, make, gain, *batches):
    import torch

    torch.manual_seed(zlib.crc32(name.encode()))
    module = live_weights.enliven(make(), name, gain)
    _damp_blocks(module)
    return live_weights.settle_statistics(module, name, *batches)


def _classifier(name, extent, settings, gain, is_free):
    def make():
        from torchvision import models

        batches = [(signal(7 + seed, 4, 3, extent, extent),) for seed in range(2)]
        module = _build(
            name, lambda: getattr(models, name)(weights=None, num_classes=10, **settings), gain,
            *batches)  # fmt: skip
        inputs = [(signal(1, 1, 3, extent, extent),), (signal(2, 3, 3, extent, extent),)]
        if is_free:
            inputs.append((signal(3, 2, 3, extent + 32, extent),))
        # torchvision's inception reads the batch from the trace.
        return Subject(module, inputs, _EXTENTS if is_free else _BATCH, 3e-4)

    return make


def _vision_transformer():
    from torchvision.models import VisionTransformer

    module = _build(
        "vision_transformer",
        lambda: VisionTransformer(image_size=32, patch_size=8, num_layers=3, num_heads=4,
                                  hidden_dim=48, mlp_dim=96, num_classes=10), 1.0)  # fmt: skip
    return Subject(module, [(signal(1, 1, 3, 32, 32),), (signal(2, 3, 3, 32, 32),)], _BATCH)


def _segmentation(name):
    def make():
        from torchvision.models import segmentation

        batches = [(signal(7 + seed, 2, 3, 64, 64),) for seed in range(2)]
        build = getattr(segmentation, name)
        module = _build(
            name, lambda: build(weights=None, weights_backbone=None, num_classes=5), 1.4,
            *batches)  # fmt: skip
        inputs = [(signal(1, 1, 3, 64, 64),), (signal(2, 2, 3, 96, 64),)]
        return Subject(module, inputs, _EXTENTS, 3e-4)

    return make


def _detector(name, settings):
    """Detectors sort and cut by score: what is on the fence may flip, so scores are spread."""

    def make():
        import torch
        from torchvision.models import detection

        torch.manual_seed(5)
        build = getattr(detection, name)
        classes = 2 if "keypoint" in name else 4
        module = build(weights=None, weights_backbone=None, num_classes=classes, **settings).eval()
        module = live_weights.enliven(module, name, 1.0)
        image = signal(3, 3, 96, 128).sigmoid()

        class Detector(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.detector = module

            def forward(self, picture):
                found = self.detector([picture])[0]
                return tuple(found[key] for key in sorted(found))

        backbone = module.backbone
        live_weights.settle_statistics(backbone, name, (torch.rand(2, 3, 96, 128),))
        inputs = [(image,), (signal(4, 3, 128, 96).sigmoid(),)]
        return Subject(Detector().eval(), inputs, {0: {1: "height", 2: "width"}}, 1e-3)

    return make


def _video(name):
    def make():
        from torchvision.models import video

        batches = [(signal(7, 2, 3, 16, 64, 64),)]
        build = getattr(video, name)
        module = _build(name, lambda: build(weights=None, num_classes=7), 1.4, *batches)
        inputs = [(signal(1, 1, 3, 16, 64, 64),), (signal(2, 2, 3, 16, 64, 64),)]
        return Subject(module, inputs, _BATCH, 3e-4)

    return make


def _optical_flow():
    import torch
    from torchvision.models.optical_flow import raft_small

    torch.manual_seed(3)
    module = live_weights.enliven(raft_small(weights=None), "raft", 0.7)

    class Flow(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.raft = module

        def forward(self, first, second):
            return self.raft(first, second, num_flow_updates=2)[-1]

    inputs = [(signal(1, 1, 3, 128, 128).tanh(), signal(2, 1, 3, 128, 128).tanh())]
    return Subject(Flow().eval(), inputs, {}, 1e-3)


_SMALL = {"min_size": 96, "max_size": 160}
_DETECTORS = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": {
        **_SMALL, "rpn_pre_nms_top_n_test": 50, "rpn_post_nms_top_n_test": 20,
        "box_score_thresh": 0.05},
    "maskrcnn_resnet50_fpn": {
        **_SMALL, "rpn_pre_nms_top_n_test": 50, "rpn_post_nms_top_n_test": 20},
    "keypointrcnn_resnet50_fpn": {
        **_SMALL, "rpn_pre_nms_top_n_test": 50, "rpn_post_nms_top_n_test": 20,
        "num_keypoints": 5},
    "retinanet_resnet50_fpn": {**_SMALL, "topk_candidates": 50},
    "fcos_resnet50_fpn": {**_SMALL, "topk_candidates": 50},
    "ssdlite320_mobilenet_v3_large": {"topk_candidates": 50},
    "ssd300_vgg16": {"topk_candidates": 50},
}  # fmt: skip


def list_cases():
    for name, entry in _CLASSIFIERS.items():
        yield from cases(f"torchvision/{name}", _classifier(name, *entry))
    yield from cases("torchvision/vision_transformer", _vision_transformer)
    for name in _SEGMENTATION:
        yield from cases(f"torchvision/{name}", _segmentation(name))
    for name in _VIDEOS:
        yield from cases(f"torchvision/{name}", _video(name))
    yield from cases("torchvision/raft_small", _optical_flow)
    for name, settings in _DETECTORS.items():
        # torch.export takes no loop of which boxes tell the length.
        yield from cases(f"torchvision/{name}", _detector(name, settings), (SCRIPT,))
