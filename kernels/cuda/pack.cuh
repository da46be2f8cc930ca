// Several consecutive elements as one access of 2, 4, 8 or 16 bytes, aligned to its size.
template <int bytes> struct Word;
template <> struct Word<1> { typedef unsigned char type; };
template <> struct Word<2> { typedef unsigned short type; };
template <> struct Word<4> { typedef unsigned type; };
template <> struct Word<8> { typedef uint2 type; };
template <> struct Word<16> { typedef uint4 type; };

template <typename T, int n> union Pack {
  T at[n];
  typename Word<sizeof(T) * n>::type word;
};

template <int n, typename T> FN Pack<T, n> zero_pack() {
  Pack<T, n> r;
  r.word = typename Word<sizeof(T) * n>::type{};
  return r;
}
template <int n, typename T> FN Pack<T, n> load_pack(T* x) {
  Pack<T, n> r;
  r.word = *(const typename Word<sizeof(T) * n>::type*)x;
  return r;
}
// Through the read-only path: nothing writes there while the kernel runs.
template <int n, typename T> FN Pack<T, n> load_pack(const T* x) {
  Pack<T, n> r;
  r.word = __ldg((const typename Word<sizeof(T) * n>::type*)x);
  return r;
}
template <int n, typename T> FN void store_pack(T* x, const Pack<T, n>& r) {
  *(typename Word<sizeof(T) * n>::type*)x = r.word;
}
template <typename T> FN T load_one(const T* x) { return load_pack<1>(x).at[0]; }
template <typename T> FN T load_one(T* x) { return *x; }
