// One operand's tile in shared memory: how it is laid out, filled, and read as fragments.
//
// An operand is a function of (row, k) given by a generated struct:
//   Row, Step              what is kept of a row and of an element of k
//   row(p, z, r)           Row of row r in batch place z; r may be past the end
//   step(p, z, k)          Step of k; k may be past the end
//   kMode                  kDirect: `kWidth` elements, consecutive along k (`kAlongK`) or along rows, lie
//                          side by side in memory in the type that products are computed in, and their
//                          address is a multiple of the access;
//                          kComputed: elements are computed one by one
//   inside(p, z, row, step)   whether the element (the first of an access) is in range and its guard holds
//   address(p, z, row, step)  of kDirect
//   value(p, z, row, step)    of kComputed, as float: 0 out of range
//   kLanesAlongRows        of kComputed: neighbouring lanes take neighbouring rows (else neighbouring k)
//
// Layout: lines of 16-byte chunks. A line is one row of `K` elements when they lie along k (and always
// when computed), else one element of k with all rows. Chunks are permuted within a line (or lines are
// padded to an odd number of chunks) so that the eight lines of an 8x8 matrix meet all banks.

enum OperandMode { kDirect, kComputed };

template <class Math, class Operand, int kRows, int kDepth, int kThreads>
struct Tile {
  static constexpr int kChunk = 16 / Math::kBytes;  // elements
  static constexpr bool kAlongK = Operand::kMode == kComputed || Operand::kAlongK;
  static constexpr int kLines = kAlongK ? kRows : kDepth;
  static constexpr int kLineChunks = (kAlongK ? kDepth : kRows) / kChunk;
  static constexpr bool kPermuted =
      kLineChunks >= 2 && (kLineChunks & (kLineChunks - 1)) == 0 && (kAlongK || Math::kBytes == 2 || kLineChunks >= 8);
  static constexpr int kPitch = 16 * (kPermuted ? kLineChunks : (kLineChunks | 1));
  static constexpr int kSharedBytes = kLines * kPitch;
  static constexpr int kChunks = kLines * kLineChunks;
  static constexpr int kPerThread = (kChunks + kThreads - 1) / kThreads;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  static constexpr bool kAsync = false;
#else
  static constexpr bool kAsync = Operand::kMode == kDirect;
#endif
  static constexpr int kWidth = Operand::kMode == kDirect ? Operand::kWidth : 1;
  static constexpr int kParts = Operand::kMode == kDirect ? kChunk / kWidth : 1;
  static constexpr int kRowsKept = kPerThread * (kAlongK ? 1 : kParts);

  typename Operand::Row rows[kRowsKept];
  uint4 held[kAsync ? 1 : kPerThread];

  static __device__ __forceinline__ int permute(int line, int chunk) {
    if constexpr (!kPermuted) return chunk;
    if constexpr (!kAlongK && Math::kBytes == 4) return chunk ^ ((line & 3) << 1);
    if constexpr (kLineChunks >= 8) return chunk ^ (line & 7);
    if constexpr (kLineChunks == 4) return chunk ^ ((line >> 1) & 3);
    return chunk ^ ((line >> 2) & 1);
  }

  static __device__ __forceinline__ unsigned offset(int line, int chunk) {
    return line * kPitch + permute(line, chunk) * 16;
  }

  // The line and chunk that this thread's i-th chunk is.
  static __device__ __forceinline__ int line_of(int i) {
    const int id = threadIdx.x + i * kThreads;
    if constexpr (Operand::kMode == kComputed && Operand::kLanesAlongRows) return id % kLines;
    return id / kLineChunks;
  }
  static __device__ __forceinline__ int chunk_of(int i) {
    const int id = threadIdx.x + i * kThreads;
    if constexpr (Operand::kMode == kComputed && Operand::kLanesAlongRows) return id / kLines;
    return id % kLineChunks;
  }
  static __device__ __forceinline__ bool has(int i) {
    return kChunks % kThreads == 0 || threadIdx.x + i * kThreads < kChunks;
  }

  // Sets the tile's rows to first_row, first_row+1, …
  template <class Params, class Place>
  __device__ __forceinline__ void begin(const Params& p, const Place& z, int first_row) {
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if constexpr (kAlongK) {
        rows[i] = Operand::row(p, z, first_row + line_of(i));
      } else {
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          rows[i * kParts + part] = Operand::row(p, z, first_row + chunk_of(i) * kChunk + part * kWidth);
        }
      }
    }
  }

  // Starts filling: what can be copied asynchronously is, the rest is read into registers.
  template <class Params, class Place>
  __device__ __forceinline__ void fetch(const Params& p, const Place& z, int first_k, unsigned shared) {
#pragma unroll
    for (int i = 0; i < kPerThread; ++i) {
      if (!has(i)) break;
      const int line = line_of(i), chunk = chunk_of(i);
      if constexpr (Operand::kMode == kComputed) {
        float v[kChunk];
#pragma unroll
        for (int e = 0; e < kChunk; ++e) {
          v[e] = Operand::value(p, z, rows[i], Operand::step(p, z, first_k + chunk * kChunk + e));
        }
        if constexpr (Math::kBytes == 2) {
          held[i] = make_uint4(Math::pack(v[0], v[1]), Math::pack(v[2], v[3]), Math::pack(v[4], v[5]),
                               Math::pack(v[6], v[7]));
        } else {
          held[i] = make_uint4(__float_as_uint(v[0]), __float_as_uint(v[1]), __float_as_uint(v[2]),
                               __float_as_uint(v[3]));
        }
      } else {
        [[maybe_unused]] unsigned word[4] = {0, 0, 0, 0};
#pragma unroll
        for (int part = 0; part < kParts; ++part) {
          const auto& row = rows[kAlongK ? i : i * kParts + part];
          const auto step = Operand::step(
              p, z, first_k + (kAlongK ? chunk * kChunk + part * kWidth : line));
          const bool in = Operand::inside(p, z, row, step);
          const void* from = Operand::address(p, z, row, step);
          constexpr int kAccess = kWidth * Math::kBytes;
          if constexpr (kAsync) {
            copy_async<kAccess>(shared + offset(line, chunk) + part * kAccess, from, in ? kAccess : 0);
          } else if (in) {
            const unsigned* words = static_cast<const unsigned*>(from);
            if constexpr (kAccess == 16) {
              const uint4 all = *static_cast<const uint4*>(from);
              word[0] = all.x, word[1] = all.y, word[2] = all.z, word[3] = all.w;
            } else {
#pragma unroll
              for (int w = 0; w < kAccess / 4; ++w) word[part * (kAccess / 4) + w] = words[w];
            }
          }
        }
        if constexpr (!kAsync) held[i] = make_uint4(word[0], word[1], word[2], word[3]);
      }
    }
  }

  // Finishes what `fetch` started, except for asynchronous copies.
  __device__ __forceinline__ void commit(unsigned shared) {
    if constexpr (!kAsync) {
#pragma unroll
      for (int i = 0; i < kPerThread; ++i) {
        if (!has(i)) break;
        store_shared_128(shared + offset(line_of(i), chunk_of(i)), held[i]);
      }
    }
  }

  // As A: the fragment of rows first_row.. (16 of them) and elements of k first_k.. (one step).
  static __device__ __forceinline__ void load_a(unsigned (&r)[4], unsigned shared, int first_row,
                                                int first_k) {
    const int lane = threadIdx.x % 32;
    if constexpr (kAlongK) {
      ldmatrix_x4(r, shared + offset(first_row + lane % 16, first_k / kChunk + lane / 16));
    } else if constexpr (Math::kBytes == 2) {
      ldmatrix_x4_trans(r, shared + offset(first_k + lane / 16 * 8 + lane % 8,
                                           first_row / kChunk + lane / 8 % 2));
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = first_row + lane / 4 + i % 2 * 8;
        r[i] = load_shared_32(shared + offset(first_k + lane % 4 + i / 2 * 4, row / kChunk) + row % kChunk * 4);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) r[i] = Math::round(r[i]);
  }

  // As B: the fragments of columns first_row.. (two times 8 of them); r[0], r[1] are the first's.
  static __device__ __forceinline__ void load_b(unsigned (&r)[4], unsigned shared, int first_row,
                                                int first_k) {
    const int lane = threadIdx.x % 32;
    if constexpr (kAlongK) {
      ldmatrix_x4(r, shared + offset(first_row + lane / 16 * 8 + lane % 8, first_k / kChunk + lane / 8 % 2));
    } else if constexpr (Math::kBytes == 2) {
      ldmatrix_x4_trans(r, shared + offset(first_k + lane / 8 % 2 * 8 + lane % 8,
                                           first_row / kChunk + lane / 16));
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = first_row + lane / 4 + i / 2 * 8;
        r[i] = load_shared_32(shared + offset(first_k + lane % 4 + i % 2 * 4, row / kChunk) + row % kChunk * 4);
      }
    }
#pragma unroll
    for (int i = 0; i < 4; ++i) r[i] = Math::round(r[i]);
  }
};
