// What every kernel's text begins with.
#define FN static __device__ __forceinline__
