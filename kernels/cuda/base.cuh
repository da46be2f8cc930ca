// What every kernel's text begins with.
#pragma nv_diag_suppress 177  // Generated statements may turn out unused.
#define FN __device__ __forceinline__

// Sizes from memory, 16 bytes at a time.
template <class Sizes>
FN Sizes read_sizes(const Sizes* from) {
  constexpr int kPieces = sizeof(Sizes) / sizeof(uint4);
  static_assert(sizeof(Sizes) == kPieces * sizeof(uint4), "whole pieces");
  union {
    Sizes sizes;
    uint4 pieces[kPieces];
  } read;
#pragma unroll
  for (int i = 0; i < kPieces; ++i) read.pieces[i] = __ldg(reinterpret_cast<const uint4*>(from) + i);
  return read.sizes;
}
