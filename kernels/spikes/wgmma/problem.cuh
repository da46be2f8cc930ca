// The group of this spike, out = gelu(a * b + bias) + residual, as the generator would write it:
// `Args` is the launch ABI, `Problem` is what every schedule computes from. See tile.cuh and slice.cuh.
//
// a [m, k], b [k, n], bias [n], residual and out [m, n]: binary16, contiguous. Sums are binary32.

// The kernel's one parameter: pointers, then integers.
struct Args {
  const f16* a;
  const f16* b;
  const f16* bias;
  const f16* residual;
  f16* out;
  void* scratch;  // 256 bytes a block, of schedules that build tensor maps; else null
  int m, n, k;
};

// What the hardware calls a tensor map.
struct alignas(64) TensorMap {
  unsigned long long words[16];
};

// The same with tensor maps at its end.
struct ArgsWithMaps : Args {
  TensorMap map_a, map_b;
};

FN float gelu(float x) { return x * (0.5f * (erff(x / 1.4142135f) + 1.0f)); }

// kRun: elements that lie side by side, aligned to their number: 8 if n and k are multiples of 8, else 1.
template <int kRun>
struct Problem {
  static FN int m(const Args& p) { return p.m; }
  static FN int n(const Args& p) { return p.n; }
  static FN int k(const Args& p) { return p.k; }
  struct Place {};
  static FN Place place(const Args&, int) { return {}; }

  struct Offset {
    bool in;
    int offset;
  };

  struct A {
    static constexpr OperandMode kMode = kRun > 1 ? kDirect : kComputed;
    static constexpr bool kAlongK = true, kLanesAlongRows = false;
    static constexpr int kWidth = kRun;
    using Row = Offset;
    using Step = Offset;
    static FN Row row(const Args& p, const Place&, int at) { return {at < p.m, at * p.k}; }
    static FN Step step(const Args& p, const Place&, int at) { return {at < p.k, at}; }
    static FN bool inside(const Args&, const Place&, const Row& row, const Step& step) { return row.in && step.in; }
    static FN const f16* address(const Args& p, const Place&, const Row& row, const Step& step) {
      return p.a + row.offset + step.offset;
    }
    static FN float value(const Args& p, const Place& z, const Row& row, const Step& step) {
      return inside(p, z, row, step) ? widen(*address(p, z, row, step)) : 0.0f;
    }
  };

  struct B {
    static constexpr OperandMode kMode = kRun > 1 ? kDirect : kComputed;
    static constexpr bool kAlongK = false, kLanesAlongRows = true;
    static constexpr int kWidth = kRun;
    using Row = Offset;
    using Step = Offset;
    static FN Row row(const Args& p, const Place&, int at) { return {at < p.n, at}; }
    static FN Step step(const Args& p, const Place&, int at) { return {at < p.k, at * p.n}; }
    static FN bool inside(const Args&, const Place&, const Row& row, const Step& step) { return row.in && step.in; }
    static FN const f16* address(const Args& p, const Place&, const Row& row, const Step& step) {
      return p.b + row.offset + step.offset;
    }
    static FN float value(const Args& p, const Place& z, const Row& row, const Step& step) {
      return inside(p, z, row, step) ? widen(*address(p, z, row, step)) : 0.0f;
    }
  };

  struct Out {
    static constexpr bool kAlongN = true;
    static constexpr int kWidth = kRun;
    static FN void store(const Args& p, const Place&, int m, int n, const float (&acc)[kRun]) {
      const int at = m * p.n + n;
      const Pack<f16, kRun> bias = load_pack<kRun>(p.bias + n), residual = load_pack<kRun>(p.residual + at);
      Pack<f16, kRun> out;
#pragma unroll
      for (int i = 0; i < kRun; ++i) {
        out.at[i] = narrow<f16>(gelu(acc[i] + widen(bias.at[i])) + widen(residual.at[i]));
      }
      store_pack<kRun>(p.out + at, out);
    }
  };
};
