// Storage types: how elements lie in memory. `widen` gives the compute type; `narrow<T>` rounds to
// nearest even and, for integers, wraps.
struct bool8 { unsigned char bits; };
struct f16 { unsigned short bits; };
struct bf16 { unsigned short bits; };
struct f8e4m3 { unsigned char bits; };
struct f8e5m2 { unsigned char bits; };
struct f8e4m3fnuz { unsigned char bits; };
struct f8e5m2fnuz { unsigned char bits; };
struct f8e8m0 { unsigned char bits; };
// In memory two to a byte; here the lowest bits hold the one there is.
struct f4e2m1 { unsigned char bits; };

FN bool widen(bool8 x) { return x.bits != 0; }
FN int widen(signed char x) { return x; }
FN int widen(unsigned char x) { return x; }
FN int widen(short x) { return x; }
FN int widen(unsigned short x) { return x; }
FN int widen(int x) { return x; }
FN unsigned widen(unsigned x) { return x; }
FN long long widen(long long x) { return x; }
FN unsigned long long widen(unsigned long long x) { return x; }
FN float widen(float x) { return x; }
FN double widen(double x) { return x; }
FN float widen(bf16 x) { return __uint_as_float((unsigned)x.bits << 16); }

FN void round_into(bool8& y, bool x) { y.bits = x; }
FN void round_into(signed char& y, int x) { y = (signed char)x; }
FN void round_into(unsigned char& y, int x) { y = (unsigned char)x; }
FN void round_into(short& y, int x) { y = (short)x; }
FN void round_into(unsigned short& y, int x) { y = (unsigned short)x; }
FN void round_into(int& y, int x) { y = x; }
FN void round_into(unsigned& y, unsigned x) { y = x; }
FN void round_into(long long& y, long long x) { y = x; }
FN void round_into(unsigned long long& y, unsigned long long x) { y = x; }
FN void round_into(float& y, float x) { y = x; }
FN void round_into(double& y, double x) { y = x; }

FN void round_into(bf16& y, float x) {
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y.bits) : "f"(x));
#else
  unsigned b = __float_as_uint(x);
  y.bits = x != x ? 0x7fff : (unsigned short)((b + 0x7fff + (b >> 16 & 1)) >> 16);
#endif
}

// The nearest value with `fraction` fraction bits and an exponent bias `bias`, as its encoding
// without the sign; what would exceed `top` becomes `beyond`. `x` is not negative.
FN unsigned encode_float(float x, int fraction, int bias, unsigned top, unsigned beyond) {
  unsigned b = __float_as_uint(x);
  int exponent = (int)(b >> 23) - 127;
  int shift = 23 - fraction;
  if (exponent < 1 - bias) shift += 1 - bias - exponent;
  if (shift > 24) return 0;
  unsigned m = (b & 0x7fffff) | 0x800000;
  unsigned r = (m + (1u << (shift - 1)) - 1 + (m >> shift & 1)) >> shift;
  unsigned e = exponent < 1 - bias ? 0 : (unsigned)(exponent + bias - 1) << fraction;
  return e + r > top ? beyond : e + r;
}

#ifdef __CUDA_ARCH__
FN float widen(f16 x) {
  float y;
  asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
  return y;
}
FN void round_into(f16& y, float x) { asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y.bits) : "f"(x)); }
#else
FN float widen(f16 x) {
  unsigned e = x.bits >> 10 & 31, m = x.bits & 1023, s = (unsigned)(x.bits >> 15) << 31;
  float y = e == 31 ? __uint_as_float(0x7f800000 | m << 13)
                    : e ? __uint_as_float((e + 112) << 23 | m << 13) : (float)m * 0x1p-24f;
  return __uint_as_float(__float_as_uint(y) | s);
}
FN void round_into(f16& y, float x) {
  unsigned b = __float_as_uint(x), s = b >> 16 & 0x8000;
  x = __uint_as_float(b & 0x7fffffff);
  y.bits = (unsigned short)(s | (x != x ? 0x7fff : encode_float(x, 10, 15, 0x7c00, 0x7c00)));
}
#endif

FN float widen(f8e5m2 x) {
  f16 y = {(unsigned short)((unsigned)x.bits << 8)};
  return widen(y);
}
FN float widen(f8e4m3 x) {
  unsigned e = x.bits >> 3 & 15, m = x.bits & 7, s = (unsigned)(x.bits >> 7) << 31;
  float y = (x.bits & 127) == 127 ? __uint_as_float(0x7fc00000)
            : e ? __uint_as_float((e + 120) << 23 | m << 20) : (float)m * 0x1p-9f;
  return __uint_as_float(__float_as_uint(y) | s);
}
FN void round_into(f8e5m2& y, float x) {
  unsigned b = __float_as_uint(x), s = b >> 24 & 0x80;
  x = __uint_as_float(b & 0x7fffffff);
  y.bits = (unsigned char)(s | (x != x ? 0x7d : encode_float(x, 2, 15, 0x7b, 0x7c)));
}
FN void round_into(f8e4m3& y, float x) {
  unsigned b = __float_as_uint(x), s = b >> 24 & 0x80;
  x = __uint_as_float(b & 0x7fffffff);
  y.bits = (unsigned char)(s | (x != x ? 0x7f : encode_float(x, 3, 7, 0x7e, 0x7f)));
}

// Without -0, whose code is NaN.
FN float widen_fnuz(unsigned bits, int fraction, int bias) {
  unsigned e = (bits & 127) >> fraction, m = bits & ((1u << fraction) - 1);
  unsigned s = bits >> 7 << 31;
  float unit = __uint_as_float((unsigned)(128 - bias - fraction) << 23);
  float y = e ? __uint_as_float((e + 127 - bias) << 23 | m << (23 - fraction)) : (float)m * unit;
  return bits == 128 ? __uint_as_float(0x7fc00000) : __uint_as_float(__float_as_uint(y) | s);
}
FN unsigned char round_fnuz(float x, int fraction, int bias) {
  unsigned b = __float_as_uint(x), s = b >> 24 & 0x80;
  x = __uint_as_float(b & 0x7fffffff);
  unsigned code = x != x ? 0x80 : encode_float(x, fraction, bias, 0x7f, 0x80);
  return (unsigned char)(code == 0 || code == 0x80 ? code : s | code);
}
FN float widen(f8e4m3fnuz x) { return widen_fnuz(x.bits, 3, 8); }
FN float widen(f8e5m2fnuz x) { return widen_fnuz(x.bits, 2, 16); }
FN void round_into(f8e4m3fnuz& y, float x) { y.bits = round_fnuz(x, 3, 8); }
FN void round_into(f8e5m2fnuz& y, float x) { y.bits = round_fnuz(x, 2, 16); }

// Powers of two from 2^-127 on. Halfway to the next one rounds up.
FN float widen(f8e8m0 x) {
  return __uint_as_float(x.bits == 255 ? 0x7fc00000 : x.bits ? (unsigned)x.bits << 23 : 0x400000);
}
FN void round_into(f8e8m0& y, float x) {
  unsigned b = __float_as_uint(x) & 0x7fffffff;
  unsigned e = b >> 23;
  unsigned up = e ? (b >> 22 & 1) : b >= 0x600000;
  y.bits = (unsigned char)(e + up > 255 ? 255 : e + up);
}

FN float widen(f4e2m1 x) {
  unsigned e = x.bits >> 1 & 3, m = x.bits & 1, s = (unsigned)(x.bits >> 3 & 1) << 31;
  float y = e ? __uint_as_float((e + 126) << 23 | m << 22) : (float)m * 0.5f;
  return __uint_as_float(__float_as_uint(y) | s);
}
FN void round_into(f4e2m1& y, float x) {
  unsigned b = __float_as_uint(x), s = b >> 28 & 8;
  x = __uint_as_float(b & 0x7fffffff);
  y.bits = (unsigned char)(x != x ? 8 : s | encode_float(x, 1, 1, 7, 7));
}

template <typename T, typename X> FN T narrow(X x) {
  T y;
  round_into(y, x);
  return y;
}
