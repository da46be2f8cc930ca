// Acc[m, n] = sum over k of a(m, k) * b(k, n) by matrix instructions, with a pipeline of kStages tiles in
// shared memory. kWarpsM x kWarpsN warps share a block's kTileM x kTileN results.
//
// Shared memory: kStages * (A tile + B tile), reused by the slices of the result.
// Registers: kTileM * kTileN / threads sums, and two steps' fragments.
//
// The generated struct Problem gives A, B, Out (see tile.cuh, slice.cuh), `m(p)`, `n(p)`, `k(p)` and
// `place(p, index)`.

template <class Problem, class Math, int kTileM, int kTileN, int kTileK, int kWarpsM, int kWarpsN, int kStages>
struct ContractionMma {
  static constexpr int kThreads = kWarpsM * kWarpsN * 32;
  using TileA = Tile<Math, typename Problem::A, kTileM, kTileK, kThreads>;
  using TileB = Tile<Math, typename Problem::B, kTileN, kTileK, kThreads>;
  using Out = typename Problem::Out;
  static constexpr int kStageBytes = TileA::kSharedBytes + TileB::kSharedBytes;
  static constexpr int kWarpM = kTileM / kWarpsM, kWarpN = kTileN / kWarpsN;
  static constexpr int kMs = kWarpM / 16, kNs = kWarpN / 8, kSteps = kTileK / Math::kStep;
  static constexpr int kBand = 8;  // block rows that are walked together, so that L2 holds what they share

  static_assert(kMs >= 1 && kNs >= 2 && kNs % 2 == 0 && kSteps >= 1 && kStages >= 2, "tile of a warp");

  template <class Params>
  static __device__ __forceinline__ void run(const Params& p, char* memory) {
    const int m_blocks = (Problem::m(p) + kTileM - 1) / kTileM;
    const int n_blocks = (Problem::n(p) + kTileN - 1) / kTileN;
    const int blocks = m_blocks * n_blocks;
    const int batch = blockIdx.x / blocks, block = blockIdx.x % blocks;
    const int band = block / (kBand * n_blocks) * kBand;
    const int height = min(kBand, m_blocks - band);
    const int in_band = block - band * n_blocks;
    const int first_m = (band + in_band % height) * kTileM, first_n = in_band / height * kTileN;
    const auto z = Problem::place(p, batch);

    const int k_tiles = (Problem::k(p) + kTileK - 1) / kTileK;

    const unsigned shared = shared_address(memory);
    TileA a;
    TileB b;
    a.begin(p, z, first_m);
    b.begin(p, z, first_n);

    float acc[kMs][kNs][4];
#pragma unroll
    for (int i = 0; i < kMs; ++i)
#pragma unroll
      for (int j = 0; j < kNs; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) acc[i][j][e] = 0.f;

    const auto fetch = [&](int tile) {
      const unsigned to = shared + tile % kStages * kStageBytes;
      if (tile < k_tiles) {
        a.fetch(p, z, tile * kTileK, to);
        b.fetch(p, z, tile * kTileK, to + TileA::kSharedBytes);
      }
      copy_async_commit();
    };
    const auto commit = [&](int tile) {
      const unsigned to = shared + tile % kStages * kStageBytes;
      if (tile < k_tiles) {
        a.commit(to);
        b.commit(to + TileA::kSharedBytes);
      }
    };

#pragma unroll
    for (int tile = 0; tile < kStages - 1; ++tile) {
      fetch(tile);
      commit(tile);
    }

    const int warp = threadIdx.x / 32;
    const int warp_m = warp / kWarpsN * kWarpM, warp_n = warp % kWarpsN * kWarpN;
    unsigned fa[2][kMs][4], fb[2][kNs / 2][4];
    const auto fragments = [&](int buffer, int slot, int step) {
      const unsigned from = shared + slot * kStageBytes;
#pragma unroll
      for (int i = 0; i < kMs; ++i) TileA::load_a(fa[buffer][i], from, warp_m + i * 16, step * Math::kStep);
#pragma unroll
      for (int j = 0; j < kNs / 2; ++j) {
        TileB::load_b(fb[buffer][j], from + TileA::kSharedBytes, warp_n + j * 16, step * Math::kStep);
      }
    };

    copy_async_wait<kStages - 2>();
    __syncthreads();
    fragments(0, 0, 0);
    int slot = 0;
#pragma unroll 1
    for (int tile = 0; tile < k_tiles; ++tile) {
#pragma unroll
      for (int step = 0; step < kSteps; ++step) {
        constexpr int kEven = kSteps % 2 == 0;  // else the buffers swap roles from tile to tile
        const int now = kEven ? step % 2 : 0, next = kEven ? (step + 1) % 2 : 1;
        // The slot that the tile before this one had is free since the barrier below.
        if (step == 0) fetch(tile + kStages - 1);
        if (step == kSteps - 1) {
          commit(tile + kStages - 1);
          copy_async_wait<kStages - 2>();
          __syncthreads();
          slot = slot + 1 == kStages ? 0 : slot + 1;
        }
        fragments(next, slot, (step + 1) % kSteps);
#pragma unroll
        for (int i = 0; i < kMs; ++i)
#pragma unroll
          for (int j = 0; j < kNs; ++j) {
            // Boustrophedon order keeps one operand in the register cache.
            const int jj = i % 2 ? kNs - 1 - j : j;
            Math::mma(acc[i][jj], fa[now][i], fb[now][jj / 2][jj % 2 * 2], fb[now][jj / 2][jj % 2 * 2 + 1]);
          }
        if constexpr (!kEven) {
#pragma unroll
          for (int i = 0; i < kMs; ++i)
#pragma unroll
            for (int e = 0; e < 4; ++e) fa[0][i][e] = fa[1][i][e];
#pragma unroll
          for (int j = 0; j < kNs / 2; ++j)
#pragma unroll
            for (int e = 0; e < 4; ++e) fb[0][j][e] = fb[1][j][e];
        }
      }
    }
    copy_async_wait<0>();

    store_accumulators<Out, kMs, kNs, kWarpsM, kWarpsN>(p, z, reinterpret_cast<float*>(memory), acc, first_m,
                                                        first_n, Problem::m(p), Problem::n(p));
  }
};
