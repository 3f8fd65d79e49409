# SPDX-License-Identifier: Apache-2.0
"""Networks that ONNX Runtime's generative-AI model builder writes: decoders, each a prompt and steps with a cache,
for one sequence and for two.

The logits that a float file has to answer are those of the network itself, which sees all tokens at once and
has no cache. What a quantized file has to answer, ONNX Runtime says of the same file with products that do not
round their other factor: by default the builder permits bytes there. The caches are ONNX Runtime's: the next step
takes them.
"""

from exported.exported_case import TOLERANCE, Case, Exported
from exported.genai_builder import EXPORTER, build, save, save_blocks
from exported.genai_decoder import WINDOW, converse
from exported.transformers_subject import make_model

_VOCABULARY = 101

_SIZES = {
    "vocab_size": _VOCABULARY,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 96,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "tie_word_embeddings": False,
}
_WIDE_HEADS = {**_SIZES, "head_dim": 32}
_WINDOWED = {
    **_WIDE_HEADS,
    "sliding_window": WINDOW,
    "layer_types": ["sliding_attention", "full_attention"],
}
_TIED = {"tie_word_embeddings": True}
_EXPERTS = {"num_experts_per_tok": 2}
_LONG_ROPE = {
    "rope_type": "longrope",
    "type": "longrope",
    "rope_theta": 10000.0,
    "original_max_position_embeddings": 6,
    "short_factor": [1 + 0.1 * k for k in range(8)],
    "long_factor": [1.5 + 0.3 * k for k in range(8)],
}

_VISION = {"depth": 1, "hidden_size": 32, "num_heads": 2, "intermediate_size": 32, "out_hidden_size": 64}


def _with_images(text, sections, part=1.0):
    """Settings of a network that sees images, too; the builder writes the part that reads text. `sections`: how
    many angles go with each of three positions, of that part of a head."""
    turns = {
        "rope_type": "default",
        "rope_theta": 10000.0,
        "mrope_section": sections,
        "partial_rotary_factor": part,
    }
    text = {**text, "rope_parameters": turns}
    return {"text_config": text, "vision_config": _VISION, "vocab_size": _VOCABULARY}


# By name: classes of configuration and network, settings.
_NETWORKS = {
    "llama": ("LlamaConfig", "LlamaForCausalLM", _SIZES),
    "mistral": ("MistralConfig", "MistralForCausalLM", {**_SIZES, "sliding_window": None}),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", _SIZES),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", _WIDE_HEADS),
    "phi": (
        "PhiConfig",
        "PhiForCausalLM",
        {**_SIZES, "head_dim": 32, "partial_rotary_factor": 0.5},
    ),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", {**_SIZES, "original_max_position_embeddings": 64}),
    "phi3_long": (
        "Phi3Config",
        "Phi3ForCausalLM",
        {**_SIZES, "original_max_position_embeddings": 6, "rope_parameters": _LONG_ROPE},
    ),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", {**_WIDE_HEADS, **_TIED}),
    "gemma2": (
        "Gemma2Config",
        "Gemma2ForCausalLM",
        {**_WINDOWED, **_TIED, "query_pre_attn_scalar": 16},
    ),
    "gemma3": (
        "Gemma3TextConfig",
        "Gemma3ForCausalLM",
        {**_WINDOWED, **_TIED, "query_pre_attn_scalar": 16},
    ),
    "olmo": ("OlmoConfig", "OlmoForCausalLM", _SIZES),
    "granite": (
        "GraniteConfig",
        "GraniteForCausalLM",
        {
            **_SIZES,
            "embedding_multiplier": 1.5,
            "attention_multiplier": 0.2,
            "logits_scaling": 2.0,
            "residual_multiplier": 0.8,
        },
    ),
    "granite_hybrid": (
        "GraniteMoeHybridConfig",
        "GraniteMoeHybridForCausalLM",
        {
            **_SIZES,
            "shared_intermediate_size": 96,
            "num_local_experts": 0,
            "num_experts_per_tok": 0,
            "layer_types": ["attention", "attention"],
            "position_embedding_type": "rope",
            "attention_multiplier": 0.2,
        },
    ),
    "smollm3": ("SmolLM3Config", "SmolLM3ForCausalLM", {**_SIZES, "no_rope_layers": [1, 1]}),
    "nemotron": (
        "NemotronConfig",
        "NemotronForCausalLM",
        {**_WIDE_HEADS, "partial_rotary_factor": 0.5},
    ),
    "ernie": ("Ernie4_5Config", "Ernie4_5ForCausalLM", _WIDE_HEADS),
    "hunyuan": ("HunYuanDenseV1Config", "HunYuanDenseV1ForCausalLM", _WIDE_HEADS),
    "lfm2": (
        "Lfm2Config",
        "Lfm2ForCausalLM",
        {**_SIZES, "layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False},
    ),
    "lfm2_experts": (
        "Lfm2MoeConfig",
        "Lfm2MoeForCausalLM",
        {
            **_SIZES,
            **_EXPERTS,
            "layer_types": ["conv", "full_attention"],
            "moe_intermediate_size": 32,
            "num_experts": 4,
            "num_dense_layers": 1,
        },
    ),
    "gpt_oss": (
        "GptOssConfig",
        "GptOssForCausalLM",
        {**_WINDOWED, **_EXPERTS, "num_local_experts": 4},
    ),
    "qwen2_5_vl": (
        "Qwen2_5_VLConfig",
        "Qwen2_5_VLForConditionalGeneration",
        _with_images(_SIZES, [2, 3, 3]),
    ),
    "qwen3_vl": (
        "Qwen3VLConfig",
        "Qwen3VLForConditionalGeneration",
        _with_images(_WIDE_HEADS, [4, 6, 6]),
    ),
    "qwen3_5": (
        "Qwen3_5Config",
        "Qwen3_5ForConditionalGeneration",
        _with_images({
            **_WIDE_HEADS,
            "layer_types": ["linear_attention", "full_attention"],
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
        }, [2, 1, 1], 0.25),
    ),
}  # fmt: skip

# Whose normalisation the builder writes without the mean: ONNX Runtime's answers count.
_UNLIKE_SOURCE = ("olmo",)

# |file - network| where the file rounds to float16, where ONNX Runtime answers, and where it rounds what it
# multiplies by an expert's weights to bytes.
_HALF, _QUANTIZED, _BYTES = 2e-2, 1e-3, 1e-1

# Further files: network, precision, options of the builder, and for whom of ONNX Runtime's providers
# it writes, if not for processors: some have files of float16.
_OPTIONS = {
    "llama_zero_points": ("llama", "int4", ("is_symmetric=false",)),
    "llama_exact": ("llama", "int4", ("accuracy_level=1", "block_size=16")),
    "llama_qdq": ("llama", "int4", ("use_qdq=true", "accuracy_level=1")),
    "llama_8_bits": ("llama", "int8", ()),
    "llama_hidden": ("llama", "fp32", ("include_hidden_states=true",)),
    "llama_headless": ("llama", "fp32", ("exclude_lm_head=true",)),
    "llama_last": ("llama", "fp32", ("prune_lm_head=true",)),
    "qwen3_embedded": ("qwen3", "int4", ("exclude_embeds=true",)),
    "qwen2_apart": ("qwen2", "int4", ("fuse_qkv=false",)),
    "gemma_zero_points": ("gemma", "int4", ("is_symmetric=false",)),
    "gemma2_whole_cache": ("gemma2", "fp32", ("windowed_kv_cache=false",)),
    "lfm2_experts_8_bits": ("lfm2_experts", "int4", ("moe_quant_type=int8",), "cpu", _BYTES),
    "llama_float16": ("llama", "fp16", (), "cuda"),
    "llama_float16_4_bits": ("llama", "int4", (), "cuda"),
    "llama_float16_apart": ("llama", "fp16", (), "dml"),
    "llama_float16_plain": ("llama", "fp16", (), "NvTensorRtRtx"),
    "gemma2_float16": ("gemma2", "fp16", (), "cuda"),
    "gpt_oss_float16": ("gpt_oss", "fp16", (), "cuda"),
}


def _make(name, network, precision, options, provider="cpu", tolerance=None):
    def make(folder):
        config_class, model_class, settings = _NETWORKS[network]
        model = make_model(network, config_class, model_class, settings)
        source = save(model, model_class, folder)
        if network == "gpt_oss":
            save_blocks(model, source)
        build(source, folder, precision, options, provider)
        path = folder / "model.onnx"
        is_quantized = precision in ("int4", "int8")
        has_source = not is_quantized and network not in _UNLIKE_SOURCE
        runs = converse(name, model, path, is_quantized, has_source)
        usual = _HALF if provider != "cpu" else _QUANTIZED if is_quantized else TOLERANCE
        return Exported(path, runs, tolerance or usual, is_peer_rounding=is_quantized)

    return Case(f"genai/{name}", EXPORTER, make)


def list_cases():
    for network in _NETWORKS:
        yield _make(network, network, "fp32", ())
        yield _make(f"{network}_4_bits", network, "int4", ())
    for name, entry in _OPTIONS.items():
        yield _make(name, *entry)
