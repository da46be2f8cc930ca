// Copies from global to shared memory that do not pass through registers (sm_80 and later); PTX ISA,
// "Non-bulk copy". `bytes` of the access are read, the rest of it is written as zeros.

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
template <int kAccess>
__device__ __forceinline__ void copy_async(unsigned to, const void* from, int bytes) {
  if constexpr (kAccess == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;"
                 :
                 : "r"(to), "l"(from), "r"(bytes)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;"
                 :
                 : "r"(to), "l"(from), "n"(kAccess), "r"(bytes)
                 : "memory");
  }
}

// Ends a group of copies.
__device__ __forceinline__ void copy_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}

// Waits until at most `kPending` of this thread's latest groups are under way.
template <int kPending>
__device__ __forceinline__ void copy_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}
#else
// Not called: tiles go through registers here.
template <int kAccess>
__device__ __forceinline__ void copy_async(unsigned, const void*, int) {}
__device__ __forceinline__ void copy_async_commit() {}
template <int kPending>
__device__ __forceinline__ void copy_async_wait() {}
#endif
