// Acc[m, n] = sum over k of a(m, k) * b(k, n) in binary16 by wgmma: blocks of 128 x kTileN results, k in tiles of
// 64. Warpgroup 0 fills kStages tiles in shared memory, warpgroups 1 and 2 each multiply 64 of the rows. Blocks
// walk over tiles until there are none, so a grid may have any size that is a multiple of the cluster's.
//
// Shared memory: kStages * (16 KiB + kTileN * 128), 2 KiB of barriers and alignment.
// Registers: kTileN / 2 sums in a thread of warpgroups 1 and 2.
//
// A is along k, B along n, both kDirect with kWidth 8; Out has runs of 8 along n. With kCluster = 2 two blocks
// with neighbouring rows share their tiles of B; the kernel's __cluster_dims__ says so.
//
// Tiles lie as wgmma and the copy engine have them with the 128-byte swizzle: lines of 64 elements whose 16-byte
// chunks are permuted by the line's number mod 8. A is 128 lines along k; B is kTileN / 64 boxes of 64 lines along n.

// Who fills tiles: the copy engine, with maps at the end of the arguments (kMapsGiven), with maps that each block
// builds in `scratch` (kMapsBuilt); or cp.async of 128 threads, which needs no map (kThreadsCopy).
enum Filling { kMapsGiven, kMapsBuilt, kThreadsCopy };

template <class Problem, Filling kFilling, int kTileN, int kStages, int kCluster>
struct ContractionWgmma {
  static constexpr int kTileM = 128, kTileK = 64, kLine = 128, kThreads = 384;
  static constexpr int kBoxes = kTileN / 64;
  static constexpr int kBytesA = kTileM * kLine, kBoxBytes = kTileK * kLine;
  static constexpr int kStageBytes = kBytesA + kBoxes * kBoxBytes;
  static constexpr int kSharedBytes = kStages * kStageBytes + 2048;
  static constexpr int kBand = 8 / kCluster;  // cluster rows that are walked together, so that L2 holds what they share
  static constexpr int kFillers = kFilling == kThreadsCopy ? 128 : 1;
  static constexpr int kMultipliers = 8;  // warps
  static constexpr int kFillerRegisters = kFilling == kThreadsCopy ? 104 : 40;
  static constexpr int kMultiplierRegisters = kFilling == kThreadsCopy ? 200 : 232;
  using TileA = Tile<MathF16, typename Problem::A, kTileM, kTileK, 128>;
  using TileB = Tile<MathF16, typename Problem::B, 64, kTileK, 128>;
  using Out = typename Problem::Out;

  static_assert(kCluster == 1 || (kCluster == 2 && kFilling != kThreadsCopy && kBoxes % 2 == 0), "shared tiles");
  static_assert(kSharedBytes <= 227 << 10, "shared memory of a block");
  static_assert(TileA::kSharedBytes == kBytesA && TileB::kSharedBytes == kBoxBytes, "layout");
  static_assert(Problem::A::kAlongK && !Problem::B::kAlongK && Out::kAlongN && Out::kWidth == 8, "layout");

  // Where tiles and barriers are.
  struct Pipeline {
    unsigned tiles, full, empty;
    int stage = 0;
    unsigned parity = 0;
    __device__ __forceinline__ unsigned tile_a() const { return tiles + stage * kStageBytes; }
    __device__ __forceinline__ unsigned tile_b() const { return tile_a() + kBytesA; }
    __device__ __forceinline__ unsigned filled() const { return full + stage * 8; }
    __device__ __forceinline__ unsigned emptied() const { return empty + stage * 8; }
    __device__ __forceinline__ void next() {
      if (++stage == kStages) stage = 0, parity ^= 1;
    }
  };

  // Calls work(first_m, first_n) for each of this block's tiles.
  template <class Params, class Work>
  static __device__ __forceinline__ void walk(const Params& p, Work work) {
    constexpr int kRows = kTileM * kCluster;
    const int rows = (Problem::m(p) + kRows - 1) / kRows;
    const int columns = (Problem::n(p) + kTileN - 1) / kTileN;
    const int rank = kCluster == 1 ? 0 : static_cast<int>(cluster_rank());
#pragma unroll 1
    for (int at = blockIdx.x / kCluster; at < rows * columns; at += gridDim.x / kCluster) {
      const int band = at / (kBand * columns) * kBand;
      const int height = min(kBand, rows - band);
      const int in_band = at - band * columns;
      work((band + in_band % height) * kRows + rank * kTileM, in_band / height * kTileN);
    }
  }

  template <class Params>
  static __device__ __forceinline__ void run(const Params& p, char* memory) {
    Pipeline pipe;
    pipe.tiles = (shared_address(memory) + 1023) & ~1023u;
    pipe.full = pipe.tiles + kStages * kStageBytes;
    pipe.empty = pipe.full + kStages * 8;
    if (threadIdx.x == 0) {
      for (int i = 0; i < kStages; ++i) {
        barrier_init(pipe.full + i * 8, kFillers);
        barrier_init(pipe.empty + i * 8, kMultipliers * kCluster);
      }
      barrier_init_fence();
    }
    if constexpr (kCluster > 1) {
      cluster_sync();
    } else {
      __syncthreads();
    }
    const int k_tiles = (Problem::k(p) + kTileK - 1) / kTileK;
    if (threadIdx.x < 128) {
      give_registers<kFillerRegisters>();
      if constexpr (kFilling == kThreadsCopy) {
        fill_by_threads(p, pipe, k_tiles);
      } else {
        if (threadIdx.x < 32) fill_by_engine(p, pipe, k_tiles);
      }
    } else {
      take_registers<kMultiplierRegisters>();
      multiply(p, pipe, k_tiles);
    }
    // No block leaves while another may still write to its shared memory.
    if constexpr (kCluster > 1) {
      __syncwarp();
      cluster_sync();
    }
  }

  // One warp, of which one lane works.
  template <class Params>
  static __device__ __forceinline__ void fill_by_engine(const Params& p, Pipeline pipe, int k_tiles) {
    const void *map_a, *map_b;
    if constexpr (kFilling == kMapsGiven) {
      map_a = &p.map_a;
      map_b = &p.map_b;
    } else {
      char* maps = static_cast<char*>(p.scratch) + blockIdx.x * 256;
      map_a = maps;
      map_b = maps + 128;
      build_map(maps, pipe.tiles, p.a, p.m, p.k, kTileM);
      build_map(maps + 128, pipe.tiles + 128, p.b, p.k, p.n, kTileK);
      // The tile that the maps were built in is written by the copy engine next.
      fence_before_wgmma();
      __syncwarp();
    }
    if (threadIdx.x == 0) {
      if constexpr (kFilling == kMapsGiven) {
        prefetch_map(map_a);
        prefetch_map(map_b);
      }
      const unsigned rank = kCluster == 1 ? 0 : cluster_rank();
      walk(p, [&](int first_m, int first_n) {
#pragma unroll 1
        for (int tile = 0; tile < k_tiles; ++tile) {
          barrier_wait<(kCluster > 1)>(pipe.emptied(), pipe.parity ^ 1);
          barrier_arrive_expect(pipe.filled(), kStageBytes);
          copy_box(pipe.tile_a(), map_a, tile * kTileK, first_m, pipe.filled());
#pragma unroll
          for (int i = 0; i < kBoxes / kCluster; ++i) {
            const int box = kCluster == 1 ? i : i * 2 + static_cast<int>(rank);
            const unsigned to = pipe.tile_b() + box * kBoxBytes;
            if constexpr (kCluster == 1) {
              copy_box(to, map_b, first_n + box * 64, tile * kTileK, pipe.filled());
            } else {
              copy_box_to(3, to, map_b, first_n + box * 64, tile * kTileK, pipe.filled());
            }
          }
          pipe.next();
        }
      });
    }
    __syncwarp();
  }

  // One warpgroup.
  template <class Params>
  static __device__ __forceinline__ void fill_by_threads(const Params& p, Pipeline pipe, int k_tiles) {
    const auto z = Problem::place(p, 0);
    walk(p, [&](int first_m, int first_n) {
      TileA a;
      TileB b[kBoxes];
      a.begin(p, z, first_m);
#pragma unroll
      for (int i = 0; i < kBoxes; ++i) b[i].begin(p, z, first_n + i * 64);
#pragma unroll 1
      for (int tile = 0; tile < k_tiles; ++tile) {
        barrier_wait<false>(pipe.emptied(), pipe.parity ^ 1);
        a.fetch(p, z, tile * kTileK, pipe.tile_a());
#pragma unroll
        for (int i = 0; i < kBoxes; ++i) b[i].fetch(p, z, tile * kTileK, pipe.tile_b() + i * kBoxBytes);
        barrier_arrive_after_copies(pipe.filled());
        pipe.next();
      }
    });
  }

  // Says that this warp is done with a stage, to all who fill it.
  static __device__ __forceinline__ void release(unsigned emptied) {
    const unsigned lane = threadIdx.x % 32;
    if constexpr (kCluster == 1) {
      if (lane == 0) barrier_arrive(emptied);
    } else {
      if (lane < kCluster) barrier_arrive_at(emptied, lane);
    }
  }

  template <class Params>
  static __device__ __forceinline__ void multiply(const Params& p, Pipeline pipe, int k_tiles) {
    const int group = threadIdx.x / 128 - 1;
    walk(p, [&](int first_m, int first_n) {
      float acc[kTileN / 2];
#pragma unroll
      for (int i = 0; i < kTileN / 2; ++i) acc[i] = 0.f;
      unsigned before = 0;
#pragma unroll 1
      for (int tile = 0; tile < k_tiles; ++tile) {
        barrier_wait<(kCluster > 1)>(pipe.filled(), pipe.parity);
        if constexpr (kFilling == kThreadsCopy) fence_before_wgmma();
        const unsigned long long a = matrix_descriptor(pipe.tile_a() + group * 64 * kLine, 16, 8 * kLine);
        const unsigned long long b = matrix_descriptor(pipe.tile_b(), kBoxBytes, 8 * kLine);
        keep_here(acc);
        wgmma_fence();
#pragma unroll
        for (int step = 0; step < kTileK / 16; ++step) {
          // 16 elements along a line of A; 16 lines of B.
          wgmma(acc, a + (step * 32 >> 4), b + (step * 16 * kLine >> 4));
        }
        wgmma_commit();
        keep_here(acc);
        wgmma_wait<1>();
        if (tile > 0) release(before);
        before = pipe.emptied();
        pipe.next();
      }
      wgmma_wait<0>();
      keep_here(acc);
      if (k_tiles > 0) release(before);
      store(p, acc, first_m + group * 64, first_n);
    });
  }

  // Four lanes that share a row exchange their pairs, so that each has runs of eight.
  template <class Params>
  static __device__ __forceinline__ void store(const Params& p, const float (&acc)[kTileN / 2], int first_m,
                                               int first_n) {
    const auto z = Problem::place(p, 0);
    const int warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32, quarter = lane % 4;
    const int m_end = Problem::m(p), n_end = Problem::n(p);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int m = first_m + warp * 16 + half * 8 + lane / 4;
#pragma unroll
      for (int j = 0; j < kTileN / 8; j += 4) {
        float run[8];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          run[2 * i] = acc[4 * (j + i) + 2 * half];
          run[2 * i + 1] = acc[4 * (j + i) + 2 * half + 1];
        }
        exchange<1>(run, quarter);
        exchange<2>(run, quarter);
        const int n = first_n + (j + quarter) * 8;
        if (m < m_end && n < n_end) Out::store(p, z, m, n, run);
      }
    }
  }

  // A step of the transposition of a 4 x 4 matrix of pairs whose row i is lane i's.
  template <int kBit>
  static __device__ __forceinline__ void exchange(float (&run)[8], int quarter) {
    const bool upper = quarter & kBit;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if (i & kBit) continue;
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        float& low = run[2 * i + e];
        float& high = run[2 * (i | kBit) + e];
        const float got = __shfl_xor_sync(0xffffffffu, upper ? low : high, kBit);
        if (upper) {
          low = got;
        } else {
          high = got;
        }
      }
    }
  }
};
