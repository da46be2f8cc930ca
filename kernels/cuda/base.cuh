// What every kernel's text begins with.
#pragma nv_diag_suppress 177  // Generated statements may turn out unused.
#define FN __device__ __forceinline__
