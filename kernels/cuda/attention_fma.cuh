// Attention with the softmax folded into the loop over columns, by fused multiply-add in binary32.
//
// A block of 128 threads has kRows rows and walks columns kColumns at a time; four or more neighbouring
// threads share a row. Problem is that of attention_mma.cuh; its operands give `scalar(p, z, row, step)`.
//
// Shared memory, in floats: kRows lines of Q, kColumns lines of K and of V, kRows lines of weights.
// Registers: kWidth * kRows / 128 sums.

#define kLowest __uint_as_float(0xff800000u)  // -infinity

template <class Problem, int kDepth, int kWidth, int kRows, int kColumns>
struct AttentionFma {
  static constexpr int kThreads = 128, kShare = kThreads / kRows;  // threads of a row
  static constexpr int kPitchQ = kDepth + 1, kPitchV = kWidth + 1, kPitchP = kColumns + 1;
  static constexpr int kOuts = (kWidth + kShare - 1) / kShare, kScores = kColumns / kShare;

  template <class Params>
  static __device__ __forceinline__ void run(const Params& p, char* memory) {
    float* q = reinterpret_cast<float*>(memory);
    float* k = q + kRows * kPitchQ;
    float* v = k + kColumns * kPitchQ;
    float* weights = v + kColumns * kPitchV;
    const int rows = Problem::rows(p), columns = Problem::columns(p);
    const int row_tiles = (rows + kRows - 1) / kRows;
    const int first_row = static_cast<int>(blockIdx.x % row_tiles) * kRows;
    const auto z = Problem::place(p, static_cast<int>(blockIdx.x / row_tiles));
    int end = columns;
    if (Problem::kCausal) end = min(columns, max(0, min(first_row + kRows, rows) + columns - rows));

    for (int i = threadIdx.x; i < kRows * kDepth; i += kThreads) {
      const int line = i / kDepth, at = i % kDepth;
      q[line * kPitchQ + at] = Problem::Q::scalar(p, z, Problem::Q::row(p, z, first_row + line), Problem::Q::step(p, z, at));
    }
    const int line = threadIdx.x / kShare, part = threadIdx.x % kShare, row = first_row + line;
    float sums[kOuts], greatest = kLowest, total = 0.f;
#pragma unroll
    for (int i = 0; i < kOuts; ++i) sums[i] = 0.f;

#pragma unroll 1
    for (int first = 0; first < end; first += kColumns) {
      __syncthreads();
      for (int i = threadIdx.x; i < kColumns * kDepth; i += kThreads) {
        const int column = i / kDepth, at = i % kDepth;
        k[column * kPitchQ + at] = Problem::K::scalar(p, z, Problem::K::row(p, z, first + column), Problem::K::step(p, z, at));
      }
      for (int i = threadIdx.x; i < kColumns * kWidth; i += kThreads) {
        const int column = i / kWidth, at = i % kWidth;
        v[column * kPitchV + at] = Problem::V::scalar(p, z, Problem::V::row(p, z, at), Problem::V::step(p, z, first + column));
      }
      __syncthreads();
      float scores[kScores], most = greatest;
#pragma unroll
      for (int i = 0; i < kScores; ++i) {
        const int local = i * kShare + part, column = first + local;
        float dot = 0.f;
#pragma unroll 8
        for (int d = 0; d < kDepth; ++d) dot += q[line * kPitchQ + d] * k[local * kPitchQ + d];
        scores[i] = column < columns && row < rows ? Problem::score(p, z, row, column, dot) : kLowest;
        most = fmaxf(most, scores[i]);
      }
#pragma unroll
      for (int mask = 1; mask < kShare; mask *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, mask));
      const float base = most == kLowest ? 0.f : most, scale = expf(greatest - base);
      greatest = most;
      total *= scale;
#pragma unroll
      for (int i = 0; i < kScores; ++i) {
        scores[i] = expf(scores[i] - base);
        total += scores[i];
        weights[line * kPitchP + i * kShare + part] = scores[i];
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kOuts; ++i) {
        const int at = i * kShare + part;
        float sum = sums[i] * scale;
        if (at < kWidth) {
#pragma unroll 8
          for (int c = 0; c < kColumns; ++c) sum += weights[line * kPitchP + c] * v[c * kPitchV + at];
        }
        sums[i] = sum;
      }
    }
#pragma unroll
    for (int mask = 1; mask < kShare; mask *= 2) total += __shfl_xor_sync(~0u, total, mask);
    const float inverse = total == 0.f && Problem::kMaskedRowIsZero ? 0.f : 1.f / total;
    // The result takes the place of Q; stores take whole runs of it.
    __syncthreads();
    constexpr int kPitch = kWidth + 1;
#pragma unroll
    for (int i = 0; i < kOuts; ++i) {
      const int at = i * kShare + part;
      if (at < kWidth) q[line * kPitch + at] = sums[i] * inverse;
    }
    __syncthreads();
    using Out = typename Problem::Out;
    constexpr int kRun = Out::kWidth;
    const int width = Problem::width(p);
    if constexpr (Out::kAlongN) {
      for (int i = threadIdx.x; i < kRows * (kWidth / kRun); i += kThreads) {
        const int m = i / (kWidth / kRun), n = i % (kWidth / kRun) * kRun;
        store_run<Out>(p, z, q, kPitch, first_row, m, n, rows, width);
      }
    } else {
      for (int i = threadIdx.x; i < kWidth * (kRows / kRun); i += kThreads) {
        const int n = i / (kRows / kRun), m = i % (kRows / kRun) * kRun;
        store_run<Out>(p, z, q, kPitch, first_row, m, n, rows, width);
      }
    }
  }

  template <class Out, class Params, class Place>
  static __device__ __forceinline__ void store_run(const Params& p, const Place& z, const float* from, int pitch,
                                                   int first_row, int m, int n, int rows, int width) {
    if (first_row + m >= rows || n >= width) return;
    float run[Out::kWidth];
#pragma unroll
    for (int e = 0; e < Out::kWidth; ++e) {
      run[e] = Out::kAlongN ? from[m * pitch + n + e] : from[(m + e) * pitch + n];
    }
    Out::store(p, z, first_row + m, n, run);
  }
};
