# SPDX-License-Identifier: Apache-2.0
"""Networks of the transformers package over images and films of which no relative is in
transformers_vision.py. Each goes through torch.export."""

from exported.torch_export import DYNAMO, Subject, cases
from exported.transformers_subject import make_image, make_model, signal, wrap

_VIT = {"image_size": 32, "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 48}  # fmt: skip
_LABELLED = {**_VIT, "num_labels": 10}
_STAGES = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_labels": 10}
_IMAGES = {
    "vit_msn": ("ViTMSNConfig", "ViTMSNForImageClassification", _LABELLED, 32),
    "ijepa": ("IJepaConfig", "IJepaForImageClassification", _LABELLED, 32),
    "dinov2_registers": ("Dinov2WithRegistersConfig", "Dinov2WithRegistersForImageClassification",
                         {**_LABELLED, "num_register_tokens": 2}, 32),
    "dinov3_vit": ("DINOv3ViTConfig", "DINOv3ViTModel", {**_VIT, "num_register_tokens": 2}, 32),
    "dinov3_convnext": ("DINOv3ConvNextConfig", "DINOv3ConvNextModel", _STAGES, 64),
    "data2vec_vision": ("Data2VecVisionConfig", "Data2VecVisionForImageClassification",
                        {**_LABELLED, "use_shared_relative_position_bias": True}, 32),
    "pvt": ("PvtConfig", "PvtForImageClassification",
            {**_STAGES, "image_size": 64, "num_attention_heads": [1, 2, 3, 4]}, 64),
    "glpn": ("GLPNConfig", "GLPNForDepthEstimation",
             {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 3, 4],
              "decoder_hidden_size": 16}, 64),
    "bit": ("BitConfig", "BitForImageClassification",
            {**_STAGES, "embedding_size": 8, "layer_type": "preactivation", "num_groups": 4}, 64),
    "regnet": ("RegNetConfig", "RegNetForImageClassification",
               {**_STAGES, "embedding_size": 8, "groups_width": 4}, 64),
    "mobilenet_v1": ("MobileNetV1Config", "MobileNetV1ForImageClassification",
                     {"depth_multiplier": 0.25, "num_labels": 10, "image_size": 64}, 64),
    "textnet": ("TextNetConfig", "TextNetForImageClassification",
                {"stem_out_channels": 8, "hidden_sizes": [8, 8, 16, 16, 24], "num_labels": 10,
                 "conv_layer_kernel_sizes": [[[3, 3]], [[3, 1], [1, 3]], [[3, 3]], [[3, 3]]],
                 "conv_layer_strides": [[2], [2, 1], [2], [2]]}, 64),
    "swiftformer": ("SwiftFormerConfig", "SwiftFormerForImageClassification",
                    {"depths": [1, 1, 1, 1], "embed_dims": [8, 16, 24, 32], "num_labels": 10}, 64),
    "hgnet_v2": ("HGNetV2Config", "HGNetV2ForImageClassification", {"num_labels": 10}, 64),
    "efficientnet": ("EfficientNetConfig", "EfficientNetForImageClassification",
                     {"width_coefficient": 0.5, "depth_coefficient": 0.3, "image_size": 64, "hidden_dim": 640,
                      "num_labels": 10}, 64),
    "pp_lcnet": ("PPLCNetConfig", "PPLCNetForImageClassification", {"num_labels": 10}, 64),
    "superpoint": ("SuperPointConfig", "SuperPointForKeypointDetection",
                   {"encoder_hidden_sizes": [8, 8, 16, 16], "decoder_hidden_size": 16,
                    "descriptor_decoder_dim": 16, "keypoint_decoder_dim": 65}, 64),
    "vitpose": ("VitPoseConfig", "VitPoseForPoseEstimation", {"num_labels": 6}, 32),
    "depth_anything": ("DepthAnythingConfig", "DepthAnythingForDepthEstimation",
                       {"patch_size": 8, "reassemble_hidden_size": 32, "neck_hidden_sizes": [8, 8, 16, 16],
                        "fusion_hidden_size": 16, "head_hidden_size": 8}, 32),
    "upernet": ("UperNetConfig", "UperNetForSemanticSegmentation",
                {"hidden_size": 16, "auxiliary_in_channels": 24, "auxiliary_channels": 16, "num_labels": 7}, 64),
    "vitmatte": ("VitMatteConfig", "VitMatteForImageMatting",
                 {"hidden_size": 32, "fusion_hidden_sizes": [16, 8, 8, 8], "convstream_hidden_sizes": [8, 8, 8]}, 64),
    "maskformer_swin": ("MaskFormerSwinConfig", "MaskFormerSwinModel",
                        {"image_size": 64, "patch_size": 2, "embed_dim": 16, "depths": [2, 2],
                         "num_heads": [2, 4], "window_size": 4}, 64),
    "donut_swin": ("DonutSwinConfig", "DonutSwinModel",
                   {"image_size": 64, "patch_size": 2, "embed_dim": 16, "depths": [2, 2],
                    "num_heads": [2, 4], "window_size": 4}, 64),
}  # fmt: skip
_GAINS = {"mobilenet_v1": 1.4, "efficientnet": 1.4, "hgnet_v2": 1.4, "pp_lcnet": 1.4, "regnet": 1.4}


def _backbone(name):
    import transformers

    if name == "depth_anything":
        return transformers.Dinov2Config(
            **{**_VIT, "num_hidden_layers": 4}, out_features=["stage1", "stage2", "stage3", "stage4"],
            reshape_hidden_states=False)  # fmt: skip
    if name == "vitpose":
        return transformers.VitPoseBackboneConfig(
            **{**_VIT, "image_size": [32, 32], "patch_size": [8, 8]}, out_indices=[2])
    if name == "upernet":
        return transformers.ConvNextConfig(hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
                                           out_features=["stage1", "stage2", "stage3", "stage4"])
    if name == "vitmatte":
        return transformers.VitDetConfig(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, image_size=64, patch_size=16,
            pretrain_image_size=64, num_channels=4, out_features=["stage2"])
    return None


def _image(name, config_class, model_class, settings, extent):
    def make():
        backbone = _backbone(name)
        given = {**settings, **({"backbone_config": backbone} if backbone is not None else {})}
        channels = 4 if name == "vitmatte" else 3
        # Its trace holds the number of images.
        batch = 1 if name == "depth_anything" else 3
        return make_image(name, config_class, model_class, given, channels=channels,
                          gain=_GAINS.get(name, 1.0), sizes=((1, extent, extent), (batch, extent, extent)),
                          tolerance=3e-4)()  # fmt: skip

    return make


_FILMS = {
    "timesformer": ("TimesformerConfig", "TimesformerForVideoClassification",
                    {**_LABELLED, "num_frames": 4}, (4, 3, 32, 32)),
    "vivit": ("VivitConfig", "VivitForVideoClassification",
              {**_LABELLED, "num_frames": 4, "tubelet_size": [2, 8, 8], "hidden_act": "gelu"}, (4, 3, 32, 32)),
    "videomae": ("VideoMAEConfig", "VideoMAEForVideoClassification",
                 {**_LABELLED, "num_frames": 4}, (4, 3, 32, 32)),
    "vjepa2": ("VJEPA2Config", "VJEPA2Model",
               {**_VIT, "crop_size": 32, "frames_per_clip": 4, "pred_hidden_size": 24, "pred_num_attention_heads": 4,
                "pred_num_hidden_layers": 1}, (4, 3, 32, 32)),
}  # fmt: skip


def _film(name, config_class, model_class, settings, extents):
    def make():
        model = make_model(name, config_class, model_class, settings)
        key = "pixel_values_videos" if name == "vjepa2" else "pixel_values"
        fixed = {"skip_predictor": True} if name == "vjepa2" else {}
        inputs = [(signal(batch, batch, *extents),) for batch in (1, 2)]
        return Subject(wrap(model, (key,), **fixed), inputs, {0: {0: "batch"}})

    return make


_DETECTORS = {"num_labels": 6, "num_queries": 8, "d_model": 32, "encoder_layers": 1, "decoder_layers": 2,
              "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 48,
              "decoder_ffn_dim": 48, "use_pretrained_backbone": False, "use_timm_backbone": False}  # fmt: skip


def _detector(name, config_class, model_class, settings, features=("stage4",), kind="ResNetConfig"):
    def make():
        import transformers

        backbone = getattr(transformers, kind)(
            embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1], layer_type="basic",
            out_features=list(features))  # fmt: skip
        model = make_model(name, config_class, model_class, {**settings, "backbone_config": backbone})
        inputs = [(signal(3, 1, 3, 64, 64),), (signal(4, 2, 3, 64, 64),)]
        return Subject(wrap(model, ("pixel_values",)), inputs, {0: {0: "batch"}}, 3e-4)

    return make


_RT = {"num_labels": 6, "num_queries": 8, "d_model": 32, "encoder_hidden_dim": 32,
       "encoder_in_channels": [16, 24, 32], "decoder_in_channels": [32, 32, 32], "encoder_ffn_dim": 48,
       "decoder_layers": 2, "decoder_attention_heads": 4, "encoder_attention_heads": 4,
       "decoder_ffn_dim": 48, "decoder_n_points": 2, "num_denoising": 0}  # fmt: skip
_MASKS = {"feature_size": 32, "mask_feature_size": 32, "hidden_dim": 32, "encoder_feedforward_dim": 48,
          "dim_feedforward": 48, "encoder_layers": 1, "decoder_layers": 2, "num_attention_heads": 4,
          "num_queries": 8, "num_labels": 6}  # fmt: skip
_THREE = ("stage2", "stage3", "stage4")


def _sam():
    import transformers

    vision = {"hidden_size": 32, "output_channels": 16, "num_hidden_layers": 2, "num_attention_heads": 4,
              "image_size": 64, "patch_size": 8, "window_size": 3, "global_attn_indexes": [1],
              "mlp_dim": 48, "num_pos_feats": 8}  # fmt: skip
    prompt = {"hidden_size": 16, "image_size": 64, "patch_size": 8, "mask_input_channels": 4}
    mask = {"hidden_size": 16, "mlp_dim": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
            "iou_head_hidden_dim": 16, "iou_head_depth": 2}  # fmt: skip
    settings = {"vision_config": transformers.SamVisionConfig(**vision).to_dict(),
                "prompt_encoder_config": prompt, "mask_decoder_config": mask}  # fmt: skip
    model = make_model("sam", "SamConfig", "SamModel", settings)
    inputs = [(signal(b, b, 3, 64, 64), (signal(b + 5, b, 1, points, 2) * 9 + 30))
              for b, points in ((1, 2), (2, 3))]  # fmt: skip
    axes = {0: {0: "batch"}, 1: {0: "batch", 2: "points"}}
    choose = lambda a: (a.iou_scores, a.pred_masks)  # noqa: E731
    return Subject(wrap(model, ("pixel_values", "input_points"), choose), inputs, axes, 3e-4)


def list_cases():
    def one(name, make):
        return cases(f"transformers/{name}", make, (DYNAMO,))

    for name, entry in _IMAGES.items():
        yield from one(name, _image(name, *entry))
    for name, entry in _FILMS.items():
        yield from one(name, _film(name, *entry))
    yield from one("table_transformer", _detector(
        "table_transformer", "TableTransformerConfig", "TableTransformerForObjectDetection", _DETECTORS))
    yield from one("dab_detr", _detector(
        "dab_detr", "DabDetrConfig", "DabDetrForObjectDetection", {**_DETECTORS, "hidden_size": 32}))
    yield from one("rt_detr", _detector(
        "rt_detr", "RTDetrConfig", "RTDetrForObjectDetection", _RT, _THREE, "RTDetrResNetConfig"))
    yield from one("mask2former", _detector(
        "mask2former", "Mask2FormerConfig", "Mask2FormerForUniversalSegmentation", _MASKS,
        ("stage1", "stage2", "stage3", "stage4")))
    yield from one("maskformer", _detector(
        "maskformer", "MaskFormerConfig", "MaskFormerForInstanceSegmentation",
        {"fpn_feature_size": 32, "mask_feature_size": 32, "num_labels": 6,
         "decoder_config": {**_DETECTORS, "model_type": "detr"}}, ("stage1", "stage2", "stage3", "stage4")))
    yield from one("sam", _sam)
