# SPDX-License-Identifier: Apache-2.0
"""Networks of the transformers package over text with images or with places on a page, and over series of
numbers. Each goes through one of torch's exporters."""

from exported.torch_export import DYNAMO, SCRIPT, Subject, cases
from exported.transformers_subject import make_model, padded, signal, tokens, wrap

_VIT = {"image_size": 32, "patch_size": 8, "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 48}  # fmt: skip
_TEXT = {"vocab_size": 101, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
         "num_attention_heads": 4, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1,
         "eos_token_id": 2}  # fmt: skip
_TOWERS = {"text_config": _TEXT, "vision_config": _VIT, "projection_dim": 24}


def _text_and_image(name, config_class, model_class, settings, choose,
                    names=("input_ids", "pixel_values", "attention_mask")):
    def make():
        model = make_model(name, config_class, model_class, settings)
        inputs = []
        for batch, length in ((2, 7), (3, 11)):
            text = tokens(batch, batch, length, 101)
            text[:, -3] = 2
            given = {"input_ids": text, "pixel_values": signal(batch, batch, 3, 32, 32),
                     "attention_mask": padded(batch, length)}  # fmt: skip
            inputs.append(tuple(given[key] for key in names))
        axes = {k: {0: "batch"} if key == "pixel_values" else {0: "batch", 1: "length"}
                for k, key in enumerate(names)}  # fmt: skip
        return Subject(wrap(model, names, choose), inputs, axes)

    return make


def _decision():
    settings = {"state_dim": 5, "act_dim": 3, "hidden_size": 32, "n_layer": 2, "n_head": 2, "max_ep_len": 64}
    model = make_model("decision_transformer", "DecisionTransformerConfig", "DecisionTransformerModel", settings)
    inputs = []
    for batch, length in ((1, 6), (3, 9)):
        steps = tokens(batch, batch, length, 60)
        inputs.append((signal(1, batch, length, 5), signal(2, batch, length, 3), signal(3, batch, length, 1),
                       signal(4, batch, length, 1), steps, padded(batch, length)))  # fmt: skip
    names = ("states", "actions", "rewards", "returns_to_go", "timesteps", "attention_mask")
    axes = {k: {0: "batch", 1: "length"} for k in range(6)}
    return Subject(wrap(model, names), inputs, axes)


def _layout(name, config_class, model_class, settings):
    def make():
        import torch

        model = make_model(name, config_class, model_class, {**_TEXT, **settings})
        inputs = []
        for batch, length in ((2, 9), (3, 14)):
            corner = tokens(batch, batch, length * 2, 40).reshape(batch, length, 2)
            boxes = torch.cat([corner, corner + 7], 2)
            inputs.append((tokens(batch, batch, length, 101), boxes, padded(batch, length)))
        axes = {k: {0: "batch", 1: "length"} for k in range(3)}
        return Subject(wrap(model, ("input_ids", "bbox", "attention_mask")), inputs, axes)

    return make


def _imagegpt():
    settings = {"vocab_size": 101, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64,
                "use_cache": False}  # fmt: skip
    model = make_model("imagegpt", "ImageGPTConfig", "ImageGPTModel", settings)
    inputs = [(tokens(b, b, length, 101),) for b, length in ((2, 9), (3, 16))]
    wrapped = wrap(model, ("input_ids",), lambda a: a.last_hidden_state)
    return Subject(wrapped, inputs, {0: {0: "batch", 1: "length"}})


def _timesfm():
    settings = {"patch_length": 8, "context_length": 32, "horizon_length": 8, "hidden_size": 32,
                "intermediate_size": 48, "head_dim": 8, "num_attention_heads": 4, "num_hidden_layers": 2}  # fmt: skip
    import torch

    model = make_model("timesfm", "TimesFmConfig", "TimesFmModel", settings)
    zeros = lambda *shape: torch.zeros(*shape, dtype=torch.int64)  # noqa: E731
    inputs = [(signal(b, b, 32), zeros(b, 32), zeros(b, 1)) for b in (2, 5)]
    names = ("past_values", "past_values_padding", "freq")
    return Subject(wrap(model, names, lambda a: a.last_hidden_state), inputs, {k: {0: "batch"} for k in range(3)})

# What torch.export or its translation does not take.
_BY_SCRIPT = {"timesfm"}


def list_cases():
    def one(name, make):
        return cases(f"transformers/{name}", make, (SCRIPT if name in _BY_SCRIPT else DYNAMO,))

    yield from one("clipseg", _text_and_image(
        "clipseg", "CLIPSegConfig", "CLIPSegForImageSegmentation",
        {**_TOWERS, "extract_layers": [0, 1], "reduce_dim": 16, "decoder_num_attention_heads": 2,
         "decoder_intermediate_size": 32}, lambda a: a.logits))
    yield from one("chinese_clip", _text_and_image(
        "chinese_clip", "ChineseCLIPConfig", "ChineseCLIPModel", _TOWERS,
        lambda a: (a.logits_per_image, a.text_embeds)))
    yield from one("altclip", _text_and_image(
        "altclip", "AltCLIPConfig", "AltCLIPModel",
        {**_TOWERS, "text_config": {**_TEXT, "project_dim": 24, "pad_token_id": 1}},
        lambda a: (a.logits_per_image, a.text_embeds)))
    yield from one("groupvit", _text_and_image(
        "groupvit", "GroupViTConfig", "GroupViTModel",
        {"text_config": _TEXT, "projection_dim": 24, "projection_intermediate_dim": 32,
         "vision_config": {**_VIT, "depths": [1, 1, 1], "num_group_tokens": [6, 4, 0],
                           "num_output_groups": [6, 4, 0]}}, lambda a: (a.logits_per_image, a.text_embeds)))
    yield from one("blip", _text_and_image(
        "blip", "BlipConfig", "BlipForImageTextRetrieval",
        {"text_config": {**_TEXT, "encoder_hidden_size": 32}, "vision_config": _VIT, "projection_dim": 24,
         "image_text_hidden_size": 24},
        lambda a: a.itm_score))
    yield from one("owlvit", _text_and_image(
        "owlvit", "OwlViTConfig", "OwlViTForObjectDetection", {**_TOWERS, "projection_dim": 32},
        lambda a: (a.logits, a.pred_boxes), ("input_ids", "pixel_values")))
    yield from one("git", _text_and_image(
        "git", "GitConfig", "GitForCausalLM", {**_TEXT, "vision_config": _VIT, "use_cache": False},
        lambda a: a.logits))
    yield from one("lilt", _layout(
        "lilt", "LiltConfig", "LiltModel",
        {"hidden_size": 48, "channel_shrink_ratio": 2, "max_2d_position_embeddings": 64, "pad_token_id": 1}))
    yield from one("layoutlm", _layout(
        "layoutlm", "LayoutLMConfig", "LayoutLMModel", {"max_2d_position_embeddings": 64}))
    yield from one("layoutlmv3", _layout(
        "layoutlmv3", "LayoutLMv3Config", "LayoutLMv3Model",
        {"max_2d_position_embeddings": 64, "coordinate_size": 6, "shape_size": 4, "visual_embed": False,
         "pad_token_id": 1}))
    yield from one("decision_transformer", _decision)
    yield from one("imagegpt", _imagegpt)
    yield from one("timesfm", _timesfm)
