// Attention with the softmax folded into the loop over columns, by matrix instructions of 16-bit types.
//
// A block of kWarps warps has 16 rows a warp; it walks columns kColumns at a time. Row maxima and
// sums are kept per row and earlier sums are rescaled when a maximum grows (Milakov and Gimelshein,
// "Online normalizer calculation for softmax", 2018; Dao et al., "FlashAttention", 2022).
//
// The generated struct Problem gives Q, K (rows: queries, keys; steps: their width), V (rows: width of the
// result; steps: keys), Out (see tile.cuh, slice.cuh), `rows(p)`, `columns(p)`, `width(p)`, `place(p, index)`,
// `score(p, z, row, column, dot)`, kCausal and kMaskedRowIsZero.
//
// Shared memory: the tile of Q, kStages tiles of K and V; reused by the slices of the result.
// Registers: kDepth / 4 of Q, kColumns / 2 scores, kWidth / 2 sums.

#define kLowest __uint_as_float(0xff800000u)  // -infinity

template <class Problem, class Math, int kDepth, int kWidth, int kWarps, int kColumns, int kStages>
struct AttentionMma {
  static constexpr int kThreads = kWarps * 32, kRows = kWarps * 16;
  using TileQ = Tile<Math, typename Problem::Q, kRows, kDepth, kThreads>;
  using TileK = Tile<Math, typename Problem::K, kColumns, kDepth, kThreads>;
  using TileV = Tile<Math, typename Problem::V, kWidth, kColumns, kThreads>;
  static constexpr int kStageBytes = TileK::kSharedBytes + TileV::kSharedBytes;
  static constexpr int kSteps = kDepth / 16, kBlocks = kColumns / 8, kOuts = kWidth / 8;
  static constexpr float kLog2E = 1.4426950408889634f;

  template <class Params>
  static __device__ __forceinline__ void run(const Params& p, char* memory) {
    const int rows = Problem::rows(p), columns = Problem::columns(p);
    const int row_tiles = (rows + kRows - 1) / kRows;
    const int first_row = static_cast<int>(blockIdx.x % row_tiles) * kRows;
    const auto z = Problem::place(p, static_cast<int>(blockIdx.x / row_tiles));
    const unsigned shared = shared_address(memory), stages = shared + TileQ::kSharedBytes;
    int end = columns;
    if (Problem::kCausal) end = min(columns, max(0, min(first_row + kRows, rows) + columns - rows));
    const int tiles = (end + kColumns - 1) / kColumns;

    const auto fetch = [&](int tile) {
      if (tile < tiles) {
        const unsigned to = stages + tile % kStages * kStageBytes;
        TileK k;
        k.begin(p, z, tile * kColumns);
        k.fetch(p, z, 0, to);
        k.commit(to);
        TileV v;
        v.begin(p, z, 0);
        v.fetch(p, z, tile * kColumns, to + TileK::kSharedBytes);
        v.commit(to + TileK::kSharedBytes);
      }
      copy_async_commit();
    };
    {
      TileQ q;
      q.begin(p, z, first_row);
      q.fetch(p, z, 0, shared);
      q.commit(shared);
    }
    copy_async_commit();
#pragma unroll
    for (int tile = 0; tile < kStages - 1; ++tile) fetch(tile);
    copy_async_wait<kStages - 1>();
    __syncthreads();

    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    unsigned fq[kSteps][4];
#pragma unroll
    for (int s = 0; s < kSteps; ++s) TileQ::load_a(fq[s], shared, warp * 16, s * 16);

    float sums[1][kOuts][4], greatest[2], total[2];
#pragma unroll
    for (int j = 0; j < kOuts; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[0][j][e] = 0.f;
    greatest[0] = greatest[1] = kLowest;
    total[0] = total[1] = 0.f;
    const int row[2] = {first_row + warp * 16 + lane / 4, first_row + warp * 16 + lane / 4 + 8};

#pragma unroll 1
    for (int tile = 0; tile < tiles; ++tile) {
      // The slot that the tile before this one had is free since the barrier at the end of its turn.
      fetch(tile + kStages - 1);
      copy_async_wait<kStages - 1>();
      __syncthreads();
      const unsigned from = stages + tile % kStages * kStageBytes;
      float scores[kBlocks][4];
#pragma unroll
      for (int j = 0; j < kBlocks; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) scores[j][e] = 0.f;
#pragma unroll
      for (int s = 0; s < kSteps; ++s)
#pragma unroll
        for (int j = 0; j < kBlocks / 2; ++j) {
          unsigned fk[4];
          TileK::load_b(fk, from, j * 16, s * 16);
          Math::mma(scores[2 * j], fq[s], fk[0], fk[1]);
          Math::mma(scores[2 * j + 1], fq[s], fk[2], fk[3]);
        }

      float most[2] = {greatest[0], greatest[1]};
#pragma unroll
      for (int j = 0; j < kBlocks; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int column = tile * kColumns + j * 8 + lane % 4 * 2 + e % 2;
          const bool in = column < columns && row[e / 2] < rows;
          scores[j][e] = in ? Problem::score(p, z, row[e / 2], column, scores[j][e]) : kLowest;
          most[e / 2] = fmaxf(most[e / 2], scores[j][e]);
        }
      float base[2], scale[2];
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        most[h] = fmaxf(most[h], __shfl_xor_sync(~0u, most[h], 1));
        most[h] = fmaxf(most[h], __shfl_xor_sync(~0u, most[h], 2));
        base[h] = most[h] == kLowest ? 0.f : most[h];
        scale[h] = exp2f((greatest[h] - base[h]) * kLog2E);
        greatest[h] = most[h];
        total[h] *= scale[h];
      }
#pragma unroll
      for (int j = 0; j < kBlocks; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          scores[j][e] = exp2f((scores[j][e] - base[e / 2]) * kLog2E);
          total[e / 2] += scores[j][e];
        }
#pragma unroll
      for (int j = 0; j < kOuts; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) sums[0][j][e] *= scale[e / 2];
#pragma unroll
      for (int s = 0; s < kColumns / 16; ++s) {
        const unsigned weights[4] = {
            Math::pack(scores[2 * s][0], scores[2 * s][1]), Math::pack(scores[2 * s][2], scores[2 * s][3]),
            Math::pack(scores[2 * s + 1][0], scores[2 * s + 1][1]),
            Math::pack(scores[2 * s + 1][2], scores[2 * s + 1][3])};
#pragma unroll
        for (int j = 0; j < kOuts / 2; ++j) {
          unsigned fv[4];
          TileV::load_b(fv, from + TileK::kSharedBytes, j * 16, s * 16);
          Math::mma(sums[0][2 * j], weights, fv[0], fv[1]);
          Math::mma(sums[0][2 * j + 1], weights, fv[2], fv[3]);
        }
      }
      __syncthreads();
    }
    copy_async_wait<0>();

    float inverse[2];
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      total[h] += __shfl_xor_sync(~0u, total[h], 1);
      total[h] += __shfl_xor_sync(~0u, total[h], 2);
      inverse[h] = total[h] == 0.f && Problem::kMaskedRowIsZero ? 0.f : 1.f / total[h];
    }
#pragma unroll
    for (int j = 0; j < kOuts; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) sums[0][j][e] *= inverse[e / 2];
    store_accumulators<typename Problem::Out, 1, kOuts, kWarps, 1>(p, z, reinterpret_cast<float*>(memory), sums,
                                                                   first_row, 0, rows, Problem::width(p));
  }
};
