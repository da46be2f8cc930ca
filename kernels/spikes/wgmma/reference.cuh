// Data, the result in binary64, and the distance from it.

// Uniform in [-1, 1), different for each seed.
__global__ void fill(f16* x, long long count, unsigned seed) {
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < count; i += gridDim.x * 256ll) {
    unsigned long long h = (static_cast<unsigned long long>(seed) << 40) + i;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;
    h ^= h >> 31;
    x[i] = narrow<f16>(static_cast<float>(h >> 40) * 0x1p-23f - 1.0f);
  }
}

// One 16 x 16 tile a block.
__global__ void __launch_bounds__(256) reference(Args p, double* out) {
  __shared__ double a[16][17], b[16][17];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const int m = blockIdx.y * 16 + y, n = blockIdx.x * 16 + x;
  double sum = 0;
  for (int k = 0; k < p.k; k += 16) {
    a[y][x] = m < p.m && k + x < p.k ? widen(p.a[static_cast<long long>(m) * p.k + k + x]) : 0.0;
    b[y][x] = k + y < p.k && n < p.n ? widen(p.b[static_cast<long long>(k + y) * p.n + n]) : 0.0;
    __syncthreads();
    for (int i = 0; i < 16; ++i) sum = fma(a[y][i], b[i][x], sum);
    __syncthreads();
  }
  if (m < p.m && n < p.n) {
    const long long at = static_cast<long long>(m) * p.n + n;
    const double v = sum + widen(p.bias[n]);
    out[at] = 0.5 * v * (1.0 + erf(v * 0.70710678118654752440)) + widen(p.residual[at]);
  }
}

// Of each row: the sums of squares of the difference and of the reference. One block a row.
__global__ void __launch_bounds__(256) compare(const f16* found, const double* expected, int n, double* rows) {
  __shared__ double sums[2][256];
  double difference = 0, size = 0;
  for (int i = threadIdx.x; i < n; i += 256) {
    const double e = expected[static_cast<long long>(blockIdx.x) * n + i];
    const double d = widen(found[static_cast<long long>(blockIdx.x) * n + i]) - e;
    difference += d * d, size += e * e;
  }
  sums[0][threadIdx.x] = difference, sums[1][threadIdx.x] = size;
  __syncthreads();
  if (threadIdx.x < 2) {
    double sum = 0;
    for (int i = 0; i < 256; ++i) sum += sums[threadIdx.x][i];
    rows[blockIdx.x * 2 + threadIdx.x] = sum;
  }
}
