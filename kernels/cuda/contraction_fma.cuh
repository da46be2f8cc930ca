// Acc[m, n] = sum over k of a(m, k) * b(k, n) by fused multiply-add in T (float, double) or by 32-bit integer
// arithmetic. 256 threads, 16 x 16, each with kPerM x kPerN results in runs of four, so that a
// block has 16*kPerM x 16*kPerN.
//
// Shared memory: two stages of kTileK lines of A's rows and of B's columns, reused by the slices of the result.
//
// Problem is that of contraction_mma.cuh; its A and B give, whatever the mode, `scalar(p, z, row, step)`: the
// element, 0 out of range, and of kDirect `load(p, z, row, step, out)`: kWidth of them.

template <class T, class Operand, int kRows, int kDepth, int kThreads>
struct ScalarTile {
  static constexpr int kPitch = kRows + 16 / static_cast<int>(sizeof(T));
  static constexpr int kWidth = Operand::kMode == kDirect ? Operand::kWidth : 1;
  static constexpr bool kAlongK = Operand::kMode == kDirect ? Operand::kAlongK : !Operand::kLanesAlongRows;
  static constexpr int kPerThread = kRows * kDepth / kWidth / kThreads;
  static_assert(kPerThread >= 1 && kRows * kDepth == kPerThread * kWidth * kThreads, "whole accesses");
  T held[kPerThread][kWidth];
  typename Operand::Row rows[kPerThread];

  static __device__ __forceinline__ int row_of(int i) {
    const int id = threadIdx.x + i * kThreads;
    return kAlongK ? id / (kDepth / kWidth) : id % (kRows / kWidth) * kWidth;
  }
  static __device__ __forceinline__ int depth_of(int i) {
    const int id = threadIdx.x + i * kThreads;
    return kAlongK ? id % (kDepth / kWidth) * kWidth : id / (kRows / kWidth);
  }

  template <class Params, class Place>
  __device__ __forceinline__ void begin(const Params& p, const Place& z, int first_row) {
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) rows[i] = Operand::row(p, z, first_row + row_of(i));
  }

  template <class Params, class Place>
  __device__ __forceinline__ void fetch(const Params& p, const Place& z, int first_k) {
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      const auto step = Operand::step(p, z, first_k + depth_of(i));
      if constexpr (kWidth > 1) {
        Operand::load(p, z, rows[i], step, held[i]);
      } else {
        held[i][0] = Operand::scalar(p, z, rows[i], step);
      }
    }
  }

  __device__ __forceinline__ void commit(T* stage) {
#pragma unroll
    for (int i = 0; i < kPerThread; ++i)
#pragma unroll
      for (int e = 0; e < kWidth; ++e) {
        const int row = row_of(i) + (kAlongK ? 0 : e), k = depth_of(i) + (kAlongK ? e : 0);
        stage[k * kPitch + row] = held[i][e];
      }
  }
};

template <class Problem, class T, int kPerM, int kPerN, int kTileK>
struct ContractionFma {
  static constexpr int kThreads = 256, kTileM = 16 * kPerM, kTileN = 16 * kPerN;
  using TileA = ScalarTile<T, typename Problem::A, kTileM, kTileK, kThreads>;
  using TileB = ScalarTile<T, typename Problem::B, kTileN, kTileK, kThreads>;
  using Out = typename Problem::Out;
  static constexpr int kStage = (TileA::kPitch + TileB::kPitch) * kTileK;  // elements
  static constexpr int kRunM = kPerM < 4 ? kPerM : 4, kRunN = kPerN < 4 ? kPerN : 4;
  static constexpr int kBand = 8;

  template <class Params>
  static __device__ __forceinline__ void run(const Params& p, char* memory) {
    T* shared = reinterpret_cast<T*>(memory);
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

    TileA a;
    TileB b;
    a.begin(p, z, first_m);
    b.begin(p, z, first_n);
    T acc[kPerM][kPerN];
#pragma unroll
    for (int i = 0; i < kPerM; ++i)
#pragma unroll
      for (int j = 0; j < kPerN; ++j) acc[i][j] = 0;

    // Rows of this thread: runs of kRunM, 16 * kRunM apart; likewise columns.
    const int ty = threadIdx.x / 16, tx = threadIdx.x % 16;
    if (k_tiles > 0) {
      a.fetch(p, z, 0);
      b.fetch(p, z, 0);
      a.commit(shared);
      b.commit(shared + TileA::kPitch * kTileK);
    }
    __syncthreads();
#pragma unroll 1
    for (int tile = 0; tile < k_tiles; ++tile) {
      const bool more = tile + 1 < k_tiles;
      if (more) {
        a.fetch(p, z, (tile + 1) * kTileK);
        b.fetch(p, z, (tile + 1) * kTileK);
      }
      const T* as = shared + tile % 2 * kStage;
      const T* bs = as + TileA::kPitch * kTileK;
#pragma unroll
      for (int k = 0; k < kTileK; ++k) {
        T x[kPerM], y[kPerN];
#pragma unroll
        for (int i = 0; i < kPerM; ++i) x[i] = as[k * TileA::kPitch + (i / kRunM * 16 + ty) * kRunM + i % kRunM];
#pragma unroll
        for (int j = 0; j < kPerN; ++j) y[j] = bs[k * TileB::kPitch + (j / kRunN * 16 + tx) * kRunN + j % kRunN];
#pragma unroll
        for (int i = 0; i < kPerM; ++i)
#pragma unroll
          for (int j = 0; j < kPerN; ++j) acc[i][j] += x[i] * y[j];
      }
      if (more) {
        T* to = shared + (tile + 1) % 2 * kStage;
        a.commit(to);
        b.commit(to + TileA::kPitch * kTileK);
      }
      __syncthreads();
    }

    // Slices: one row of every thread, or one column of every thread; unrolled as in slice.cuh.
    if constexpr (Out::kAlongN) {
      constexpr int kPitch = kTileN + 4;
#pragma unroll
      for (int part = 0; part < kPerM; ++part) {
        __syncthreads();
#pragma unroll
        for (int j = 0; j < kPerN; ++j) shared[ty * kPitch + (j / kRunN * 16 + tx) * kRunN + j % kRunN] = acc[part][j];
        __syncthreads();
        store_slice<Out, 16, kTileN, kPitch, kThreads>(p, z, shared, [&](int line, int at, int& m, int& n) {
          m = first_m + (part / kRunM * 16 + line) * kRunM + part % kRunM;
          n = first_n + at;
          return m < Problem::m(p) && n < Problem::n(p);
        });
      }
    } else {
      constexpr int kPitch = kTileM + 4;
#pragma unroll
      for (int part = 0; part < kPerN; ++part) {
        __syncthreads();
#pragma unroll
        for (int i = 0; i < kPerM; ++i) shared[tx * kPitch + (i / kRunM * 16 + ty) * kRunM + i % kRunM] = acc[i][part];
        __syncthreads();
        store_slice<Out, 16, kTileM, kPitch, kThreads>(p, z, shared, [&](int line, int at, int& m, int& n) {
          m = first_m + at;
          n = first_n + (part / kRunN * 16 + line) * kRunN + part % kRunN;
          return m < Problem::m(p) && n < Problem::n(p);
        });
      }
    }
  }
};
