// From accumulators to stores: a slice of the result lies in shared memory, in lines along the
// variable that stores are contiguous in, and every thread takes runs of it.
//
// The generated struct Out gives
//   kAlongN                 runs go along n (else along m)
//   kWidth                  elements of a run; divides the extent that it goes along
//   store(p, z, m, n, acc)  does all stores of one run that starts at (m, n)

// Stores lines of `kLine` elements; `where(line, at, m, n)` says where a run starts, false if out of range.
template <class Out, int kLines, int kLine, int kPitch, int kThreads, class T, class Params, class Place,
          class Where>
__device__ __forceinline__ void store_slice(const Params& p, const Place& z, const T* slice, Where where) {
  constexpr int kWidth = Out::kWidth;
  constexpr int kRuns = kLines * (kLine / kWidth);
#pragma unroll 1
  for (int run = threadIdx.x; run < kRuns; run += kThreads) {
    const int line = run / (kLine / kWidth), at = run % (kLine / kWidth) * kWidth;
    int m, n;
    if (where(line, at, m, n)) {
      T acc[kWidth];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) acc[i] = slice[line * kPitch + at + i];
      Out::store(p, z, m, n, acc);
    }
  }
}

// Needs kWarpsM * 16 lines of the block's n + 8 floats, or kWarpsN * 16 lines of its m + 4.
// Stores the sums of kWarpsM x kWarpsN warps, each with kMs x kNs matrices of 16 x 8 (layout: mma.cuh).
// The loops over slices are unrolled: an index that is known only at run time would put the sums in memory.
template <class Out, int kMs, int kNs, int kWarpsM, int kWarpsN, class Params, class Place>
__device__ __forceinline__ void store_accumulators(const Params& p, const Place& z, float* slice,
                                                   const float (&acc)[kMs][kNs][4], int first_m, int first_n,
                                                   int m_end, int n_end) {
  constexpr int kThreads = kWarpsM * kWarpsN * 32, kWarpM = kMs * 16, kWarpN = kNs * 8;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  const int warp_m = warp / kWarpsN, warp_n = warp % kWarpsN, row = lane / 4, column = lane % 4 * 2;
  if constexpr (Out::kAlongN) {
    constexpr int kLine = kWarpsN * kWarpN, kPitch = kLine + 8;
#pragma unroll
    for (int part = 0; part < kMs; ++part) {
      __syncthreads();
      float* at = slice + (warp_m * 16 + row) * kPitch + warp_n * kWarpN + column;
#pragma unroll
      for (int j = 0; j < kNs; ++j) {
        *reinterpret_cast<float2*>(at + j * 8) = make_float2(acc[part][j][0], acc[part][j][1]);
        *reinterpret_cast<float2*>(at + 8 * kPitch + j * 8) = make_float2(acc[part][j][2], acc[part][j][3]);
      }
      __syncthreads();
      store_slice<Out, kWarpsM * 16, kLine, kPitch, kThreads>(p, z, slice, [&](int line, int at, int& m, int& n) {
        m = first_m + line / 16 * kWarpM + part * 16 + line % 16;
        n = first_n + at;
        return m < m_end && n < n_end;
      });
    }
  } else {
    constexpr int kLine = kWarpsM * kWarpM, kPitch = kLine + 4;
#pragma unroll
    for (int part = 0; part < kNs / 2; ++part) {
      __syncthreads();
#pragma unroll
      for (int j = 0; j < 2; ++j) {
        float* at = slice + (warp_n * 16 + j * 8 + column) * kPitch + warp_m * kWarpM + row;
#pragma unroll
        for (int i = 0; i < kMs; ++i) {
          const float* sums = acc[i][part * 2 + j];
          at[i * 16] = sums[0];
          at[kPitch + i * 16] = sums[1];
          at[i * 16 + 8] = sums[2];
          at[kPitch + i * 16 + 8] = sums[3];
        }
      }
      __syncthreads();
      store_slice<Out, kWarpsN * 16, kLine, kPitch, kThreads>(p, z, slice, [&](int line, int at, int& m, int& n) {
        m = first_m + at;
        n = first_n + line / 16 * kWarpN + part * 16 + line % 16;
        return m < m_end && n < n_end;
      });
    }
  }
}
