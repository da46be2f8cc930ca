// What mma.cuh and async.cuh give, on the emulated device. Shared addresses are offsets.

inline unsigned shared_address(const void* p) { return (unsigned)((const char*)p - shared_memory); }
inline char* at_shared(unsigned a, unsigned bytes) {
  if (a + bytes > sizeof shared_memory || a % bytes) { fprintf(stderr, "shared access %u of %u\n", a, bytes); abort(); }
  return shared_memory + a;
}
inline unsigned load_shared_32(unsigned a) { unsigned r; memcpy(&r, at_shared(a, 4), 4); return r; }
inline void store_shared_128(unsigned a, uint4 v) { memcpy(at_shared(a, 16), &v, 16); }

template <bool kTrans> void ldmatrix(unsigned (&r)[4], unsigned address) {
  warp_step(&address, &r, [](Warp& w) {
    for (int l = 0; l < 32; ++l) for (int i = 0; i < 4; ++i) {
      unsigned short pair[2];
      for (int e = 0; e < 2; ++e) {
        int row = kTrans ? l % 4 * 2 + e : l / 4, column = kTrans ? l / 4 : l % 4 * 2 + e;
        memcpy(&pair[e], at_shared(*(const unsigned*)w.input[i * 8 + row], 16) + column * 2, 2);
      }
      memcpy(&(*(unsigned(*)[4])w.output[l])[i], pair, 4);
    }
  });
}
inline void ldmatrix_x4(unsigned (&r)[4], unsigned a) { ldmatrix<false>(r, a); }
inline void ldmatrix_x4_trans(unsigned (&r)[4], unsigned a) { ldmatrix<true>(r, a); }

struct MmaInput { unsigned a[4], b[2]; };
template <class Math, int kK> void mma_any(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
  MmaInput in = {{a[0], a[1], a[2], a[3]}, {b0, b1}};
  warp_step(&in, &d, [](Warp& w) {
    const int per = kK == 16 ? 2 : 1;  // elements a register
    float am[16][kK], bm[kK][8];
    for (int l = 0; l < 32; ++l) {
      const MmaInput& x = *(const MmaInput*)w.input[l];
      for (int i = 0; i < 4; ++i) for (int e = 0; e < per; ++e)
        am[l / 4 + i % 2 * 8][l % 4 * per + e + i / 2 * (kK / 2)] = Math::get(x.a[i], e);
      for (int i = 0; i < 2; ++i) for (int e = 0; e < per; ++e)
        bm[l % 4 * per + e + i * (kK / 2)][l / 4] = Math::get(x.b[i], e);
    }
    for (int l = 0; l < 32; ++l) for (int i = 0; i < 4; ++i) {
      float& out = (*(float(*)[4])w.output[l])[i];
      double sum = out;
      for (int k = 0; k < kK; ++k) sum += (double)am[l / 4 + i / 2 * 8][k] * bm[k][l % 4 * 2 + i % 2];
      out = (float)sum;
    }
  });
}
inline float half_float(unsigned short x) {
  unsigned e = x >> 10 & 31, m = x & 1023, s = (unsigned)(x >> 15) << 31;
  float y = e == 31 ? __uint_as_float(0x7f800000 | m << 13) : e ? __uint_as_float((e + 112) << 23 | m << 13) : m * 0x1p-24f;
  return __uint_as_float(__float_as_uint(y) | s);
}
inline unsigned short float_half(float x) {
  _Float16 h = (_Float16)x;
  return bits_as<unsigned short>(h);
}
inline unsigned short float_bfloat(float x) {
  unsigned b = __float_as_uint(x);
  return x != x ? 0x7fff : (unsigned short)((b + 0x7fff + (b >> 16 & 1)) >> 16);
}
struct MathF16 {
  static constexpr int kBytes = 2, kStep = 16;
  static float get(unsigned r, int e) { return half_float((unsigned short)(r >> (16 * e))); }
  static void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) { mma_any<MathF16, 16>(d, a, b0, b1); }
  static unsigned pack(float lo, float hi) { return float_half(lo) | (unsigned)float_half(hi) << 16; }
  static unsigned round(unsigned r) { return r; }
};
struct MathBf16 {
  static constexpr int kBytes = 2, kStep = 16;
  static float get(unsigned r, int e) { return __uint_as_float(e ? r & 0xffff0000 : r << 16); }
  static void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) { mma_any<MathBf16, 16>(d, a, b0, b1); }
  static unsigned pack(float lo, float hi) { return float_bfloat(lo) | (unsigned)float_bfloat(hi) << 16; }
  static unsigned round(unsigned r) { return r; }
};
struct MathTf32 {
  static constexpr int kBytes = 4, kStep = 8;
  static float get(unsigned r, int) { return __uint_as_float(r & 0xffffe000); }
  static void mma(float (&d)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) { mma_any<MathTf32, 8>(d, a, b0, b1); }
  static unsigned round(unsigned x) { return x + 0x1000; }
};
inline float exp2_approx(float x) { return exp2f(x); }

// Asynchronous copies land only when they are waited for.
struct Copy { unsigned to; char data[16]; int bytes; };
static std::vector<std::vector<std::vector<Copy>>> copies;  // by thread, by group
inline std::vector<std::vector<Copy>>& my_copies() {
  if (copies.size() < fibers.size()) copies.resize(fibers.size());
  auto& mine = copies[current];
  if (mine.empty()) mine.emplace_back();
  return mine;
}
template <int kAccess> void copy_async(unsigned to, const void* from, int bytes) {
  Copy c = {to, {}, kAccess};
  if (bytes && (unsigned long long)from % kAccess) { fprintf(stderr, "misaligned copy\n"); abort(); }
  memcpy(c.data, from, bytes);
  at_shared(to, kAccess);
  my_copies().back().push_back(c);
}
inline void copy_async_commit() { my_copies().emplace_back(); }
template <int kPending> void copy_async_wait() {
  auto& mine = my_copies();
  while ((int)mine.size() - 1 > kPending) {
    for (auto& c : mine.front()) memcpy(at_shared(c.to, c.bytes), c.data, c.bytes);
    mine.erase(mine.begin());
  }
}
