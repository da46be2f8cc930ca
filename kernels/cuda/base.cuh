// What every kernel's text begins with.
#pragma nv_diag_suppress 177  // Generated statements may turn out unused.
#define FN __device__ __forceinline__

// Waits until the launch before is done and its results can be read, where this one may begin earlier.
FN void wait_for_launch_before() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// Lets the launch after begin once all blocks have called this or are done; it waits for results itself.
FN void let_launch_after_begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;");
#endif
}

// Tells the host that this launch has begun and those before it are done: the first thread of the first block does. One
// instruction to the compiler, which knows nothing of it that would change its choices for the rest of the kernel.
FN void tell_progress(unsigned long long* progress, unsigned long long number) {
#if defined(__CUDA_ARCH__)
  asm volatile(
      "{\n"
      ".reg .pred first;\n"
      ".reg .b32 block, thread;\n"
      "mov.u32 block, %%ctaid.x;\n"
      "mov.u32 thread, %%tid.x;\n"
      "or.b32 block, block, thread;\n"
      "setp.eq.u32 first, block, 0;\n"
      "@first st.volatile.global.u64 [%0], %1;\n"
      "}" ::"l"(progress),
      "l"(number));
#else
  if (blockIdx.x == 0 && threadIdx.x == 0) *progress = number;
#endif
}

// Asks for this block's share of what lies there, so that the GPU's cache has it once the wait is over.
FN void prefetch_share(const void* from, long long bytes) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  constexpr long long kUnit = 128;  // a line of the cache
  const long long share = ((bytes + gridDim.x - 1) / gridDim.x + kUnit - 1) / kUnit * kUnit;
  const long long begin = share * blockIdx.x;
  const long long end = begin + share < bytes ? begin + share : bytes;
  // Whole pieces of 16 bytes.
  const long long size = (end - begin) / 16 * 16;
  if (threadIdx.x == 0 && size > 0) {
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(static_cast<const char*>(from) + begin),
                 "r"(static_cast<unsigned>(size)));
  }
#endif
}

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
