# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime's generative-AI model builder: a network of the transformers package, saved as a checkpoint, to
files of ONNX."""

import contextlib
import io
import logging

EXPORTER = "genai builder"


def _save_tokenizer(folder, vocabulary):
    """The builder copies one; no model that it writes has a part of it."""
    import tokenizers
    import transformers

    words = {f"token{number}": number for number in range(vocabulary)}
    core = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="token0"))
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=core, pad_token="token0", bos_token="token1", eos_token="token2",
        unk_token="token0",
    ).save_pretrained(folder)  # fmt: skip


def _fill_in_settings(config):
    """What the builder looks for under the names of older releases of transformers."""
    parameters = getattr(config, "rope_parameters", None) or {}
    if "sliding_attention" in parameters:
        config.rope_local_base_freq = parameters["sliding_attention"]["rope_theta"]
        config.rope_parameters = dict(parameters["full_attention"])


def save_blocks(model, folder):
    """The experts' weights of GPT-OSS as its checkpoints hold them: 4-bit floats in blocks of 32 with
    a power of two each. The network gets what they say."""
    import torch
    from safetensors.torch import load_file, save_file

    path = folder / "model.safetensors"
    tensors = load_file(path)
    generator = torch.Generator().manual_seed(7)
    values = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6] + [-0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
    for number, layer in enumerate(model.model.layers):
        for name in ("gate_up_proj", "down_proj"):
            weight = getattr(layer.mlp.experts, name)  # [experts, in, out]
            experts, depth, width = weight.shape
            codes = torch.randint(0, 16, (experts, width, depth), generator=generator)
            powers = torch.randint(123, 126, (experts, width, depth // 32), generator=generator)
            scales = torch.exp2(powers - 127.0).repeat_interleave(32, dim=2)
            weight.data.copy_((values[codes] * scales).transpose(1, 2))
            pairs = codes.reshape(experts, width, depth // 32, 16, 2)
            prefix = f"model.layers.{number}.mlp.experts.{name}"
            tensors[f"{prefix}_blocks"] = (pairs[..., 0] + 16 * pairs[..., 1]).to(torch.uint8)
            tensors[f"{prefix}_scales"] = powers.to(torch.uint8)
            tensors[prefix] = weight.data.contiguous()
    save_file(tensors, path, {"format": "pt"})


def save(model, model_class, folder):
    """The network as a checkpoint. Returns the folder that has it."""
    source = folder / "source"
    model.config.architectures = [model_class]
    model.save_pretrained(source)
    _save_tokenizer(source, model.get_input_embeddings().weight.shape[0])
    return source


def build(source, folder, precision, options, provider):
    import onnxruntime_genai.models  # noqa: F401 (puts the builder's folder into the path)
    from onnxruntime_genai.models import builder

    logging.disable(logging.ERROR)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        arguments = (None, str(source), str(folder), precision, provider, str(folder / "cache"))
        extra = builder.parse_extra_options(*arguments, list(options))
        _fill_in_settings(extra["hf_details"]["hf_config"])
        builder.create_model(*arguments, **extra)
    logging.disable(logging.NOTSET)


def without_roundings(path):
    """The file with products of float32 where they may round their other factor to bytes."""
    import onnx

    model = onnx.load(str(path), load_external_data=False)
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "MatMulNBits" and attribute.name == "accuracy_level":
                attribute.i = 1
    exact = path.with_name("exact.onnx")
    onnx.save(model, str(exact))
    return exact
