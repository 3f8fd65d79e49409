# SPDX-License-Identifier: Apache-2.0
"""Image, sound and image-with-text networks of the transformers package."""

from exported.torch_export import Subject, cases
from exported.transformers_subject import make_image, make_model, padded, signal, tokens, wrap

_VIT = {
    "image_size": 32,
    "patch_size": 8,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
}
_STAGES = {"image_size": 32, "patch_size": 2, "embed_dim": 16, "depths": [2, 2],
           "num_heads": [2, 4], "window_size": 4}  # fmt: skip
_ANY_EXTENT = {0: "batch", 2: "height", 3: "width"}
_TWO_EXTENTS = ((1, 64, 64), (2, 96, 64))

_IMAGES = {
    "vit": ("ViTConfig", "ViTForImageClassification", {**_VIT, "num_labels": 10}),
    "deit": ("DeiTConfig", "DeiTForImageClassification", {**_VIT, "num_labels": 10}),
    "beit": (
        "BeitConfig",
        "BeitForImageClassification",
        {**_VIT, "num_labels": 10, "use_relative_position_bias": True, "vocab_size": 11},
    ),
    "dinov2": ("Dinov2Config", "Dinov2ForImageClassification", {**_VIT, "num_labels": 10}),
    "yolos": (
        "YolosConfig",
        "YolosForObjectDetection",
        {**_VIT, "image_size": [32, 32], "num_detection_tokens": 5, "num_labels": 6},
    ),
    "swin": ("SwinConfig", "SwinForImageClassification", {**_STAGES, "num_labels": 10}),
    "swinv2": ("Swinv2Config", "Swinv2ForImageClassification", {**_STAGES, "num_labels": 10}),
    "segformer": (
        "SegformerConfig",
        "SegformerForSemanticSegmentation",
        {
            "hidden_sizes": [8, 16, 24, 32],
            "depths": [1, 1, 1, 1],
            "num_attention_heads": [1, 2, 3, 4],
            "decoder_hidden_size": 32,
            "num_labels": 7,
        },
    ),
    "mobilevit": (
        "MobileViTConfig",
        "MobileViTForImageClassification",
        {
            "image_size": 64,
            "hidden_sizes": [24, 32, 40],
            "neck_hidden_sizes": [8, 8, 16, 24, 32, 40, 64],
            "num_labels": 10,
        },
    ),
    "mobilevitv2": (
        "MobileViTV2Config",
        "MobileViTV2ForImageClassification",
        {"image_size": 64, "width_multiplier": 0.25, "num_labels": 10},
    ),
    "poolformer": (
        "PoolFormerConfig",
        "PoolFormerForImageClassification",
        {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_labels": 10},
    ),
    "convnextv2": (
        "ConvNextV2Config",
        "ConvNextV2ForImageClassification",
        {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1], "num_labels": 10},
    ),
    "focalnet": (
        "FocalNetConfig",
        "FocalNetForImageClassification",
        {"image_size": 32, "embed_dim": 16, "depths": [1, 1], "focal_levels": [2, 2],
         "focal_windows": [3, 3], "num_labels": 10},
    ),
    "pvt_v2": (
        "PvtV2Config",
        "PvtV2ForImageClassification",
        {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1],
         "num_attention_heads": [1, 2, 3, 4], "num_labels": 10},
    ),
    "cvt": (
        "CvtConfig",
        "CvtForImageClassification",
        {"embed_dim": [8, 16, 24], "num_heads": [1, 2, 3], "depth": [1, 1, 2], "num_labels": 10},
    ),
    "levit": (
        "LevitConfig",
        "LevitForImageClassification",
        {"image_size": 64, "hidden_sizes": [16, 24, 32], "num_attention_heads": [2, 3, 4],
         "depths": [1, 1, 1], "key_dim": [8, 8, 8], "num_labels": 10,
         "down_ops": [["Subsample", 8, 2, 4, 2, 2], ["Subsample", 8, 3, 4, 2, 2]]},
    ),
    "dpt": (
        "DPTConfig",
        "DPTForDepthEstimation",
        {**_VIT, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3],
         "neck_hidden_sizes": [8, 8, 16, 16], "fusion_hidden_size": 16,
         "reassemble_factors": [4, 2, 1, 0.5]},
    ),
    "vitdet": (
        "VitDetConfig",
        "VitDetModel",
        {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 64,
         "patch_size": 8, "pretrain_image_size": 64, "window_block_indices": [0], "window_size": 4,
         "use_relative_position_embeddings": True},
    ),
    "swin2sr": (
        "Swin2SRConfig",
        "Swin2SRForImageSuperResolution",
        {"image_size": 64, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 2], "window_size": 4,
         "upscale": 2},
    ),
    "hiera": (
        "HieraConfig",
        "HieraForImageClassification",
        {"image_size": [32, 32], "embed_dim": 16, "depths": [1, 1, 1], "num_heads": [1, 2, 4],
         "masked_unit_size": [4, 4], "query_stride": [2, 2], "num_query_pool": 2,
         "num_labels": 10},
    ),
}  # fmt: skip
_LARGER = {"mobilevit", "mobilevitv2", "poolformer", "convnextv2", "focalnet", "pvt_v2", "cvt",
           "levit", "segformer", "vitdet", "swin2sr"}  # fmt: skip
_OF_ANY_EXTENT = {"poolformer", "convnextv2", "segformer"}


def _detection(name, config_class, model_class, settings):
    def make():
        import transformers

        backbone = transformers.ResNetConfig(
            embedding_size=8, hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1],
            layer_type="basic", out_features=["stage4"])  # fmt: skip
        model = make_model(
            name, config_class, model_class, {**settings, "backbone_config": backbone}
        )
        inputs = [(signal(3, 1, 3, 64, 64),), (signal(4, 2, 3, 64, 96),)]
        return Subject(wrap(model, ("pixel_values",)), inputs, {0: _ANY_EXTENT})

    return make


_DETR = {"use_pretrained_backbone": False, "use_timm_backbone": False, "num_queries": 5,
         "d_model": 32, "encoder_layers": 1, "decoder_layers": 2, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48,
         "num_labels": 6}  # fmt: skip

_AUDIO = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
          "intermediate_size": 48, "conv_dim": [16, 16, 16], "conv_stride": [5, 2, 2],
          "conv_kernel": [10, 3, 3], "num_feat_extract_layers": 3, "vocab_size": 20,
          "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}  # fmt: skip
_SOUNDS = {
    "wav2vec2": ("Wav2Vec2Config", "Wav2Vec2ForCTC", _AUDIO),
    "hubert": ("HubertConfig", "HubertForCTC", {**_AUDIO, "do_stable_layer_norm": True,
                                               "feat_extract_norm": "layer"}),  # fmt: skip
    "wavlm": ("WavLMConfig", "WavLMForCTC", _AUDIO),
    "sew": ("SEWConfig", "SEWForCTC", {**_AUDIO, "squeeze_factor": 2}),
}


def _sound(name, config_class, model_class, settings):
    def make():
        model = make_model(name, config_class, model_class, settings)
        inputs = [(signal(1, 1, 800),), (signal(2, 3, 1111),)]
        return Subject(wrap(model, ("input_values",)), inputs, {0: {0: "batch", 1: "samples"}})

    return make


def _whisper():
    settings = {"vocab_size": 101, "num_mel_bins": 10, "d_model": 32, "encoder_layers": 2,
                "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
                "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_source_positions": 20,
                "max_target_positions": 20, "use_cache": False, "pad_token_id": 0,
                "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}  # fmt: skip
    model = make_model("whisper", "WhisperConfig", "WhisperForConditionalGeneration", settings)
    inputs = [
        (signal(batch, batch, 10, 40), tokens(batch, batch, length, 101))
        for batch, length in ((2, 5), (3, 9))
    ]
    axes = {0: {0: "batch"}, 1: {0: "batch", 1: "length"}}
    return Subject(wrap(model, ("input_features", "decoder_input_ids")), inputs, axes)


def _ast():
    settings = {**_VIT, "max_length": 40, "num_mel_bins": 16, "patch_size": 8, "num_labels": 9,
                "frequency_stride": 4, "time_stride": 4}  # fmt: skip
    settings.pop("image_size")
    model = make_model("ast", "ASTConfig", "ASTForAudioClassification", settings)
    inputs = [(signal(batch, batch, 40, 16),) for batch in (1, 3)]
    return Subject(wrap(model, ("input_values",)), inputs, {0: {0: "batch"}})


def _two_towers(name, config_class, model_class):
    def make():
        text = {"vocab_size": 101, "hidden_size": 32, "intermediate_size": 48,
                "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 32,
                "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
        settings = {"text_config": text, "vision_config": _VIT, "projection_dim": 24}
        if "Siglip" in config_class:
            settings.pop("projection_dim")
        model = make_model(name, config_class, model_class, settings)
        names = ("input_ids", "pixel_values", "attention_mask")
        inputs = []
        for texts, images, length in ((2, 1, 7), (3, 2, 11)):
            sequence = tokens(texts, texts, length, 101)
            sequence[:, -3] = 2
            inputs.append((sequence, signal(images, images, 3, 32, 32), padded(texts, length)))
        axes = {0: {0: "texts", 1: "length"}, 1: {0: "images"}, 2: {0: "texts", 1: "length"}}
        choose = lambda answer: (answer.logits_per_image, answer.text_embeds)  # noqa: E731
        return Subject(wrap(model, names, choose), inputs, axes)

    return make


def _time_series(name, config_class, model_class):
    def make():
        settings = {"context_length": 32, "prediction_length": 8, "patch_length": 8,
                    "patch_stride": 8, "num_input_channels": 3, "d_model": 16,
                    "num_hidden_layers": 2, "num_layers": 2, "num_attention_heads": 2,
                    "ffn_dim": 24}  # fmt: skip
        model = make_model(name, config_class, model_class, settings)
        inputs = [(signal(batch, batch, 32, 3),) for batch in (2, 5)]
        return Subject(wrap(model, ("past_values",)), inputs, {0: {0: "batch"}})

    return make


def list_cases():
    for name, entry in _IMAGES.items():
        sizes = ((1, 64, 64), (3, 64, 64)) if name in _LARGER else ((1, 32, 32), (3, 32, 32))
        axes = None
        if name in _OF_ANY_EXTENT:
            sizes, axes = _TWO_EXTENTS, _ANY_EXTENT
        yield from cases(f"transformers/{name}", make_image(name, *entry, sizes=sizes, axes=axes))
    detr = _detection("detr", "DetrConfig", "DetrForObjectDetection", _DETR)
    yield from cases("transformers/detr", detr)
    conditional = _detection(
        "conditional_detr", "ConditionalDetrConfig", "ConditionalDetrForObjectDetection", _DETR
    )
    yield from cases("transformers/conditional_detr", conditional)
    deformable = _detection(
        "deformable_detr", "DeformableDetrConfig", "DeformableDetrForObjectDetection",
        {**_DETR, "num_feature_levels": 1, "encoder_n_points": 2, "decoder_n_points": 2})  # fmt: skip
    yield from cases("transformers/deformable_detr", deformable)
    for name, entry in _SOUNDS.items():
        yield from cases(f"transformers/{name}", _sound(name, *entry))
    yield from cases("transformers/whisper", _whisper)
    yield from cases("transformers/ast", _ast)
    yield from cases("transformers/clip", _two_towers("clip", "CLIPConfig", "CLIPModel"))
    yield from cases("transformers/siglip", _two_towers("siglip", "SiglipConfig", "SiglipModel"))
    yield from cases(
        "transformers/patchtst",
        _time_series("patchtst", "PatchTSTConfig", "PatchTSTForPrediction"),
    )
    yield from cases(
        "transformers/patchtsmixer",
        _time_series("patchtsmixer", "PatchTSMixerConfig", "PatchTSMixerForPrediction"),
    )
