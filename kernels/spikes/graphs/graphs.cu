// How a program of 43 launches is run at sizes that change from call to call: by launches, by a graph made anew, by
// a graph whose nodes are updated, and by one graph whose kernels read the sizes from a device buffer, with grids for
// the greatest size. Results of all ways are compared; then host time and latency of a call are printed.

#include <cuda_runtime.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

#define CHECK(call)                                                                      \
  do {                                                                                   \
    cudaError_t error_ = (call);                                                         \
    if (error_ != cudaSuccess) {                                                         \
      std::printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(error_)); \
      std::exit(1);                                                                      \
    }                                                                                    \
  } while (0)

constexpr int kWidth = 384, kLayers = 6, kPerLayer = 7, kLaunches = kLayers * kPerLayer + 1;
constexpr int kMaxRows = 512, kMaxPast = 2048;

struct Sizes {
  int rows, past;
};

struct Args {
  const Sizes* sizes;  // null: `given` holds
  Sizes given;
  const float* in;
  const float* weights;
  float* out;
  int salt;
};

__device__ __forceinline__ Sizes sizes_of(const Args& a) { return a.sizes ? *a.sizes : a.given; }

__device__ __forceinline__ void wait_for_previous(bool dependent) {
#if __CUDA_ARCH__ >= 900
  if (dependent) asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ __forceinline__ void let_next_begin(bool dependent) {
#if __CUDA_ARCH__ >= 900
  if (dependent) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// A row of the result per block, kWidth threads: reads its row and the weights' first kDepth rows.
template <int kDepth, bool kDependent>
__global__ void rows_kernel(Args a) {
  let_next_begin(kDependent);
  wait_for_previous(kDependent);
  const int row = blockIdx.x;
  if (row >= sizes_of(a).rows) return;
  float sum = a.in[row * kWidth + threadIdx.x];
  for (int k = 0; k < kDepth; ++k)
    sum = fmaf(a.weights[k * kWidth + threadIdx.x], a.in[row * kWidth + (threadIdx.x + k + a.salt) % kWidth], sum);
  a.out[row * kWidth + threadIdx.x] = 0.5f * sum / (1.0f + fabsf(sum));
}

// Walks over `past` rows of weights in blocks of 64, one block each; each adds its part to a part of the result.
template <bool kDependent>
__global__ void past_kernel(Args a) {
  let_next_begin(kDependent);
  wait_for_previous(kDependent);
  const Sizes sizes = sizes_of(a);
  const int first = blockIdx.x * 64;
  if (first >= sizes.past) return;
  const int last = min(first + 64, sizes.past);
  float sum = 0;
  for (int k = first; k < last; ++k) sum = fmaf(a.weights[k * kWidth + threadIdx.x], a.in[threadIdx.x], sum);
  a.out[kMaxRows * kWidth + blockIdx.x * kWidth + threadIdx.x] = sum;
}

// Adds the parts of past_kernel up, in order.
template <bool kDependent>
__global__ void combine_kernel(Args a) {
  let_next_begin(kDependent);
  wait_for_previous(kDependent);
  const int parts = (sizes_of(a).past + 63) / 64;
  float sum = a.in[threadIdx.x];
  for (int k = 0; k < parts; ++k) sum += a.in[kMaxRows * kWidth + k * kWidth + threadIdx.x];
  a.out[threadIdx.x] = 0.5f * sum / (1.0f + fabsf(sum));
}

__global__ void write_sizes(Sizes sizes, Sizes* to) { *to = sizes; }

struct Workload {
  const char* name;
  bool decode;
};

struct Program {
  float *x, *y, *weights;
  Sizes* device_sizes;
  Workload workload;

  // The n-th launch at `sizes`, with a grid for `bound`; by value unless `in_buffer`.
  template <bool kDependent>
  void launch(cudaStream_t stream, int n, Sizes sizes, Sizes bound, bool in_buffer) const {
    void (*kernel)(Args);
    int blocks;
    describe<kDependent>(n, bound, &kernel, &blocks);
    Args args = args_of(n, sizes, in_buffer);
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(kWidth);
    config.stream = stream;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    config.attrs = &attribute;
    config.numAttrs = kDependent && n > 0 ? 1 : 0;
    CHECK(cudaLaunchKernelEx(&config, kernel, args));
  }

  template <bool kDependent>
  void describe(int n, Sizes bound, void (**kernel)(Args), int* blocks) const {
    const int which = n % kPerLayer;
    *kernel = which % 2 ? rows_kernel<16, kDependent> : rows_kernel<64, kDependent>;
    *blocks = bound.rows;
    if (workload.decode && which == 2) *kernel = past_kernel<kDependent>, *blocks = (bound.past + 63) / 64;
    if (workload.decode && which == 3) *kernel = combine_kernel<kDependent>, *blocks = 1;
  }

  Args args_of(int n, Sizes sizes, bool in_buffer) const {
    Args args = {};
    args.sizes = in_buffer ? device_sizes : nullptr;
    if (!in_buffer) args.given = sizes;
    const bool past = workload.decode && n % kPerLayer == 2;
    const int pasts = workload.decode ? n / kPerLayer + (n % kPerLayer > 2) : 0;
    const bool swapped = (n - pasts) % 2;  // past_kernel writes beside its own input, all others to the other buffer
    args.in = swapped ? y : x;
    args.out = swapped == past ? y : x;
    args.weights = weights;
    args.salt = n;
    return args;
  }
};

using Clock = std::chrono::steady_clock;
double microseconds(Clock::duration d) { return std::chrono::duration<double, std::micro>(d).count(); }

double percentile(std::vector<double> v, double p) {
  std::sort(v.begin(), v.end());
  return v[std::min(v.size() - 1, static_cast<size_t>(p * v.size()))];
}

int main() {
  CHECK(cudaSetDevice(0));
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  Program program = {};
  const size_t floats = (kMaxRows + kMaxPast / 64) * kWidth;
  CHECK(cudaMalloc(&program.x, floats * 4));
  CHECK(cudaMalloc(&program.y, floats * 4));
  CHECK(cudaMalloc(&program.weights, kMaxPast * kWidth * 4));
  CHECK(cudaMalloc(&program.device_sizes, sizeof(Sizes)));
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  std::vector<float> start(floats), weights(kMaxPast * kWidth);
  for (float& f : start) f = uniform(random);
  for (float& f : weights) f = 0.1f * uniform(random);
  CHECK(cudaMemcpy(program.weights, weights.data(), weights.size() * 4, cudaMemcpyHostToDevice));
  Sizes* pinned;
  CHECK(cudaHostAlloc(&pinned, sizeof(Sizes), cudaHostAllocDefault));

  std::printf("%-9s %-34s %8s %8s %8s %8s\n", "workload", "way", "host p50", "host p99", "call p50", "call p99");
  for (Workload workload : {Workload{"decode", true}, Workload{"lengths", false}}) {
    program.workload = workload;
    std::vector<Sizes> calls;
    if (workload.decode) {
      for (int i = 1; i <= 2000; ++i) calls.push_back({1, i});
    } else {
      for (int i = 0; i < 200; ++i) calls.push_back({1 + static_cast<int>(random() % kMaxRows), 1});
    }
    const Sizes bound = workload.decode ? Sizes{1, kMaxPast} : Sizes{kMaxRows, 1};
    auto all = [&]<bool kDependent>(Sizes sizes, Sizes grids, bool in_buffer) {
      for (int n = 0; n < kLaunches; ++n) program.launch<kDependent>(stream, n, sizes, grids, in_buffer);
    };
    auto captured = [&](auto&& body) {
      cudaGraph_t graph;
      CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
      body();
      CHECK(cudaStreamEndCapture(stream, &graph));
      return graph;
    };
    auto instantiated = [&](cudaGraph_t graph) {
      cudaGraphExec_t exec;
      CHECK(cudaGraphInstantiate(&exec, graph, 0));
      CHECK(cudaGraphUpload(exec, stream));
      return exec;
    };
    auto kernel_nodes = [&](cudaGraph_t graph) {
      size_t count = 0;
      CHECK(cudaGraphGetNodes(graph, nullptr, &count));
      std::vector<cudaGraphNode_t> nodes(count);
      CHECK(cudaGraphGetNodes(graph, nodes.data(), &count));
      return nodes;
    };

    cudaGraph_t exact_graph = captured([&] { all.operator()<false>(calls[0], calls[0], false); });
    cudaGraphExec_t exact = instantiated(exact_graph), updated = instantiated(exact_graph);
    std::vector<cudaGraphNode_t> nodes = kernel_nodes(exact_graph);
    cudaGraphExec_t outside = instantiated(captured([&] { all.operator()<false>(bound, bound, true); }));
    cudaGraphExec_t outside_dependent = instantiated(captured([&] { all.operator()<true>(bound, bound, true); }));
    cudaGraphExec_t copied = instantiated(captured([&] {
      CHECK(cudaMemcpyAsync(program.device_sizes, pinned, sizeof(Sizes), cudaMemcpyHostToDevice, stream));
      all.operator()<false>(bound, bound, true);
    }));
    auto with_writer = [&](bool dependent) {
      return captured([&] {
        write_sizes<<<1, 1, 0, stream>>>(bound, program.device_sizes);
        dependent ? all.operator()<true>(bound, bound, true) : all.operator()<false>(bound, bound, true);
      });
    };
    cudaGraph_t written_graph = with_writer(false), dependent_graph = with_writer(true);
    cudaGraphExec_t written = instantiated(written_graph), dependent = instantiated(dependent_graph);
    auto first_node = [&](cudaGraph_t graph) {
      cudaGraphNode_t root;
      size_t one = 1;
      CHECK(cudaGraphGetRootNodes(graph, &root, &one));
      return root;
    };
    cudaGraphNode_t writer = first_node(written_graph), dependent_writer = first_node(dependent_graph);
    auto set_sizes = [&](cudaGraphExec_t exec, cudaGraphNode_t node, Sizes sizes) {
      void* params[] = {&sizes, &program.device_sizes};
      cudaKernelNodeParams p = {};
      p.func = reinterpret_cast<void*>(write_sizes);
      p.gridDim = p.blockDim = dim3(1);
      p.kernelParams = params;
      CHECK(cudaGraphExecKernelNodeSetParams(exec, node, &p));
    };

    struct Way {
      const char* name;
      std::function<void(Sizes)> call;
    };
    const std::vector<Way> ways = {
        {"launches", [&](Sizes s) { all.operator()<false>(s, s, false); }},
        {"launches, dependent", [&](Sizes s) { all.operator()<true>(s, s, false); }},
        {"captured, instantiated anew",
         [&](Sizes s) {
           cudaGraph_t graph = captured([&] { all.operator()<false>(s, s, false); });
           cudaGraphExec_t exec;
           CHECK(cudaGraphInstantiate(&exec, graph, 0));
           CHECK(cudaGraphLaunch(exec, stream));
           CHECK(cudaGraphExecDestroy(exec));
           CHECK(cudaGraphDestroy(graph));
         }},
        {"captured, graph updated",
         [&](Sizes s) {
           cudaGraph_t graph = captured([&] { all.operator()<false>(s, s, false); });
           cudaGraphExecUpdateResultInfo info;
           CHECK(cudaGraphExecUpdate(updated, graph, &info));
           CHECK(cudaGraphLaunch(updated, stream));
           CHECK(cudaGraphDestroy(graph));
         }},
        {"nodes updated",
         [&](Sizes s) {
           for (int n = 0; n < kLaunches; ++n) {
             void (*kernel)(Args);
             int blocks;
             program.describe<false>(n, s, &kernel, &blocks);
             Args args = program.args_of(n, s, false);
             void* params[] = {&args};
             cudaKernelNodeParams p = {};
             p.func = reinterpret_cast<void*>(kernel);
             p.gridDim = dim3(blocks);
             p.blockDim = dim3(kWidth);
             p.kernelParams = params;
             CHECK(cudaGraphExecKernelNodeSetParams(exact, nodes[n], &p));
           }
           CHECK(cudaGraphLaunch(exact, stream));
         }},
        {"one graph, sizes copied in it",
         [&](Sizes s) {
           *pinned = s;
           CHECK(cudaGraphLaunch(copied, stream));
         }},
        {"one graph, sizes written before it",
         [&](Sizes s) {
           write_sizes<<<1, 1, 0, stream>>>(s, program.device_sizes);
           CHECK(cudaGraphLaunch(outside, stream));
         }},
        {"one graph, its first node updated",
         [&](Sizes s) {
           set_sizes(written, writer, s);
           CHECK(cudaGraphLaunch(written, stream));
         }},
        {"the same, dependent launches",
         [&](Sizes s) {
           set_sizes(dependent, dependent_writer, s);
           CHECK(cudaGraphLaunch(dependent, stream));
         }},
        {"written before, dependent launches",
         [&](Sizes s) {
           write_sizes<<<1, 1, 0, stream>>>(s, program.device_sizes);
           CHECK(cudaGraphLaunch(outside_dependent, stream));
         }},
    };
    std::vector<float> expected, found(floats);
    for (const Way& way : ways) {
      CHECK(cudaMemcpy(program.x, start.data(), floats * 4, cudaMemcpyHostToDevice));
      CHECK(cudaMemcpy(program.y, start.data(), floats * 4, cudaMemcpyHostToDevice));
      std::vector<double> host, whole;
      for (int round = 0; round < 2; ++round) {  // the first warms up
        host.clear(), whole.clear();
        for (Sizes sizes : calls) {
          auto begin = Clock::now();
          way.call(sizes);
          auto submitted = Clock::now();
          CHECK(cudaStreamSynchronize(stream));
          auto end = Clock::now();
          host.push_back(microseconds(submitted - begin));
          whole.push_back(microseconds(end - begin));
        }
      }
      CHECK(cudaMemcpy(found.data(), program.x, floats * 4, cudaMemcpyDeviceToHost));
      if (expected.empty()) expected = found;
      const bool equal = std::memcmp(found.data(), expected.data(), floats * 4) == 0;
      std::printf("%-9s %-34s %8.1f %8.1f %8.1f %8.1f%s\n", workload.name, way.name, percentile(host, 0.5),
                  percentile(host, 0.99), percentile(whole, 0.5), percentile(whole, 0.99),
                  equal ? "" : "  DIFFERENT RESULT");
    }
  }

  std::printf("\nblocks of 384 threads that leave at once: microseconds a launch (graph of 50)\n");
  Sizes none = {0, 0};
  CHECK(cudaMemcpy(program.device_sizes, &none, sizeof none, cudaMemcpyHostToDevice));
  for (int blocks : {1, 132, 512, 2048, 8192, 32768, 131072}) {
    Args args = {};
    args.sizes = program.device_sizes;
    args.in = program.x, args.out = program.y, args.weights = program.weights;
    cudaGraph_t graph;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 50; ++i) rows_kernel<64, false><<<blocks, kWidth, 0, stream>>>(args);
    CHECK(cudaStreamEndCapture(stream, &graph));
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    std::vector<double> times;
    for (int i = 0; i < 25; ++i) {
      CHECK(cudaStreamSynchronize(stream));
      auto begin = Clock::now();
      CHECK(cudaGraphLaunch(exec, stream));
      CHECK(cudaStreamSynchronize(stream));
      times.push_back(microseconds(Clock::now() - begin) / 50);
    }
    std::printf("%7d blocks %8.2f\n", blocks, percentile(times, 0.5));
  }

  // What an empty graph costs on the host.
  {
    cudaGraph_t graph;
    CHECK(cudaGraphCreate(&graph, 0));
    cudaGraphExec_t exec;
    CHECK(cudaGraphInstantiate(&exec, graph, 0));
    std::vector<double> times;
    for (int i = 0; i < 2000; ++i) {
      auto begin = Clock::now();
      CHECK(cudaGraphLaunch(exec, stream));
      times.push_back(microseconds(Clock::now() - begin));
      if (i % 64 == 0) CHECK(cudaStreamSynchronize(stream));
    }
    std::printf("\nempty graph: host %.2f p50, %.2f p99\n", percentile(times, 0.5), percentile(times, 0.99));
  }
  return 0;
}
