// SPDX-License-Identifier: Apache-2.0
//
// SmallVector: a vector that keeps up to N elements inside itself, and only longer lists on the
// heap. What shapes, strides and lists of expressions are kept in: a claim about a node makes
// dozens of them, nearly all of a handful of elements, and allocating each would cost more than the
// answer.

#ifndef ONNXIFI_BACKENDS_CORE_BASE_SMALL_VECTOR_H_
#define ONNXIFI_BACKENDS_CORE_BASE_SMALL_VECTOR_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <type_traits>
#include <utility>

namespace onnxifi::base {

// What does not depend on the type of the elements. Elements lie at elements_, which points into
// the object itself while there is room.
class SmallVectorStorage {
 protected:
  SmallVectorStorage(void* own, size_t own_count)
      : elements_(own), capacity_(static_cast<uint32_t>(own_count)) {}

  // Moves the elements to memory for `count` or more; `own` is that inside the object. Throws
  // std::bad_alloc.
  void Grow(size_t count, size_t element_bytes, void* own);
  void Free();

  void* elements_;
  uint32_t size_ = 0;
  uint32_t capacity_;
};

// As std::vector: iterators are pointers, valid until the vector grows or moves. Elements are plain
// values, which copying their bytes copies.
template <typename T, size_t N>
class SmallVector : private SmallVectorStorage {
  static_assert(N > 0 && std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  using value_type = T;
  using size_type = size_t;
  using difference_type = ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using iterator = T*;
  using const_iterator = const T*;
  using reverse_iterator = std::reverse_iterator<T*>;
  using const_reverse_iterator = std::reverse_iterator<const T*>;

  SmallVector() : SmallVectorStorage(own_, N) {}
  explicit SmallVector(size_t count, T value = T()) : SmallVector() { assign(count, value); }
  SmallVector(std::initializer_list<T> values) : SmallVector() {
    assign(values.begin(), values.end());
  }
  template <std::forward_iterator It>
  SmallVector(It first, It last) : SmallVector() {
    assign(first, last);
  }
  SmallVector(const SmallVector& other) : SmallVector() { CopyFrom(other); }
  SmallVector(SmallVector&& other) noexcept : SmallVector() { TakeFrom(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) CopyFrom(other);
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) TakeFrom(other);
    return *this;
  }
  ~SmallVector() {
    if (!is_own()) Free();
  }

  T* data() { return static_cast<T*>(elements_); }
  const T* data() const { return static_cast<const T*>(elements_); }
  size_t size() const { return size_; }
  size_t capacity() const { return capacity_; }
  bool empty() const { return size_ == 0; }

  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  const T* cbegin() const { return begin(); }
  const T* cend() const { return end(); }
  reverse_iterator rbegin() { return reverse_iterator(end()); }
  reverse_iterator rend() { return reverse_iterator(begin()); }
  const_reverse_iterator rbegin() const { return const_reverse_iterator(end()); }
  const_reverse_iterator rend() const { return const_reverse_iterator(begin()); }

  T& operator[](size_t index) { return data()[index]; }
  const T& operator[](size_t index) const { return data()[index]; }
  T& front() { return data()[0]; }
  const T& front() const { return data()[0]; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void reserve(size_t count) {
    if (count > capacity_) Grow(count, sizeof(T), own_);
  }
  void clear() { size_ = 0; }
  void resize(size_t count, T value = T()) {
    reserve(count);
    if (count > size_) std::uninitialized_fill(end(), data() + count, value);
    size_ = static_cast<uint32_t>(count);
  }
  // By value: what is given may lie in this vector.
  void push_back(T value) {
    if (size_ == capacity_) Grow(size_t{size_} + 1, sizeof(T), own_);
    std::construct_at(end(), value);
    ++size_;
  }
  template <typename... Args>
  T& emplace_back(Args&&... args) {
    push_back(T(std::forward<Args>(args)...));
    return back();
  }
  void pop_back() { --size_; }

  void assign(size_t count, T value) {
    clear();
    resize(count, value);
  }
  // The elements given are not of this vector.
  template <std::forward_iterator It>
  void assign(It first, It last) {
    clear();
    const auto count = static_cast<size_t>(std::distance(first, last));
    reserve(count);
    std::uninitialized_copy(first, last, data());
    size_ = static_cast<uint32_t>(count);
  }
  void assign(std::initializer_list<T> values) { assign(values.begin(), values.end()); }

  T* insert(const T* position, T value) { return insert(position, size_t{1}, value); }
  T* insert(const T* position, size_t count, T value) {
    T* gap = OpenGap(position, count);
    std::uninitialized_fill(gap, gap + count, value);
    return gap;
  }
  // The elements given are not of this vector.
  template <std::forward_iterator It>
  T* insert(const T* position, It first, It last) {
    T* gap = OpenGap(position, static_cast<size_t>(std::distance(first, last)));
    std::uninitialized_copy(first, last, gap);
    return gap;
  }
  T* insert(const T* position, std::initializer_list<T> values) {
    return insert(position, values.begin(), values.end());
  }
  T* erase(const T* position) { return erase(position, position + 1); }
  T* erase(const T* first, const T* last) {
    T* to = begin() + (first - begin());
    std::copy(last, cend(), to);
    size_ -= static_cast<uint32_t>(last - first);
    return to;
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  bool is_own() const { return elements_ == own_; }

  // Whatever the number of elements, N are copied where they fit: no vector has memory for fewer,
  // and a copy of constant size is a few instructions.
  void CopyFrom(const SmallVector& other) {
    size_ = 0;
    if (other.size_ > N) {
      reserve(other.size_);
      std::memcpy(elements_, other.elements_, size_t{other.size_} * sizeof(T));
    } else {
      std::memcpy(elements_, other.elements_, sizeof(own_));
    }
    size_ = other.size_;
  }
  void TakeFrom(SmallVector& other) {
    if (other.is_own()) {
      std::memcpy(elements_, other.elements_, sizeof(own_));
    } else {
      if (!is_own()) Free();
      elements_ = std::exchange(other.elements_, other.own_);
      capacity_ = std::exchange(other.capacity_, static_cast<uint32_t>(N));
    }
    size_ = std::exchange(other.size_, 0);
  }
  // Makes room for `count` elements before `position`, which are not initialised yet.
  T* OpenGap(const T* position, size_t count) {
    const size_t index = static_cast<size_t>(position - begin());
    reserve(size_ + count);
    T* gap = data() + index;
    std::memmove(static_cast<void*>(gap + count), gap, (size_ - index) * sizeof(T));
    size_ += static_cast<uint32_t>(count);
    return gap;
  }

  alignas(T) std::byte own_[N * sizeof(T)] = {};
};

}  // namespace onnxifi::base

#endif  // ONNXIFI_BACKENDS_CORE_BASE_SMALL_VECTOR_H_
