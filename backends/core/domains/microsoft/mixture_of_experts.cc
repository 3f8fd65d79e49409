// SPDX-License-Identifier: Apache-2.0
//
// MoE and QMoE: each token goes through the k experts that its router's numbers rank first.
//   p = softmax(router_probs); w = the k largest of p, divided by their sum if so asked
//   y = sum over the k experts of w * (fc2 (activation(fc1 x + b1)) + b2)
// Each token gathers the weights of its experts. Devices multiply with the weights where they lie
// (program::MakeGatheredProducts), or have all experts compute all tokens where these are many.

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "backends/core/domains/microsoft/microsoft.h"
#include "backends/core/domains/microsoft/quantization.h"

namespace onnxifi::microsoft {
namespace {

// Positions of a layer's inputs; -1: the operator has no such input.
struct Layer {
  int weights, bias;
  int scales = -1, zero_points = -1;
  const char* bits = "";  // the attribute that tells another width than expert_weight_bits
};

struct Layers {
  Layer fc1, fc2, fc3;
  int router_weights = -1;
};

constexpr Layers kFloatLayers = {{2, 3}, {4, 5}, {6, 7}};
constexpr Layers kQuantizedLayers = {{2, 4, 3, 11, "fc1_expert_weight_bits"},
                                     {5, 7, 6, 12, "fc2_expert_weight_bits"},
                                     {8, 10, 9, 13, "fc3_expert_weight_bits"},
                                     14};

ElementType Wide(ElementType type) {
  return type == ElementType::kFloat16 || type == ElementType::kBfloat16 ? ElementType::kFloat32
                                                                         : type;
}

class Experts {
 public:
  Experts(Definition& d, const Layers& layers) : d_(d), layers_(layers), wide_(Wide(d.Type(0))) {}

  Status Define();

 private:
  Status Check();
  void Route();
  // What belongs to experts, [E, ...], of those that were chosen: [tokens, k, ...].
  Value OfExperts(Value value) const { return d_.Apply("Gather", {std::move(value), chosen_}); }
  Result<Value> Weights(const Layer& layer) const;  // [E, outputs, inputs] in `wide_`
  // x by the layer, [tokens, k, 1, outputs].
  Result<Value> Run(const Layer& layer, const Value& x) const;
  // Of fc1's result; `linear`: of fc3, empty where there is none.
  Result<Value> Activation(Value x, Value linear) const;
  Value SwiGlu(Value gate, Value linear) const;
  Value Widened(Value value, int input) const {
    return d_.Type(input) == wide_ ? value : d_.Cast(std::move(value), wide_);
  }
  Value Sum(Value value, std::vector<int64_t> axes) const {
    return d_.Apply("ReduceSum", {std::move(value), d_.Ints1D(std::move(axes))},
                    {{"keepdims", int64_t{0}}});
  }
  Value Bounded(Value value, const char* op_type, float bound) const {
    return d_.Apply(op_type, {std::move(value), d_.Scalar(bound, wide_)});
  }

  Definition& d_;
  const Layers& layers_;
  ElementType wide_;
  int64_t experts_ = 0, hidden_ = 0, k_ = 0;
  Value chosen_;   // int64 [tokens, k]
  Value factors_;  // [tokens, k]
};

Status Experts::Check() {
  ONNXIFI_ASSIGN_OR_RETURN(experts_, d_.NeedExtent(layers_.fc1.weights, 0));
  ONNXIFI_ASSIGN_OR_RETURN(hidden_, d_.NeedExtent(layers_.fc2.weights, 1));
  ONNXIFI_RETURN_IF_ERROR(d_.NeedRank(layers_.fc1.weights, 3));
  ONNXIFI_RETURN_IF_ERROR(d_.NeedRank(layers_.fc2.weights, 3));
  k_ = d_.Int("k");
  if (k_ < 1 || k_ > experts_) {
    return d_.Invalid("Attribute k is " + std::to_string(k_) + "; there are " +
                      std::to_string(experts_) + " experts.");
  }
  if (d_.Int("use_sparse_mixer") != 0) {
    return d_.Unsupported("Attribute use_sparse_mixer is " +
                          std::to_string(d_.Int("use_sparse_mixer")) +
                          "; experts are chosen by their softmax (0).");
  }
  const int64_t fusion = d_.Int("swiglu_fusion");
  if (fusion < 0 || fusion > 2) {
    return d_.Invalid("Attribute swiglu_fusion is " + std::to_string(fusion) +
                      "; there are 0, 1 and 2.");
  }
  const bool is_swiglu = d_.String("activation_type") == "swiglu";
  const bool has_fc3 = d_.Has(layers_.fc3.weights);
  if (is_swiglu && (fusion == 0) != has_fc3) {
    return d_.Invalid("Attribute swiglu_fusion is " + std::to_string(fusion) + " with" +
                      (has_fc3 ? "" : "out") + " fc3_experts_weights.");
  }
  const std::optional<int> rank = d_.Rank(0);
  if (!rank) return d_.UnsupportedShape("Input 0 has not a number of axes that is known.");
  if (*rank != 2 && *rank != 3) {
    return d_.Invalid("Input 0 has " + std::to_string(*rank) + " axes instead of 2 or 3.");
  }
  return base::Ok();
}

void Experts::Route() {
  const Value last = d_.Ints1D({-1});
  const Value probabilities = d_.Apply("Softmax", {Widened(d_.In(1), 1)}, {{"axis", int64_t{-1}}});
  const std::vector<Value> top =
      d_.ApplyAll("TopK", {probabilities, d_.Ints1D({k_})}, 2, {{"axis", int64_t{-1}}});
  chosen_ = top[1];
  const int weights = layers_.router_weights;
  const bool has_weights = weights >= 0 && d_.Has(weights);
  factors_ =
      has_weights
          ? Widened(d_.Apply("GatherElements", {d_.In(weights), chosen_}, {{"axis", int64_t{-1}}}),
                    weights)
          : top[0];
  // ONNX Runtime's kernel for quantized weights takes the softmax of the chosen numbers alone, and
  // leaves out what weighs nothing or less.
  if (d_.Int("normalize_routing_weights") != 0 || (weights >= 0 && !has_weights)) {
    const Value sum = d_.Apply("ReduceSum", {factors_, last});
    // Given weights may add up to nothing.
    const Value is_nothing = d_.Apply("Equal", {sum, d_.Scalar(0, wide_)});
    factors_ = d_.Div(factors_, d_.Apply("Where", {is_nothing, d_.Scalar(1, wide_), sum}));
  }
  if (has_weights) factors_ = d_.Apply("Relu", {factors_});
}

Result<Value> Experts::Weights(const Layer& layer) const {
  const Value weights = d_.In(layer.weights);
  if (layer.scales < 0) return Widened(weights, layer.weights);
  const int64_t bits =
      d_.HasAttribute(layer.bits) ? d_.Int(layer.bits) : d_.Int("expert_weight_bits");
  if (bits != 2 && bits != 4 && bits != 8) {
    return d_.Unsupported("Weights have " + std::to_string(bits) + " bits instead of 2, 4 or 8.");
  }
  if (!d_.Has(layer.scales)) return d_.Invalid("Quantized weights have no scales.");
  const std::optional<int> rank = d_.Rank(layer.scales);
  if (!rank) return d_.UnsupportedShape("Scales have not a number of axes that is known.");
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t row_bytes, d_.NeedExtent(layer.weights, 2));
  ONNXIFI_ASSIGN_OR_RETURN(const int64_t rows, d_.NeedExtent(layer.weights, 1));
  const int64_t width = row_bytes * 8 / bits;
  const bool is_blocked = *rank == 3;
  const int64_t block = is_blocked ? d_.Int("block_size") : width;
  if (*rank != 2 && *rank != 3) {
    return d_.Invalid("Scales have " + std::to_string(*rank) + " axes instead of 2 or 3.");
  }
  if (block < 1 || width % block != 0) {
    return d_.Invalid("Rows of " + std::to_string(width) + " weights are not of blocks of " +
                      std::to_string(block) + ".");
  }
  const Value scales = Widened(d_.In(layer.scales), layer.scales);
  Value zero_points;
  if (d_.Has(layer.zero_points)) {
    zero_points = d_.Slice(Unpack(d_, d_.In(layer.zero_points), bits), -1, 0,
                           is_blocked ? width / block : rows);
  } else {
    const Value middle = d_.Scalar(static_cast<double>(1 << (bits - 1)), ElementType::kUint8);
    zero_points = d_.Apply("Expand", {middle, d_.Apply("Shape", {scales})});
  }
  const auto in_blocks = [&](const Value& value) {
    return is_blocked ? value : d_.Unsqueeze(value, {-1});
  };
  return d_.Apply("DequantizeLinear",
                  {Unpack(d_, weights, bits), in_blocks(scales), in_blocks(zero_points)},
                  {{"axis", int64_t{2}}, {"block_size", block}});
}

Result<Value> Experts::Run(const Layer& layer, const Value& x) const {
  ONNXIFI_ASSIGN_OR_RETURN(const Value weights, Weights(layer));
  const Value product = d_.MatMul(x, d_.Transpose(OfExperts(weights), {0, 1, 3, 2}));
  if (!d_.Has(layer.bias)) return product;
  const Value bias = OfExperts(Widened(d_.In(layer.bias), layer.bias));
  return d_.Add(product, d_.Unsqueeze(bias, {-2}));
}

// gate * sigmoid(alpha * gate) * (linear + beta), both bounded by a limit if one is given.
Value Experts::SwiGlu(Value gate, Value linear) const {
  if (d_.HasAttribute("swiglu_limit")) {
    const float limit = d_.Float("swiglu_limit");
    gate = Bounded(std::move(gate), "Min", limit);
    linear = Bounded(Bounded(std::move(linear), "Min", limit), "Max", -limit);
  }
  const Value alpha = d_.Scalar(d_.Float("activation_alpha"), wide_);
  const Value beta = d_.Scalar(d_.Float("activation_beta"), wide_);
  const Value weight = d_.Apply("Sigmoid", {d_.Mul(alpha, gate)});
  return d_.Mul(d_.Mul(std::move(gate), weight), d_.Add(std::move(linear), beta));
}

Result<Value> Experts::Activation(Value x, Value linear) const {
  const std::string name = d_.String("activation_type");
  if (name == "swiglu") {
    if (!linear.empty()) return SwiGlu(std::move(x), std::move(linear));
    if (d_.Int("swiglu_fusion") == 1) {
      const auto every_second = [&](int64_t first) {
        return d_.Apply("Slice",
                        {x, d_.Ints1D({first}), d_.Ints1D({std::numeric_limits<int64_t>::max()}),
                         d_.Ints1D({-1}), d_.Ints1D({2})});
      };
      return SwiGlu(every_second(0), every_second(1));
    }
    const std::vector<Value> halves =
        d_.ApplyAll("Split", {x}, 2, {{"axis", int64_t{-1}}, {"num_outputs", int64_t{2}}});
    return SwiGlu(halves[0], halves[1]);
  }
  if (name == "relu") {
    x = d_.Apply("Relu", {std::move(x)});
  } else if (name == "gelu") {
    x = d_.Apply("Gelu", {std::move(x)}, {{"approximate", "tanh"}});
  } else if (name == "silu") {
    x = d_.Mul(x, d_.Apply("Sigmoid", {x}));
  } else if (name != "identity") {
    return d_.Invalid("Attribute activation_type is '" + name +
                      "'; there are relu, gelu, silu, swiglu and identity.");
  }
  return linear.empty() ? x : d_.Mul(std::move(x), std::move(linear));
}

Status Experts::Define() {
  ONNXIFI_RETURN_IF_ERROR(Check());
  Route();
  const Value rows = Widened(d_.Reshape(d_.In(0), {-1, hidden_}), 0);
  const Value x = d_.Unsqueeze(rows, {1, 2});  // [tokens, 1, 1, hidden]
  ONNXIFI_ASSIGN_OR_RETURN(Value hidden, Run(layers_.fc1, x));
  Value linear;
  if (d_.Has(layers_.fc3.weights)) {
    ONNXIFI_ASSIGN_OR_RETURN(linear, Run(layers_.fc3, x));
  }
  ONNXIFI_ASSIGN_OR_RETURN(hidden, Activation(std::move(hidden), std::move(linear)));
  ONNXIFI_ASSIGN_OR_RETURN(Value result, Run(layers_.fc2, hidden));
  const Value factors = d_.Unsqueeze(factors_, {2, 3});
  // Not a product by 0: what an expert that was not chosen computes may be infinite.
  const Value zero = d_.Scalar(0, wide_);
  const Value is_left_out = d_.Apply("Equal", {factors, zero});
  result = Sum(d_.Apply("Where", {is_left_out, zero, d_.Mul(result, factors)}), {1, 2});
  result = d_.ReshapeTo(result, d_.Apply("Shape", {d_.In(0)}));
  d_.Return(0, wide_ == d_.Type(0) ? result : d_.Cast(result, d_.Type(0)));
  return base::Ok();
}

Status DefineMoE(Definition& d) { return Experts(d, kFloatLayers).Define(); }

Status DefineQMoE(Definition& d) {
  if (d.String("quant_type") != "int") {
    return d.Unsupported("Attribute quant_type is '" + d.String("quant_type") +
                         "'; weights are integers ('int').");
  }
  if (d.Int("weights_prepacked") > 0) {
    return d.Unsupported("Attribute weights_prepacked is " +
                         std::to_string(d.Int("weights_prepacked")) +
                         "; weights are in the order of the standard (0, or -1 on a processor).");
  }
  // Weights of floats of 4 or 8 bits, and what scales them.
  for (const int weights :
       {kQuantizedLayers.fc1.weights, kQuantizedLayers.fc2.weights, kQuantizedLayers.fc3.weights}) {
    if (d.Has(weights) && d.Type(weights) != ElementType::kUint8) {
      return d.Unsupported("Input " + std::to_string(weights) + " is " +
                           std::string(tensor::Name(d.Type(weights))) +
                           "; weights are integers in uint8.");
    }
  }
  for (int input = kQuantizedLayers.router_weights + 1; input < d.input_count(); ++input) {
    if (!d.Has(input)) continue;
    return d.Unsupported("Input " + std::to_string(input) +
                         " scales floats of few bits; weights are integers.");
  }
  return Experts(d, kQuantizedLayers).Define();
}

constexpr model::DomainOperator kOperators[] = {
    {R"(MoE(input: T, router_probs: T, fc1_experts_weights: T, fc1_experts_bias?: T,
            fc2_experts_weights: T, fc2_experts_bias?: T, fc3_experts_weights?: T,
            fc3_experts_bias?: T) -> (output: T)
        activation_alpha: float = 1
        activation_beta: float = 0
        activation_type: string = relu
        k: int = 1
        normalize_routing_weights: int = 0
        swiglu_fusion: int = 0
        swiglu_limit: float
        use_sparse_mixer: int = 0
        T = float | float16 | bfloat16)",
     DefineMoE},
    {R"(QMoE(input: T, router_probs: T, fc1_experts_weights: T1, fc1_scales?: T2,
             fc1_experts_bias?: T, fc2_experts_weights: T1, fc2_scales?: T2, fc2_experts_bias?: T,
             fc3_experts_weights?: T1, fc3_scales?: T2, fc3_experts_bias?: T, fc1_zero_points?: T1,
             fc2_zero_points?: T1, fc3_zero_points?: T1, router_weights?: T, fc1_global_scale?: T4,
             fc2_global_scale?: T4, fc1_act_scale?: T4, fc2_act_scale?: T4,
             fc1_act_block_scale?: T2, fc2_act_block_scale?: T2) -> (output: T)
        accuracy_level: int = 0
        activation_alpha: float = 1
        activation_beta: float = 0
        activation_type: string = relu
        block_size: int
        expert_weight_bits: int = 4
        fc1_expert_weight_bits: int
        fc2_expert_weight_bits: int
        fc3_expert_weight_bits: int
        k: int = 1
        normalize_routing_weights: int = 0
        quant_type: string = int
        swiglu_fusion: int = 0
        swiglu_limit: float
        use_sparse_mixer: int = 0
        weights_prepacked: int = -1
        T = float | float16 | bfloat16
        T1 = uint8 | float8e4m3fn
        T2 = float | float16 | bfloat16 | float8e8m0 | float8e4m3fn
        T4 = float)",
     DefineQMoE},
};

}  // namespace

std::span<const model::DomainOperator> MixtureOfExpertsOperators() { return kOperators; }

}  // namespace onnxifi::microsoft
