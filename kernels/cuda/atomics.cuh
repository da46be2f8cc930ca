// Atomic combination of an element with a value; `F` maps (old, value) to the new element.
struct Plus {
  static FN float of(float a, float b) { return a + b; }
  static FN double of(double a, double b) { return a + b; }
  template <typename T> static FN T of(T a, T b) { return wrap_add(a, b); }
};
struct Times {
  static FN float of(float a, float b) { return a * b; }
  static FN double of(double a, double b) { return a * b; }
  template <typename T> static FN T of(T a, T b) { return wrap_mul(a, b); }
};
struct Larger {
  template <typename T> static FN T of(T a, T b) { return larger(a, b); }
};
struct Smaller {
  template <typename T> static FN T of(T a, T b) { return smaller(a, b); }
};
FN bool combine(bool a, bool b, Plus) { return a || b; }
FN bool combine(bool a, bool b, Times) { return a && b; }
FN bool combine(bool a, bool b, Larger) { return a || b; }
FN bool combine(bool a, bool b, Smaller) { return a && b; }
template <typename T, typename F> FN T combine(T a, T b, F) { return F::of(a, b); }

// Elements of 4 or 8 bytes are exchanged as a whole, smaller ones within their 4 bytes.
template <typename F, typename T, typename X> FN void atomic_update(T* address, X value, F f) {
  if constexpr (sizeof(T) == 8) {
    unsigned long long* at = (unsigned long long*)address;
    unsigned long long seen = *at, old;
    do {
      old = seen;
      T element = narrow<T>(combine(widen(*(T*)&old), value, f));
      seen = atomicCAS(at, old, *(unsigned long long*)&element);
    } while (seen != old);
  } else {
    unsigned long long where = (unsigned long long)address;
    unsigned* at = (unsigned*)(where & ~3ull);
    const unsigned shift = (unsigned)(where & 3) * 8;
    const unsigned mask = sizeof(T) == 4 ? ~0u : ((1u << 8 * (sizeof(T) & 3)) - 1) << shift;
    unsigned seen = *at, old;
    do {
      old = seen;
      unsigned bits = (old & mask) >> shift;
      T element = narrow<T>(combine(widen(*(T*)&bits), value, f));
      bits = 0;
      *(T*)&bits = element;
      seen = atomicCAS(at, old, (old & ~mask) | bits << shift);
    } while (seen != old);
  }
}
template <typename T, typename X> FN void atomic_plus(T* at, X value) {
  atomic_update(at, value, Plus());
}
FN void atomic_plus(float* at, float value) { atomicAdd(at, value); }
FN void atomic_plus(double* at, double value) { atomicAdd(at, value); }
FN void atomic_plus(int* at, int value) { atomicAdd(at, value); }
FN void atomic_plus(unsigned* at, unsigned value) { atomicAdd(at, value); }
FN void atomic_plus(unsigned long long* at, unsigned long long value) { atomicAdd(at, value); }
FN void atomic_plus(long long* at, long long value) {
  atomicAdd((unsigned long long*)at, (unsigned long long)value);
}

// Writes element `at` of packed elements; `last` says that no element follows it: the rest of its byte becomes 0.
template <int BITS> FN void store_packed(unsigned char* x, long long at, unsigned code, bool last) {
  constexpr int PER_BYTE = 8 / BITS;
  unsigned long long where = (unsigned long long)x + (unsigned long long)(at / PER_BYTE);
  unsigned* word = (unsigned*)(where & ~3ull);
  const unsigned low = (unsigned)(at % PER_BYTE) * BITS;
  const unsigned shift = (unsigned)(where & 3) * 8 + low;
  const unsigned mask = last ? 255u >> low : (1u << BITS) - 1;
  atomicAnd(word, ~(mask << shift));
  atomicOr(word, code << shift);
}
