// Instructions of sm_90a that the schedule of contraction_wgmma.cuh is made of. Names are those of the PTX ISA:
// "mbarrier", "cp.async.bulk.tensor", "tensormap.replace", "wgmma", "setmaxnreg".
// Addresses of shared memory are those of the shared window (see shared_address).

// --- mbarrier ---

FN void barrier_init(unsigned bar, int arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}

// Makes initialised barriers visible to the copy engine and to the cluster's other blocks.
FN void barrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

FN void barrier_arrive(unsigned bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

// Arrives at the barrier that block `rank` of the cluster has at the same address.
FN void barrier_arrive_at(unsigned bar, unsigned rank) {
  asm volatile(
      "{\n.reg .b32 there;\n"
      "mapa.shared::cluster.u32 there, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(bar),
      "r"(rank)
      : "memory");
}

// Arrives, and makes the phase wait for `bytes` of bulk copies too.
FN void barrier_arrive_expect(unsigned bar, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes) : "memory");
}

// Arrives once this thread's copy_async calls so far are done. Counts against the initial number.
FN void barrier_arrive_after_copies(unsigned bar) {
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

// Waits for the end of the phase with this parity. A wait that never ends traps.
template <bool kCluster>
FN void barrier_wait(unsigned bar, unsigned parity) {
  for (int tries = 0;; ++tries) {
    unsigned done;
    if constexpr (kCluster) {
      asm volatile(
          "{\n.reg .pred p;\n"
          "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p;\n}"
          : "=r"(done)
          : "r"(bar), "r"(parity)
          : "memory");
    } else {
      asm volatile(
          "{\n.reg .pred p;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p;\n}"
          : "=r"(done)
          : "r"(bar), "r"(parity)
          : "memory");
    }
    if (done) return;
    if (tries == 1 << 22) __trap();
  }
}

// --- cluster ---

FN unsigned cluster_rank() {
  unsigned r;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(r));
  return r;
}

// All threads of all blocks of the cluster.
FN void cluster_sync() {
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// --- tensor copies ---

// The box at (x, y) of the tensor that `map` describes, x being the contiguous coordinate; what is outside
// is zero. Completes on `bar`.
FN void copy_box(unsigned to, const void* map, int x, int y, unsigned bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(bar)
      : "memory");
}

// The same into all blocks of the cluster whose bit is set, at the same addresses.
FN void copy_box_to(unsigned short blocks, unsigned to, const void* map, int x, int y, unsigned bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
      "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
      "l"(map), "r"(x), "r"(y), "r"(bar), "h"(blocks)
      : "memory");
}

FN void prefetch_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// A warp writes the map of a binary16 matrix of `rows` x `columns`, contiguous along columns, for boxes of
// box_rows x 64 with the 128-byte swizzle, to device memory. `shared` is 128 bytes of its own, aligned to 128.
FN void build_map(void* map, unsigned shared, const void* matrix, int rows, int columns, int box_rows) {
  const int lane = threadIdx.x % 32;
  asm volatile("st.shared.b32 [%0], %1;" ::"r"(shared + lane * 4), "r"(0) : "memory");
  __syncwarp();
  if (lane == 0) {
    const unsigned long long pitch = static_cast<unsigned long long>(columns) * 2;
#define REPLACE(field) "tensormap.replace.tile." field ".shared::cta.b1024"
    asm volatile(REPLACE("global_address") ".b64 [%0], %1;" ::"r"(shared), "l"(matrix) : "memory");
    asm volatile(REPLACE("rank") ".b32 [%0], 1;" ::"r"(shared) : "memory");  // dimensions less one
    asm volatile(REPLACE("box_dim") ".b32 [%0], 0, %1;" ::"r"(shared), "r"(64) : "memory");
    asm volatile(REPLACE("box_dim") ".b32 [%0], 1, %1;" ::"r"(shared), "r"(box_rows) : "memory");
    asm volatile(REPLACE("global_dim") ".b32 [%0], 0, %1;" ::"r"(shared), "r"(columns) : "memory");
    asm volatile(REPLACE("global_dim") ".b32 [%0], 1, %1;" ::"r"(shared), "r"(rows) : "memory");
    asm volatile(REPLACE("global_stride") ".b64 [%0], 0, %1;" ::"r"(shared), "l"(pitch) : "memory");
    asm volatile(REPLACE("element_stride") ".b32 [%0], 0, %1;" ::"r"(shared), "r"(1) : "memory");
    asm volatile(REPLACE("element_stride") ".b32 [%0], 1, %1;" ::"r"(shared), "r"(1) : "memory");
    asm volatile(REPLACE("elemtype") ".b32 [%0], 6;" ::"r"(shared) : "memory");           // f16
    asm volatile(REPLACE("interleave_layout") ".b32 [%0], 0;" ::"r"(shared) : "memory");  // none
    asm volatile(REPLACE("swizzle_mode") ".b32 [%0], 3;" ::"r"(shared) : "memory");       // 128 bytes
    asm volatile(REPLACE("fill_mode") ".b32 [%0], 0;" ::"r"(shared) : "memory");          // zeros
#undef REPLACE
  }
  __syncwarp();
  asm volatile(
      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(map),
      "r"(shared)
      : "memory");
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

// --- wgmma ---

// Descriptor of a matrix in shared memory with the 128-byte swizzle: `leading` and `stride` are the offsets in
// bytes that the PTX ISA calls so, section "Strides" of "Shared Memory Matrix Layout".
FN unsigned long long matrix_descriptor(unsigned shared, unsigned leading, unsigned stride) {
  const auto field = [](unsigned x) { return static_cast<unsigned long long>((x & 0x3ffff) >> 4); };
  return field(shared) | field(leading) << 16 | field(stride) << 32 | 1ull << 62;
}

FN void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
FN void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Waits until at most kPending of the latest groups are under way.
template <int kPending>
FN void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(kPending) : "memory");
}

// Keeps uses of sums on their side of a fence or wait.
template <int kCount>
FN void keep_here(float (&acc)[kCount]) {
#pragma unroll
  for (int i = 0; i < kCount; ++i) asm volatile("" : "+f"(acc[i])::"memory");
}

// Shared memory that ordinary stores and cp.async wrote, to be read by wgmma.
FN void fence_before_wgmma() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

// --- registers ---

template <int kRegisters>
FN void take_registers() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
FN void give_registers() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
