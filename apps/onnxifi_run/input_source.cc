// SPDX-License-Identifier: Apache-2.0
//
// Named files first, then files by position, then the generator.

#include "apps/onnxifi_run/input_source.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <random>

#include "apps/onnxifi_run/array_file.h"
#include "apps/onnxifi_run/image_file.h"

namespace onnxifi::run {
namespace {

namespace fs = std::filesystem;
using onnx_file::DenseTensor;
using onnx_file::ElementType;
using onnx_file::ModelOutline;
using onnx_file::ValueOutline;

base::Status Refuse(base::Code code, std::string sentence) {
  return base::Status(code, std::move(sentence));
}

struct GivenFile {
  // Empty where the file or its place says it.
  std::string name;
  fs::path path;
};

// Splits NAME=FILE and spreads folders out into their input_I.pb. For a model without inputs a
// folder may have none.
base::Result<std::vector<GivenFile>> ListFiles(const std::vector<std::string>& inputs,
                                               bool has_inputs) {
  std::vector<GivenFile> files;
  for (const std::string& input : inputs) {
    std::error_code error;
    if (fs::is_directory(input, error)) {
      for (int index = 0;; ++index) {
        const fs::path path = fs::path(input) / fmt::format("input_{}.pb", index);
        if (!fs::exists(path, error)) {
          if (index > 0 || !has_inputs) break;
          return Refuse(base::Code::kInvalidName,
                        fmt::format("Folder '{}' has no file input_0.pb.", input));
        }
        files.push_back({.name = {}, .path = path});
      }
      continue;
    }
    const size_t equals = fs::exists(input, error) ? std::string::npos : input.find('=');
    if (equals == std::string::npos) {
      files.push_back({.name = {}, .path = input});
    } else {
      files.push_back({.name = input.substr(0, equals), .path = input.substr(equals + 1)});
    }
  }
  return files;
}

base::Result<DenseTensor> ReadGiven(const fs::path& path, const ValueOutline& wanted) {
  if (path.extension() == ".png") return ReadImage(path, wanted);
  if (path.extension() == ".npy") {
    ONNXIFI_ASSIGN_OR_RETURN(const std::vector<std::byte> content, onnx_file::ReadFile(path));
    base::Result<DenseTensor> array = ParseArray(content);
    if (!array.ok()) {
      return std::move(array).status().Context(fmt::format("while reading '{}'", path.string()));
    }
    return array;
  }
  return onnx_file::ReadTensorFile(path);
}

// The input that a file is for: the one it is given for, the one named inside a .pb, or the first
// that has none yet.
base::Result<size_t> PlaceOf(const GivenFile& file, const ModelOutline& model,
                             const std::vector<std::optional<DenseTensor>>& given) {
  std::string name = file.name;
  if (name.empty() && file.path.extension() == ".pb") {
    ONNXIFI_ASSIGN_OR_RETURN(const DenseTensor tensor, onnx_file::ReadTensorFile(file.path));
    const bool is_known =
        std::ranges::find(model.inputs, tensor.name, &ValueOutline::name) != model.inputs.end();
    if (is_known) name = tensor.name;
  }
  if (name.empty()) {
    const auto free = std::ranges::find_if(given, [](const auto& tensor) { return !tensor; });
    if (free == given.end()) {
      return Refuse(base::Code::kInvalidName,
                    fmt::format("The model has {} inputs; '{}' is one file more.",
                                model.inputs.size(), file.path.string()));
    }
    return static_cast<size_t>(free - given.begin());
  }
  const auto input = std::ranges::find(model.inputs, name, &ValueOutline::name);
  if (input == model.inputs.end()) {
    return Refuse(base::Code::kInvalidName, fmt::format("The model has no input '{}'.", name));
  }
  const auto place = static_cast<size_t>(input - model.inputs.begin());
  if (given[place]) {
    return Refuse(base::Code::kInvalidName, fmt::format("Input '{}' is given twice.", name));
  }
  return place;
}

// The bits of 0, 1/2, 1 and -1 in the 16-bit floats.
constexpr std::array<uint16_t, 4> kFloat16Values = {0x0000, 0x3800, 0x3C00, 0xBC00};
constexpr std::array<uint16_t, 4> kBfloat16Values = {0x0000, 0x3F00, 0x3F80, 0xBF80};

template <typename T, typename Draw>
void Fill(DenseTensor& tensor, int64_t count, Draw draw) {
  tensor.bytes.resize(static_cast<size_t>(count) * sizeof(T));
  for (int64_t index = 0; index < count; ++index) {
    const T value = draw();
    std::memcpy(tensor.bytes.data() + static_cast<size_t>(index) * sizeof(T), &value, sizeof(T));
  }
}

// Floats between -1 and 1; integers and bools 0 or 1, which are legal as indices of anything.
base::Status Draw(std::mt19937& generator, int64_t count, DenseTensor& tensor) {
  std::uniform_real_distribution<double> real(-1.0, 1.0);
  const auto bit = [&] { return static_cast<int>(generator() & 1); };
  switch (tensor.type) {
    case ElementType::kFloat32:
      Fill<float>(tensor, count, [&] { return static_cast<float>(real(generator)); });
      return base::Ok();
    case ElementType::kFloat64:
      Fill<double>(tensor, count, [&] { return real(generator); });
      return base::Ok();
    case ElementType::kFloat16:
      Fill<uint16_t>(tensor, count, [&] { return kFloat16Values[generator() % 4]; });
      return base::Ok();
    case ElementType::kBfloat16:
      Fill<uint16_t>(tensor, count, [&] { return kBfloat16Values[generator() % 4]; });
      return base::Ok();
    case ElementType::kBool:
    case ElementType::kInt8:
    case ElementType::kUint8:
      Fill<uint8_t>(tensor, count, bit);
      return base::Ok();
    case ElementType::kInt16:
    case ElementType::kUint16:
      Fill<uint16_t>(tensor, count, bit);
      return base::Ok();
    case ElementType::kInt32:
    case ElementType::kUint32:
      Fill<uint32_t>(tensor, count, bit);
      return base::Ok();
    case ElementType::kInt64:
    case ElementType::kUint64:
      Fill<uint64_t>(tensor, count, bit);
      return base::Ok();
    default:
      return Refuse(base::Code::kInvalidDatatype,
                    fmt::format("Input '{}' is of type {}, for which no random values are drawn.",
                                tensor.name, NameOf(tensor.type)));
  }
}

// A number for a symbol that the model does not have would change nothing.
base::Status CheckSymbols(const std::map<std::string, int64_t>& dims, const ModelOutline& model) {
  std::vector<std::string> symbols;
  for (const auto* values : {&model.inputs, &model.outputs}) {
    for (const ValueOutline& value : *values) {
      if (!value.shape) continue;
      for (const onnx_file::DimensionOutline& dimension : *value.shape) {
        if (dimension.symbol.empty() || std::ranges::count(symbols, dimension.symbol) > 0) continue;
        symbols.push_back(dimension.symbol);
      }
    }
  }
  for (const auto& [name, extent] : dims) {
    if (std::ranges::count(symbols, name) > 0) continue;
    return Refuse(
        base::Code::kInvalidName,
        fmt::format("No input or output has the symbolic extent '{}'; {}.", name,
                    symbols.empty() ? "the model has none"
                                    : fmt::format("there are: {}", fmt::join(symbols, ", "))));
  }
  return base::Ok();
}

base::Result<DenseTensor> DrawInput(const ValueOutline& input, const Options& options,
                                    std::mt19937& generator) {
  if (!input.shape) {
    return Refuse(base::Code::kInvalidShape,
                  fmt::format("Input '{}' is a tensor of unknown rank, for which no random values "
                              "are drawn.",
                              input.name));
  }
  DenseTensor tensor;
  tensor.name = input.name;
  tensor.type = input.type;
  for (const onnx_file::DimensionOutline& dimension : *input.shape) {
    const auto number = options.dims.find(dimension.symbol);
    tensor.extents.push_back(dimension.extent               ? *dimension.extent
                             : number != options.dims.end() ? number->second
                                                            : 1);
  }
  const std::optional<int64_t> count = onnx_file::ElementCount(tensor.extents);
  constexpr int64_t kMaxElements = int64_t{1} << 32;
  if (!count || *count > kMaxElements) {
    return Refuse(
        base::Code::kInvalidShape,
        fmt::format("Input '{}' of shape {} has more than the {} elements that are drawn.",
                    input.name, onnx_file::ToString(tensor.extents), kMaxElements));
  }
  ONNXIFI_RETURN_IF_ERROR(Draw(generator, *count, tensor));
  return tensor;
}

}  // namespace

base::Result<std::vector<DenseTensor>> CollectInputs(const Options& options,
                                                     const ModelOutline& model) {
  for (const ValueOutline& input : model.inputs) {
    if (input.kind == onnx_file::ValueKind::kTensor) continue;
    return Refuse(
        base::Code::kInvalidDatatype,
        fmt::format("Input '{}' has the kind {}; inputs are read and drawn as tensors alone.",
                    input.name, NameOf(input.kind)));
  }
  ONNXIFI_RETURN_IF_ERROR(CheckSymbols(options.dims, model));
  ONNXIFI_ASSIGN_OR_RETURN(const std::vector<GivenFile> files,
                           ListFiles(options.inputs, !model.inputs.empty()));
  std::vector<std::optional<DenseTensor>> given(model.inputs.size());
  // Named ones first, so that the others take the places that are left.
  for (const bool takes_named : {true, false}) {
    for (const GivenFile& file : files) {
      if (file.name.empty() == takes_named) continue;
      ONNXIFI_ASSIGN_OR_RETURN(const size_t place, PlaceOf(file, model, given));
      ONNXIFI_ASSIGN_OR_RETURN(DenseTensor tensor, ReadGiven(file.path, model.inputs[place]));
      tensor.name = model.inputs[place].name;
      given[place] = std::move(tensor);
    }
  }
  std::mt19937 generator(options.seed);
  std::vector<DenseTensor> inputs;
  for (size_t index = 0; index < given.size(); ++index) {
    if (given[index]) {
      inputs.push_back(*std::move(given[index]));
      continue;
    }
    ONNXIFI_ASSIGN_OR_RETURN(DenseTensor drawn, DrawInput(model.inputs[index], options, generator));
    inputs.push_back(std::move(drawn));
  }
  return inputs;
}

}  // namespace onnxifi::run
