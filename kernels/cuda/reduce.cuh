// Exchange between threads.

// The value of the thread whose lane differs by `mask`.
template <typename T> FN T shuffle_xor(T x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
FN bool shuffle_xor(bool x, int mask) { return __shfl_xor_sync(~0u, (int)x, mask) != 0; }
// The value of the thread `distance` lanes below, or the own one where there is none.
template <typename T> FN T shuffle_up(T x, int distance) {
  return __shfl_up_sync(~0u, x, distance);
}
// The value of the thread at a lane, taken modulo the warp's size.
template <typename T> FN T shuffle_from(T x, int lane) { return __shfl_sync(~0u, x, lane); }
