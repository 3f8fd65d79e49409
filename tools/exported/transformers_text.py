# SPDX-License-Identifier: Apache-2.0
"""Text networks of the transformers package: encoders, decoders, and both together."""

from exported.torch_export import cases
from exported.transformers_subject import make_text

ENCODER = {
    "vocab_size": 101,
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}
DECODER = {**ENCODER, "use_cache": False, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
GROUPED = {**DECODER, "num_key_value_heads": 2}
THREE = ("input_ids", "attention_mask", "token_type_ids")
BOTH = ("input_ids", "attention_mask", "decoder_input_ids")

_ENCODERS = {
    "bert": ("BertConfig", "BertModel", ENCODER, THREE),
    "albert": ("AlbertConfig", "AlbertModel", {**ENCODER, "embedding_size": 16}),
    "roberta": ("RobertaConfig", "RobertaModel", {**ENCODER, "pad_token_id": 1}),
    "electra": ("ElectraConfig", "ElectraModel", {**ENCODER, "embedding_size": 16}),
    "distilbert": (
        "DistilBertConfig",
        "DistilBertModel",
        {"vocab_size": 101, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48},
    ),
    "deberta": (
        "DebertaConfig",
        "DebertaModel",
        {
            **ENCODER,
            "relative_attention": True,
            "pos_att_type": ["c2p", "p2c"],
            "max_relative_positions": 16,
        },
    ),
    "deberta_v2": (
        "DebertaV2Config",
        "DebertaV2Model",
        {
            **ENCODER,
            "relative_attention": True,
            "pos_att_type": ["c2p", "p2c"],
            "position_buckets": 8,
            "max_relative_positions": 16,
            "share_att_key": True,
        },
    ),
    "mpnet": ("MPNetConfig", "MPNetModel", ENCODER),
    "fnet": ("FNetConfig", "FNetModel", ENCODER, ("input_ids", "token_type_ids")),
    "squeezebert": (
        "SqueezeBertConfig",
        "SqueezeBertModel",
        {**ENCODER, "embedding_size": 32},
        THREE,
    ),
    "mobilebert": (
        "MobileBertConfig",
        "MobileBertModel",
        {**ENCODER, "embedding_size": 16, "intra_bottleneck_size": 16, "true_hidden_size": 16},
        THREE,
    ),
    "roformer": ("RoFormerConfig", "RoFormerModel", {**ENCODER, "embedding_size": 32}),
    "convbert": ("ConvBertConfig", "ConvBertModel", {**ENCODER, "embedding_size": 16}),
    "nystromformer": (
        "NystromformerConfig",
        "NystromformerModel",
        {**ENCODER, "num_landmarks": 3, "segment_means_seq_len": 9},
    ),
    "nomic_bert": ("NomicBertConfig", "NomicBertModel", ENCODER),
    "esm": ("EsmConfig", "EsmModel", {**ENCODER, "pad_token_id": 1, "position_embedding_type": "rotary"}),
    "modernbert": (
        "ModernBertConfig",
        "ModernBertModel",
        {
            **ENCODER,
            "local_attention": 8,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "cls_token_id": 1,
            "sep_token_id": 2,
        },
    ),
    "xlm": (
        "XLMConfig",
        "XLMModel",
        {"vocab_size": 101, "emb_dim": 32, "n_layers": 2, "n_heads": 4, "dropout": 0.0},
    ),
    "longformer": (
        "LongformerConfig",
        "LongformerModel",
        {**ENCODER, "attention_window": 4, "pad_token_id": 1},
    ),
    "funnel": (
        "FunnelConfig",
        "FunnelModel",
        {
            "vocab_size": 101,
            "block_sizes": [1, 1],
            "d_model": 32,
            "n_head": 4,
            "d_head": 8,
            "d_inner": 48,
            "num_decoder_layers": 1,
        },
    ),
}

_DECODERS = {
    "gpt2": (
        "GPT2Config",
        "GPT2LMHeadModel",
        {"vocab_size": 101, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64},
    ),
    "gpt_neo": (
        "GPTNeoConfig",
        "GPTNeoForCausalLM",
        {
            "vocab_size": 101,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
            "max_position_embeddings": 64,
        },
    ),
    "gpt_neox": ("GPTNeoXConfig", "GPTNeoXForCausalLM", DECODER),
    "gptj": (
        "GPTJConfig",
        "GPTJForCausalLM",
        {"vocab_size": 101, "n_embd": 32, "n_layer": 2, "n_head": 4, "rotary_dim": 4},
    ),
    "opt": (
        "OPTConfig",
        "OPTForCausalLM",
        {**DECODER, "ffn_dim": 48, "word_embed_proj_dim": 16},
    ),
    "bloom": (
        "BloomConfig",
        "BloomForCausalLM",
        {"vocab_size": 101, "hidden_size": 32, "n_layer": 2, "n_head": 4},
    ),
    "llama": ("LlamaConfig", "LlamaForCausalLM", GROUPED),
    "mistral": ("MistralConfig", "MistralForCausalLM", {**GROUPED, "sliding_window": 5}),
    "qwen2": ("Qwen2Config", "Qwen2ForCausalLM", GROUPED),
    "qwen3": ("Qwen3Config", "Qwen3ForCausalLM", {**GROUPED, "head_dim": 8}),
    "phi": ("PhiConfig", "PhiForCausalLM", {**DECODER, "partial_rotary_factor": 0.5}),
    "phi3": ("Phi3Config", "Phi3ForCausalLM", GROUPED),
    "gemma": ("GemmaConfig", "GemmaForCausalLM", {**GROUPED, "head_dim": 8}),
    "gemma2": (
        "Gemma2Config",
        "Gemma2ForCausalLM",
        {**GROUPED, "head_dim": 8, "sliding_window": 5, "query_pre_attn_scalar": 8},
    ),
    "falcon": ("FalconConfig", "FalconForCausalLM", {**DECODER, "alibi": False}),
    "stablelm": ("StableLmConfig", "StableLmForCausalLM", GROUPED),
    "starcoder2": ("Starcoder2Config", "Starcoder2ForCausalLM", GROUPED),
    "cohere": ("CohereConfig", "CohereForCausalLM", GROUPED),
    "olmo2": ("Olmo2Config", "Olmo2ForCausalLM", GROUPED),
    "granite": ("GraniteConfig", "GraniteForCausalLM", GROUPED),
    "mixtral": (
        "MixtralConfig",
        "MixtralForCausalLM",
        {**GROUPED, "num_local_experts": 4, "num_experts_per_tok": 2},
    ),
    "gemma3": (
        "Gemma3TextConfig",
        "Gemma3ForCausalLM",
        {**GROUPED, "head_dim": 8, "sliding_window": 5, "query_pre_attn_scalar": 8,
         "layer_types": ["sliding_attention", "full_attention"]},
    ),
    "glm4": ("Glm4Config", "Glm4ForCausalLM", {**GROUPED, "head_dim": 8}),
    "exaone4": ("Exaone4Config", "Exaone4ForCausalLM", {**GROUPED, "sliding_window": 5}),
    "smollm3": ("SmolLM3Config", "SmolLM3ForCausalLM", GROUPED),
    "helium": ("HeliumConfig", "HeliumForCausalLM", {**GROUPED, "head_dim": 8}),
    "diffllama": ("DiffLlamaConfig", "DiffLlamaForCausalLM", GROUPED),
    "bitnet": ("BitNetConfig", "BitNetForCausalLM", GROUPED),
    "lfm2": (
        "Lfm2Config",
        "Lfm2ForCausalLM",
        {**GROUPED, "layer_types": ["conv", "full_attention"], "block_auto_adjust_ff_dim": False},
    ),
    "mamba2": (
        "Mamba2Config",
        "Mamba2ForCausalLM",
        {"vocab_size": 101, "hidden_size": 32, "state_size": 4, "num_hidden_layers": 2, "num_heads": 8,
         "head_dim": 8, "n_groups": 1, "chunk_size": 8, "use_cache": False},
        ("input_ids",),
    ),
    "mamba": (
        "MambaConfig",
        "MambaForCausalLM",
        {
            "vocab_size": 101,
            "hidden_size": 32,
            "state_size": 4,
            "num_hidden_layers": 2,
            "use_cache": False,
            "use_mambapy": False,
        },
        ("input_ids",),
    ),
    "zamba2": (
        "Zamba2Config",
        "Zamba2ForCausalLM",
        {**GROUPED, "mamba_d_state": 4, "mamba_headdim": 8, "n_mamba_heads": 8, "chunk_size": 8,
         "num_mem_blocks": 1, "layers_block_type": ["mamba", "hybrid"], "mamba_ngroups": 1},
    ),
    "jetmoe": (
        "JetMoeConfig",
        "JetMoeForCausalLM",
        {**DECODER, "num_key_value_heads": 2, "kv_channels": 8, "num_local_experts": 4,
         "num_experts_per_tok": 2},
    ),
    "xlstm": (
        "xLSTMConfig",
        "xLSTMForCausalLM",
        {"vocab_size": 101, "hidden_size": 32, "num_hidden_layers": 2, "num_heads": 4,
         "use_cache": False, "chunk_size": 8, "chunkwise_kernel": "chunkwise--native_autograd",
         "sequence_kernel": "native_sequence__native", "step_kernel": "native"},
        ("input_ids",),
    ),
    "rwkv": (
        "RwkvConfig",
        "RwkvForCausalLM",
        {"vocab_size": 101, "hidden_size": 32, "num_hidden_layers": 2, "use_cache": False},
        ("input_ids",),
    ),
}

SEQUENCE = {
    "vocab_size": 101,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "use_cache": False,
}
T5 = {"vocab_size": 101, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4,
       "relative_attention_num_buckets": 8, "relative_attention_max_distance": 12,
       "use_cache": False, "decoder_start_token_id": 0}  # fmt: skip

_BOTH_SIDES = {
    "longt5": (
        "LongT5Config",
        "LongT5ForConditionalGeneration",
        {**T5, "local_radius": 4, "global_block_size": 4, "encoder_attention_type": "transient-global"},
        BOTH,
    ),
    "t5": ("T5Config", "T5ForConditionalGeneration", T5, BOTH),
    "mt5": ("MT5Config", "MT5ForConditionalGeneration", T5, BOTH),
    "bart": ("BartConfig", "BartForConditionalGeneration", SEQUENCE, BOTH),
    "pegasus": ("PegasusConfig", "PegasusForConditionalGeneration", SEQUENCE, BOTH),
    "marian": (
        "MarianConfig",
        "MarianMTModel",
        {**SEQUENCE, "decoder_vocab_size": 101, "decoder_start_token_id": 0},
        BOTH,
    ),
    "m2m_100": ("M2M100Config", "M2M100ForConditionalGeneration", SEQUENCE, BOTH),
}

# What else the networks are called with.
_FIXED = {
    "bloom": {"use_cache": False},
    "falcon": {"use_cache": False},
    "gpt2": {"use_cache": False},
    "gpt_neo": {"use_cache": False},
    "gptj": {"use_cache": False},
    "nystromformer": {"sizes": ((2, 9), (3, 9))},
}


def list_cases():
    for name, entry in {**_ENCODERS, **_DECODERS, **_BOTH_SIDES}.items():
        yield from cases(f"transformers/{name}", make_text(name, *entry, **_FIXED.get(name, {})))
