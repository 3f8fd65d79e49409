# SPDX-License-Identifier: Apache-2.0
"""Attributes, inputs and outputs of declared operators that no case gives, because a definition refuses them or because
they have no effect. `make_domain_cases.py` holds the cases against this list: all others stand in one."""

from domains import declarations

_REFUSED = {
    "BiasDropout": "training_mode",
    "CausalConvWithState": "ndim",
    "ConvTransposeWithDynamicPads": "auto_pad",
    "GatedDeltaNet": "state_update_capacity capture_count state_update_active state_update",
    "GatedRelativePositionBias": "token_offset",
    "MatMulNBits": "weight_prepacked",
    "MoE": "use_sparse_mixer",
    "PagedAttention": "kv_cache_layout rotary_offset v_head_size",
    "QAttention": "past_present_share_buffer",
    "QMoE": "fc1_expert_weight_bits fc2_expert_weight_bits fc3_expert_weight_bits quant_type use_sparse_mixer"
    " weights_prepacked fc3_experts_weights fc3_scales fc3_experts_bias fc3_zero_points fc1_global_scale"
    " fc2_global_scale fc1_act_scale fc2_act_scale fc1_act_block_scale fc2_act_block_scale",
    "SimplifiedLayerNormalization": "inv_std_var",
    "SkipLayerNormalization": "mean inv_std_var",
    "SkipSimplifiedLayerNormalization": "mean inv_std_var",
}
_WITHOUT_EFFECT = {
    "BiasDropout": "seed",
    "PackedMultiHeadAttention": "mask_filter_value",
}


def names_of(node, declaration):
    """What a node gives of its declaration (declarations.read_declarations), by name."""
    inputs, outputs, _ = declaration
    given = {attribute.name for attribute in node.attribute}
    for declared, values in ((inputs, node.input), (outputs, node.output)):
        given |= {name for (name, *_), value in zip(declared, values) if value}
    return given


def find_gaps(nodes):
    """Sentences about what `nodes`, those of all cases, do not give and should, or the reverse."""
    declared = declarations.read_declarations()
    given = {op_type: set() for op_type in declared}
    for node in nodes:
        key = declarations.operator_key(node.domain, node.op_type)
        if key in declared:
            given[key] |= names_of(node, declared[key])
    gaps = []
    for op_type, (inputs, outputs, attributes) in declared.items():
        known = {name for table in (_REFUSED, _WITHOUT_EFFECT) for name in table.get(op_type, "").split()}
        wanted = {name for name, *_ in (*inputs, *outputs)} | set(attributes)
        gaps += [f"No case of {op_type} gives {name}." for name in sorted(wanted - given[op_type] - known)]
        gaps += [f"A case of {op_type} gives {name}." for name in sorted(given[op_type] & known)]
    return gaps
