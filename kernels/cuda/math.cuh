// Operators that C++ has not, or not with the semantics that are wanted.

// Wrapping integer arithmetic.
FN int wrap_add(int a, int b) { return (int)((unsigned)a + (unsigned)b); }
FN int wrap_sub(int a, int b) { return (int)((unsigned)a - (unsigned)b); }
FN int wrap_mul(int a, int b) { return (int)((unsigned)a * (unsigned)b); }
FN unsigned wrap_add(unsigned a, unsigned b) { return a + b; }
FN unsigned wrap_sub(unsigned a, unsigned b) { return a - b; }
FN unsigned wrap_mul(unsigned a, unsigned b) { return a * b; }
typedef unsigned long long u64;
FN long long wrap_add(long long a, long long b) { return (long long)((u64)a + (u64)b); }
FN long long wrap_sub(long long a, long long b) { return (long long)((u64)a - (u64)b); }
FN long long wrap_mul(long long a, long long b) { return (long long)((u64)a * (u64)b); }
FN u64 wrap_add(u64 a, u64 b) { return a + b; }
FN u64 wrap_sub(u64 a, u64 b) { return a - b; }
FN u64 wrap_mul(u64 a, u64 b) { return a * b; }

// Quotients truncate; by zero they are 0. `floor_mod` has the divisor's sign.
template <typename T> FN T int_div(T a, T b) {
  if (b == 0) return 0;
  if (b == (T)-1 && (T)-1 < (T)0) return wrap_sub((T)0, a);
  return a / b;
}
template <typename T> FN T int_rem(T a, T b) {
  return b == 0 || b == (T)-1 && (T)-1 < (T)0 ? (T)0 : (T)(a % b);
}
template <typename T> FN T int_floor_mod(T a, T b) {
  T r = int_rem(a, b);
  return r != 0 && (r < 0) != (b < 0) ? (T)(r + b) : r;
}
template <typename T> FN T int_pow(T a, T b) {
  if (b < 0) return a == 1 ? (T)1 : a == (T)-1 ? (b & 1 ? (T)-1 : (T)1) : (T)0;
  T r = 1;
  for (; b > 0; b = b >> 1) {
    if (b & 1) r = wrap_mul(r, a);
    a = wrap_mul(a, a);
  }
  return r;
}
template <typename T> FN T int_shl(T a, T b) {
  return b >= 0 && b < (T)(8 * sizeof(T)) ? (T)((u64)a << b) : (T)0;
}
template <typename T> FN T int_shr(T a, T b) {
  bool inside = b >= 0 && b < (T)(8 * sizeof(T));
  return inside ? (T)(a >> b) : a < 0 ? (T)-1 : (T)0;
}
template <typename T> FN T int_sign(T a) { return (T)((a > 0) - (a < 0)); }
template <typename T> FN T int_abs(T a) { return a < 0 ? wrap_sub((T)0, a) : a; }

// The larger and the smaller; NaN wins.
template <typename T> FN T larger(T a, T b) { return a > b || a != a ? a : b; }
template <typename T> FN T smaller(T a, T b) { return a < b || a != a ? a : b; }
#if __CUDA_ARCH__ >= 800
FN float larger(float a, float b) {
  float r;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
FN float smaller(float a, float b) {
  float r;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(r) : "f"(a), "f"(b));
  return r;
}
#endif

FN float float_floor_mod(float a, float b) {
  float r = fmodf(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
FN double float_floor_mod(double a, double b) {
  double r = fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
template <typename T> FN T float_sign(T a) { return a > 0 ? (T)1 : a < 0 ? (T)-1 : a; }
FN float sigmoid(float a) { return __fdividef(1.0f, 1.0f + expf(-a)); }
FN double sigmoid(double a) { return 1.0 / (1.0 + exp(-a)); }

// Floats to integers: truncated, saturated to lo..hi, 0 for NaN.
FN int float_to_int(float a, float lo, float hi) {
  return a != a ? 0 : __float2int_rz(fminf(fmaxf(a, lo), hi));
}
FN int float_to_int(double a, double lo, double hi) {
  return a != a ? 0 : __double2int_rz(fmin(fmax(a, lo), hi));
}
FN int to_int(float a) { return a != a ? 0 : __float2int_rz(a); }
FN int to_int(double a) { return a != a ? 0 : __double2int_rz(a); }
FN unsigned to_uint(float a) { return a != a ? 0 : __float2uint_rz(a); }
FN unsigned to_uint(double a) { return a != a ? 0 : __double2uint_rz(a); }
FN long long to_long(float a) { return a != a ? 0 : __float2ll_rz(a); }
FN long long to_long(double a) { return a != a ? 0 : __double2ll_rz(a); }
FN u64 to_ulong(float a) { return a != a ? 0 : __float2ull_rz(a); }
FN u64 to_ulong(double a) { return a != a ? 0 : __double2ull_rz(a); }

// Index arithmetic: rounded down, `b` positive.
template <typename T> FN T floor_div(T a, T b) {
  T q = a / b;
  return a - q * b < 0 ? q - 1 : q;
}
template <typename T> FN T floor_mod(T a, T b) {
  T r = a % b;
  return r < 0 ? r + b : r;
}

// The larger (or smaller) element and its index, NaN first; -1 is no index. Of equal elements the
// first (or last) counts.
template <bool largest, bool last, typename T>
FN void better(T& value, long long& at, T other, long long index) {
  if (index < 0) return;
  bool other_nan = other != other, nan = value != value;
  bool wins = largest ? other > value : other < value;
  bool equal = other == value || (other_nan && nan);
  bool closer = last ? index > at : index < at;
  if (at < 0 || (other_nan && !nan) || (!nan && wins) || (equal && closer)) {
    value = other;
    at = index;
  }
}
