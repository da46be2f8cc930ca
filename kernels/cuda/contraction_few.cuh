// Acc[m, n] = sum over k of a(m, k) * b(k, n) in T where m has at most kMostRows rows: each block has all rows and
// kColumns columns, and its threads share k. Elements of B are read once, as wide as it allows, and go from registers
// to products: with so few rows a product is as fast as B comes from memory.
//
// Shared memory: kThreads / 32 parts of kRowsAtOnce x kColumns sums.
// Registers: kRowsAtOnce sums for each column of a thread, at most 8.
//
// Problem is that of contraction_mma.cuh; its A and B give `scalar` and, of kDirect, `load` (contraction_fma.cuh).

template <class Problem, class T, int kMostRows, int kColumns, int kThreads>
struct ContractionFew {
  using A = typename Problem::A;
  using B = typename Problem::B;
  using Out = typename Problem::Out;
  static constexpr int kWidth = B::kMode == kDirect ? B::kWidth : 1;
  static constexpr bool kAlongK = B::kMode == kDirect ? B::kAlongK : !B::kLanesAlongRows;
  // Of one thread at a time.
  static constexpr int kWide = kAlongK ? 1 : kWidth, kDeep = kAlongK ? kWidth : 1;
  // Threads along n and along k; those along which accesses run are neighbours.
  static constexpr int kAcross = kColumns / kWide, kAlong = kThreads / kAcross;
  // Lanes that differ in these bits share a column, and warps that do.
  static constexpr int kLowBit = kAlongK ? 1 : kAcross, kEndBit = kAlongK ? kAlong : 32;
  static constexpr int kShares = kAlongK ? 1 : kThreads / 32;
  // Whole runs of stores; more rows at once would take more registers than the schedule that shares the kernel.
  static constexpr int kRowsAtOnce = Out::kAlongN || Out::kWidth <= 4 ? 4 : kMostRows;
  static_assert(kAcross >= 1 && kAcross <= 32 && kAlong >= 1 && (!kAlongK || kAlong <= 32), "threads of a block");

  template <class Params>
  static __device__ __forceinline__ void run(const Params& p, char* memory) {
    const int blocks = (Problem::n(p) + kColumns - 1) / kColumns;
    const auto z = Problem::place(p, static_cast<int>(blockIdx.x) / blocks);
    const int first_n = static_cast<int>(blockIdx.x) % blocks * kColumns;
    T* sums = reinterpret_cast<T*>(memory);
    if (Problem::m(p) == 1) {
      rows<1>(p, z, 0, first_n, sums);
      return;
    }
#pragma unroll 1
    for (int m = 0; m < Problem::m(p); m += kRowsAtOnce) {
      if (m > 0) __syncthreads();
      rows<kRowsAtOnce>(p, z, m, first_n, sums);
    }
  }

  // Rows first_m, first_m + 1, …
  template <int kRows, class Params, class Place>
  static __device__ __forceinline__ void rows(const Params& p, const Place& z, int first_m, int first_n, T* sums) {
    const int thread = static_cast<int>(threadIdx.x);
    const int across = kAlongK ? thread / kAlong : thread % kAcross;
    const int along = kAlongK ? thread % kAlong : thread / kAcross;
    const auto column = B::row(p, z, first_n + across * kWide);
    typename A::Row row[kRows];
#pragma unroll
    for (int m = 0; m < kRows; ++m) row[m] = A::row(p, z, first_m + m);
    T acc[kRows * kWide];
#pragma unroll
    for (int i = 0; i < kRows * kWide; ++i) acc[i] = 0;

#pragma unroll 4
    for (int k = along * kDeep; k < Problem::k(p); k += kAlong * kDeep) {
      T b[kWidth];
      const auto step = B::step(p, z, k);
      if constexpr (kWidth > 1) {
        B::load(p, z, column, step, b);
      } else {
        b[0] = B::scalar(p, z, column, step);
      }
#pragma unroll
      for (int m = 0; m < kRows; ++m) {
        T a[kDeep];
        elements(p, z, row[m], k, a);
#pragma unroll
        for (int d = 0; d < kDeep; ++d)
#pragma unroll
          for (int w = 0; w < kWide; ++w) acc[m * kWide + w] += a[d] * b[kAlongK ? d : w];
      }
    }

    // What is sum number i of a thread becomes sum number `first` + i of fewer, over all lanes of a column.
    int count = kRows * kWide, first = 0;
#pragma unroll
    for (int bit = kLowBit; bit < kEndBit; bit *= 2) {
      if (count > 1) {
        count /= 2;
        const bool upper = thread & bit;
        first += upper ? count : 0;
#pragma unroll
        for (int i = 0; i < kRows * kWide / 2; ++i) {
          if (i < count) {
            const T give = upper ? acc[i] : acc[i + count], keep = upper ? acc[i + count] : acc[i];
            acc[i] = keep + __shfl_xor_sync(0xffffffffu, give, bit);
          }
        }
      } else {
        acc[0] += __shfl_xor_sync(0xffffffffu, acc[0], bit);
      }
    }
    T* share = sums + (kAlongK ? 0 : thread / 32) * (kRows * kColumns);
#pragma unroll
    for (int i = 0; i < kRows * kWide; ++i) {
      const int at = first + i;
      if (i < count) share[at / kWide * kColumns + across * kWide + at % kWide] = acc[i];
    }
    __syncthreads();

    if constexpr (Out::kAlongN) {
      constexpr int kRun = Out::kWidth;
#pragma unroll 1
      for (int run = thread; run < kRows * (kColumns / kRun); run += kThreads) {
        const int m = run / (kColumns / kRun), n = run % (kColumns / kRun) * kRun;
        if (first_m + m >= Problem::m(p) || first_n + n >= Problem::n(p)) continue;
        T total[kRun];
#pragma unroll
        for (int i = 0; i < kRun; ++i) total[i] = sum<kRows>(sums, m, n + i);
        Out::store(p, z, first_m + m, first_n + n, total);
      }
    } else if constexpr (kRows >= Out::kWidth) {  // with fewer, there is no run
      constexpr int kRun = Out::kWidth, kLine = kRows / kRun;
#pragma unroll 1
      for (int run = thread; run < kColumns * kLine; run += kThreads) {
        const int n = run / kLine, m = run % kLine * kRun;
        if (first_m + m >= Problem::m(p) || first_n + n >= Problem::n(p)) continue;
        T total[kRun];
#pragma unroll
        for (int i = 0; i < kRun; ++i) total[i] = sum<kRows>(sums, m + i, n);
        Out::store(p, z, first_m + m, first_n + n, total);
      }
    }
  }

  // The sum at (m, n) of all shares.
  template <int kRows>
  static __device__ __forceinline__ T sum(const T* sums, int m, int n) {
    T total = sums[m * kColumns + n];
#pragma unroll
    for (int s = 1; s < kShares; ++s) total += sums[(s * kRows + m) * kColumns + n];
    return total;
  }

  // a(m, k) for kDeep consecutive k.
  template <class Params, class Place>
  static __device__ __forceinline__ void elements(const Params& p, const Place& z, const typename A::Row& row, int k,
                                                  T (&a)[kDeep]) {
    if constexpr (kDeep > 1 && A::kMode == kDirect && A::kAlongK && A::kWidth == kDeep) {
      A::load(p, z, row, A::step(p, z, k), a);
    } else {
#pragma unroll
      for (int d = 0; d < kDeep; ++d) a[d] = A::scalar(p, z, row, A::step(p, z, k + d));
    }
  }
};
