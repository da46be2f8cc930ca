// What every kernel's text begins with.
#define FN __device__ __forceinline__
