/* SPDX-License-Identifier: Apache-2.0
 *
 * The statuses of ONNXIFI 1.0 as a list, from which programs make tables: names, texts,
 * enumerations. The numbers are those of <onnx/onnxifi.h>. Plain C89.
 */

#ifndef ONNXIFI_STATUSES_H_
#define ONNXIFI_STATUSES_H_

#include <onnx/onnxifi.h>

/* X(NAME, Name, meaning): NAME follows ONNXIFI_STATUS_, Name is the same in one word of a C++
 * enumeration, and meaning is what any library says by the status, for those that tell no sentence
 * of their own. Ordered by number. */
/* clang-format off */
#define ONNXIFI_SDK_STATUSES(X) \
  X(SUCCESS, Ok, "The call did what it was asked to do.") \
  X(FALLBACK, Fallback, "The call works, but with less than it could have: emulated operators, or a buffer that is too small.") \
  X(INVALID_ID, InvalidId, "The handle is no backend ID of this library.") \
  X(INVALID_SIZE, InvalidSize, "A size is 0, or smaller than the structure that it belongs to.") \
  X(INVALID_POINTER, InvalidPointer, "A pointer that the call needs is NULL.") \
  X(INVALID_PROTOBUF, InvalidProtobuf, "The bytes of the model are no serialised ModelProto.") \
  X(INVALID_MODEL, InvalidModel, "The model breaks a rule of ONNX.") \
  X(INVALID_BACKEND, InvalidBackend, "The handle is no live backend of this library.") \
  X(INVALID_GRAPH, InvalidGraph, "The handle is no live graph of this library.") \
  X(INVALID_EVENT, InvalidEvent, "The handle is no live event of this library.") \
  X(INVALID_STATE, InvalidState, "The object is in a state in which the call makes no sense.") \
  X(INVALID_NAME, InvalidName, "A descriptor has no name, or one that the graph does not know.") \
  X(INVALID_SHAPE, InvalidShape, "A shape is no shape that a tensor can have.") \
  X(INVALID_DATATYPE, InvalidDatatype, "A number stands for no element type.") \
  X(INVALID_MEMORY_TYPE, InvalidMemoryType, "A number stands for no memory type.") \
  X(INVALID_MEMORY_LOCATION, InvalidMemoryLocation, "A buffer is NULL, misaligned or no memory of its type.") \
  X(INVALID_FENCE_TYPE, InvalidFenceType, "A number stands for no synchronisation type.") \
  X(INVALID_PROPERTY, InvalidProperty, "A property has a value that it cannot have.") \
  X(UNSUPPORTED_TAG, UnsupportedTag, "A descriptor or fence has a tag of another version of the interface.") \
  X(UNSUPPORTED_VERSION, UnsupportedVersion, "The IR or operator set version of the model is newer than the library.") \
  X(UNSUPPORTED_OPERATOR, UnsupportedOperator, "The device does not run an operator of the model.") \
  X(UNSUPPORTED_ATTRIBUTE, UnsupportedAttribute, "The device does not run an operator with this attribute, or does not know the query.") \
  X(UNSUPPORTED_SHAPE, UnsupportedShape, "The device does not run an operator with these shapes.") \
  X(UNSUPPORTED_DATATYPE, UnsupportedDatatype, "The device does not run an operator with these element types.") \
  X(UNSUPPORTED_MEMORY_TYPE, UnsupportedMemoryType, "The device cannot use memory of this type.") \
  X(UNSUPPORTED_FENCE_TYPE, UnsupportedFenceType, "The device cannot use fences of this type.") \
  X(UNSUPPORTED_PROPERTY, UnsupportedProperty, "The library does not know a property.") \
  X(UNIDENTIFIED_NAME, UnidentifiedName, "A descriptor names no input or output of the graph.") \
  X(MISMATCHING_SHAPE, MismatchingShape, "Two shapes that must agree do not.") \
  X(MISMATCHING_DATATYPE, MismatchingDatatype, "Two element types that must agree do not.") \
  X(NO_SYSTEM_MEMORY, NoSystemMemory, "The process has run out of memory.") \
  X(NO_DEVICE_MEMORY, NoDeviceMemory, "The device has run out of memory.") \
  X(NO_SYSTEM_RESOURCES, NoSystemResources, "The operating system refuses a thread, a file or the like.") \
  X(NO_DEVICE_RESOURCES, NoDeviceResources, "The device refuses a queue, a kernel or the like.") \
  X(BACKEND_UNAVAILABLE, BackendUnavailable, "The device or its driver does not answer, or is gone.") \
  X(INTERNAL_ERROR, InternalError, "The library has failed by a fault of its own.")
/* clang-format on */

#endif /* ONNXIFI_STATUSES_H_ */
