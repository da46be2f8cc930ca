// Exchange between threads.

// The value of the thread whose lane differs by `mask`.
template <typename T> FN T shuffle_xor(T x, int mask) { return __shfl_xor_sync(~0u, x, mask); }
FN bool shuffle_xor(bool x, int mask) { return __shfl_xor_sync(~0u, (int)x, mask) != 0; }
