// The schedules that are compared; `Args` and `Problem` are the same for all.

#include "../../cuda/base.cuh"
#include "../../cuda/types.cuh"
#include "../../cuda/pack.cuh"
#include "../../cuda/mma.cuh"
#include "../../cuda/async.cuh"
#include "../../cuda/tile.cuh"
#include "../../cuda/atomics.cuh"
#include "../../cuda/slice.cuh"
#include "../../cuda/contraction_mma.cuh"

#include "problem.cuh"
#include "hopper.cuh"
#include "wgmma.cuh"
#include "contraction_wgmma.cuh"

#define MMA(name, width, m, n, k, warps_m, warps_n, stages)                                        \
  using Mma_##name = ContractionMma<Problem<width>, MathF16, m, n, k, warps_m, warps_n, stages>;   \
  extern "C" __global__ void __launch_bounds__(warps_m * warps_n * 32)                           \
      mma_##name(const __grid_constant__ Args p) {                                               \
    extern __shared__ __align__(1024) char memory[];                                              \
    Mma_##name::run(p, memory);                                                                  \
  }

#define CLUSTER_1
#define CLUSTER_2 __cluster_dims__(2, 1, 1)
#define WGMMA(name, args, filling, n, stages, cluster)                                           \
  using Wgmma_##name = ContractionWgmma<Problem<8>, filling, n, stages, cluster>;                \
  extern "C" __global__ void CLUSTER_##cluster __launch_bounds__(384, 1)                         \
      wgmma_##name(const __grid_constant__ args p) {                                             \
    extern __shared__ __align__(1024) char memory[];                                             \
    Wgmma_##name::run(p, memory);                                                                \
  }

MMA(128x256, 8, 128, 256, 32, 2, 4, 4)
MMA(128x128, 8, 128, 128, 64, 2, 4, 3)
MMA(64x64, 8, 64, 64, 64, 2, 2, 3)
MMA(any, 1, 64, 64, 64, 2, 2, 3)

WGMMA(given_256, ArgsWithMaps, kMapsGiven, 256, 4, 1)
WGMMA(given_256_pair, ArgsWithMaps, kMapsGiven, 256, 4, 2)
WGMMA(built_256, Args, kMapsBuilt, 256, 4, 1)
WGMMA(threads_256, Args, kThreadsCopy, 256, 4, 1)
WGMMA(given_128, ArgsWithMaps, kMapsGiven, 128, 6, 1)
WGMMA(given_128_pair, ArgsWithMaps, kMapsGiven, 128, 6, 2)
WGMMA(built_128, Args, kMapsBuilt, 128, 6, 1)
WGMMA(threads_128, Args, kThreadsCopy, 128, 6, 1)

// What a launch costs by the size of its parameter.
extern "C" __global__ void empty_small(const __grid_constant__ Args p) {}
extern "C" __global__ void empty_large(const __grid_constant__ ArgsWithMaps p) {}
