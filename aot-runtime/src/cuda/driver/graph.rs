//! Graphs: work that is put into a stream as a whole.

use std::ffi::c_void;
use std::sync::Arc;

use cudarc::driver::sys;

use super::counts::count_graph;
use super::module::Function;
use super::work::{Transfer, Work};
use super::{Gpu, Stream};
use crate::Result;

/// `CUDA 12.3`: drivers from there on have edges by which a kernel begins early.
const BEGINS_EARLY: u32 = 12030;
/// `CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC`: when all blocks have said so, or are done.
const PROGRAMMATIC_PORT: u8 = 1;

/// `CUDA 12.4`: drivers from there on have nodes whose work is done while a value says so, and kernels that set it.
const REPEATS: u32 = 12040;

/// Whether graphs can have loops whose end kernels decide.
pub(crate) fn has_loops(gpu: &Gpu) -> bool {
    gpu.driver() >= REPEATS
}

/// A chain of nodes that can be put into streams again and again, and changed in between. Chains of their own may be
/// within it, as bodies of loops.
#[derive(Debug)]
pub(crate) struct Graph {
    gpu: Arc<Gpu>,
    raw: sys::CUgraph,
    runs: sys::CUgraphExec,
    nodes: Vec<sys::CUgraphNode>,
    enabled: Vec<bool>,
    /// Nodes that decide whether loops go on, and the loops' handles, which are their first arguments.
    deciding: Vec<(usize, u64)>,
}

// SAFETY: handles of graphs may be used from any thread, by one at a time.
unsafe impl Send for Graph {}
// SAFETY: shared access calls nothing.
unsafe impl Sync for Graph {}

/// A chain in the making.
#[derive(Debug)]
pub(crate) struct GraphBuilder {
    graph: Graph,
    /// Where nodes are added: the graph itself, or a body.
    chain: Chain,
    /// What the bodies around it stand in, outermost first.
    around: Vec<Chain>,
}

/// A chain as far as it is made.
#[derive(Debug)]
struct Chain {
    raw: sys::CUgraph,
    last: Option<sys::CUgraphNode>,
    /// Whether the last node is a kernel, which runs.
    after_kernel: bool,
    /// Of the loop whose body it is.
    handle: u64,
}

impl Chain {
    fn new(raw: sys::CUgraph, handle: u64) -> Self {
        Self { raw, last: None, after_kernel: false, handle }
    }
}

impl GraphBuilder {
    /// An empty chain.
    pub(crate) fn new(gpu: &Arc<Gpu>) -> Result<Self> {
        gpu.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: a context is current.
        gpu.check("cuGraphCreate", unsafe { sys::cuGraphCreate(&mut raw, 0) })?;
        let runs = std::ptr::null_mut();
        let (nodes, enabled, deciding) = (Vec::new(), Vec::new(), Vec::new());
        let graph = Graph { gpu: gpu.clone(), raw, runs, nodes, enabled, deciding };
        Ok(Self { graph, chain: Chain::new(raw, 0), around: Vec::new() })
    }

    /// Appends a node. A kernel that `waits` by itself for the kernel before it may begin when that one lets it.
    pub(crate) fn push(&mut self, work: &Work<'_>, waits: bool) -> Result<()> {
        let kernel = matches!(work, Work::Launch { .. }) && !work.is_empty();
        let Self { graph, chain, .. } = self;
        let early = waits && kernel && chain.after_kernel && graph.gpu.driver() >= BEGINS_EARLY;
        let node = graph.add(chain, work, early)?;
        (chain.last, chain.after_kernel) = (Some(node), kernel);
        graph.nodes.push(node);
        graph.enabled.push(!work.is_empty());
        Ok(())
    }

    /// Appends a kernel that writes what the kernel after it reads before it waits, which so begins when this one is done.
    pub(crate) fn push_apart(&mut self, work: &Work<'_>) -> Result<()> {
        self.push(work, false)?;
        self.chain.after_kernel = false;
        Ok(())
    }

    /// Appends a kernel that decides whether a loop, the node after it, has an iteration. What is pushed from here on is
    /// the loop's body. The kernel's first argument is set here.
    pub(crate) fn begin_loop(&mut self, deciding: &Work<'_>) -> Result<()> {
        let Self { graph, chain, .. } = self;
        let gpu = graph.gpu.clone();
        let mut handle = 0;
        // SAFETY: the driver has the function; the graph and the context are alive.
        gpu.check("cuGraphConditionalHandleCreate", unsafe {
            sys::cuGraphConditionalHandleCreate(&mut handle, chain.raw, gpu.context(), 0, 0)
        })?;
        self.decide(deciding, handle)?;
        // The driver wants zeros behind what the type has.
        let mut params = sys::CUgraphNodeParams {
            type_: sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
            reserved0: [0; 3],
            __bindgen_anon_1: sys::CUgraphNodeParams_st__bindgen_ty_1 { reserved1: [0; 29] },
            reserved2: 0,
        };
        params.__bindgen_anon_1.conditional = sys::CUDA_CONDITIONAL_NODE_PARAMS {
            handle,
            type_: sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE,
            size: 1,
            phGraph_out: std::ptr::null_mut(),
            ctx: gpu.context(),
        };
        let chain = &mut self.chain;
        let before = chain.last.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let mut node = std::ptr::null_mut();
        // SAFETY: the driver has the function; the node before, which `decide` added, is of this graph; the union holds
        // what the type says.
        let body = unsafe {
            let (edges, params) = (std::ptr::null(), &mut params);
            let added =
                sys::cuGraphAddNode_v2(&mut node, chain.raw, before, edges, 1, &mut *params);
            gpu.check("cuGraphAddNode", added)?;
            *params.__bindgen_anon_1.conditional.phGraph_out
        };
        (chain.last, chain.after_kernel) = (Some(node), false);
        self.around.push(std::mem::replace(chain, Chain::new(body, handle)));
        Ok(())
    }

    /// Ends the body of a loop by a kernel that decides whether there is another iteration. Its first argument is set
    /// here.
    pub(crate) fn end_loop(&mut self, deciding: &Work<'_>) -> Result<()> {
        self.decide(deciding, self.chain.handle)?;
        if let Some(outer) = self.around.pop() {
            self.chain = outer;
        }
        Ok(())
    }

    fn decide(&mut self, deciding: &Work<'_>, handle: u64) -> Result<()> {
        self.graph.deciding.push((self.graph.nodes.len(), handle));
        let mut arguments = Vec::new();
        self.push(&with_handle(deciding, handle, &mut arguments), false)
    }

    /// The chain, ready to run.
    pub(crate) fn finish(self) -> Result<Graph> {
        let Self { mut graph, .. } = self;
        count_graph();
        // SAFETY: the graph is complete.
        let made = unsafe { sys::cuGraphInstantiateWithFlags(&mut graph.runs, graph.raw, 0) };
        graph.gpu.check("cuGraphInstantiate", made)?;
        let wanted = std::mem::replace(&mut graph.enabled, vec![true; graph.nodes.len()]);
        wanted.into_iter().enumerate().try_for_each(|(n, enabled)| graph.enable(n, enabled))?;
        Ok(graph)
    }
}

impl Graph {
    /// Whether it has loops.
    pub(crate) fn decides(&self) -> bool {
        !self.deciding.is_empty()
    }

    fn add(&self, to: &Chain, work: &Work<'_>, early: bool) -> Result<sys::CUgraphNode> {
        let mut node = std::ptr::null_mut();
        let last = to.last.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        let (before, count) = match early {
            true => (std::ptr::null(), 0),
            false => (last, usize::from(to.last.is_some())),
        };
        match work {
            Work::Launch { function, blocks, arguments } => {
                let mut parameter = [arguments.as_ptr().cast_mut().cast::<c_void>()];
                let params = launch(function, *blocks, &mut parameter);
                // SAFETY: the node before is of this graph; the driver copies the parameter, whose
                // layout is the kernel's, before it returns.
                self.gpu.check("cuGraphAddKernelNode", unsafe {
                    sys::cuGraphAddKernelNode_v2(&mut node, to.raw, before, count, &params)
                })?;
            }
            Work::Copy(copy) => {
                let params = parameters(copy);
                // SAFETY: the node before is of this graph; the places are of this context.
                self.gpu.check("cuGraphAddMemcpyNode", unsafe {
                    sys::cuGraphAddMemcpyNode(
                        &mut node,
                        to.raw,
                        before,
                        count,
                        &params,
                        self.gpu.context(),
                    )
                })?;
            }
        }
        if early {
            let edge = sys::CUgraphEdgeData {
                from_port: PROGRAMMATIC_PORT,
                to_port: 0,
                type_: sys::CUgraphDependencyType::CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC as u8,
                reserved: [0; 5],
            };
            // SAFETY: the driver has the function; both nodes are kernels of this graph.
            self.gpu.check("cuGraphAddDependencies", unsafe {
                sys::cuGraphAddDependencies_v2(to.raw, last, &node, &edge, 1)
            })?;
        }
        Ok(node)
    }

    /// Changes the work of the n-th node, which stays of its kind. Runs that are in a stream already
    /// do the work that they had.
    pub(crate) fn set(&mut self, n: usize, work: &Work<'_>) -> Result<()> {
        let Some(&node) = self.nodes.get(n) else { return Ok(()) };
        if work.is_empty() {
            return self.enable(n, false);
        }
        let mut arguments = Vec::new();
        let deciding = self.deciding.iter().find(|(node, _)| *node == n);
        let work = match deciding {
            Some((_, handle)) => &with_handle(work, *handle, &mut arguments),
            None => work,
        };
        match work {
            Work::Launch { function, blocks, arguments } => {
                let mut parameter = [arguments.as_ptr().cast_mut().cast::<c_void>()];
                let params = launch(function, *blocks, &mut parameter);
                // SAFETY: as when it was added.
                self.gpu.check("cuGraphExecKernelNodeSetParams", unsafe {
                    sys::cuGraphExecKernelNodeSetParams_v2(self.runs, node, &params)
                })?;
            }
            Work::Copy(copy) => {
                let params = parameters(copy);
                // SAFETY: as when it was added.
                self.gpu.check("cuGraphExecMemcpyNodeSetParams", unsafe {
                    sys::cuGraphExecMemcpyNodeSetParams(
                        self.runs,
                        node,
                        &params,
                        self.gpu.context(),
                    )
                })?;
            }
        }
        self.enable(n, true)
    }

    fn enable(&mut self, n: usize, enabled: bool) -> Result<()> {
        if self.enabled[n] == enabled {
            return Ok(());
        }
        // SAFETY: the node is of the graph that this was made from.
        self.gpu.check("cuGraphNodeSetEnabled", unsafe {
            sys::cuGraphNodeSetEnabled(self.runs, self.nodes[n], u32::from(enabled))
        })?;
        self.enabled[n] = enabled;
        Ok(())
    }

    /// Puts all nodes into a stream.
    ///
    /// # Safety
    /// Every node's arguments have its kernel's layout, and the memory that nodes work on is what
    /// they expect, until they are done.
    pub(crate) unsafe fn launch(&self, stream: &Stream) -> Result<()> {
        // SAFETY: both are alive and of one context; the rest is the caller's promise.
        self.gpu.check("cuGraphLaunch", unsafe { sys::cuGraphLaunch(self.runs, stream.raw()) })
    }
}

/// A launch whose first argument is a loop's handle; `arguments` holds them.
fn with_handle<'a>(work: &Work<'a>, handle: u64, arguments: &'a mut Vec<u64>) -> Work<'a> {
    match *work {
        Work::Launch { function, blocks, arguments: given } => {
            arguments.push(handle);
            arguments.extend(given.iter().skip(1));
            Work::Launch { function, blocks, arguments }
        }
        copy => copy,
    }
}

/// A launch as a node has it. One that does nothing has one block, and is switched off.
fn launch(
    function: &Function,
    blocks: u32,
    parameter: &mut [*mut c_void; 1],
) -> sys::CUDA_KERNEL_NODE_PARAMS {
    sys::CUDA_KERNEL_NODE_PARAMS {
        func: function.raw(),
        gridDimX: blocks.max(1),
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: function.threads(),
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: function.shared(),
        kernelParams: parameter.as_mut_ptr(),
        extra: std::ptr::null_mut(),
        kern: std::ptr::null_mut(),
        ctx: std::ptr::null_mut(),
    }
}

/// A copy as a node has it. One that does nothing copies a byte, and is switched off.
fn parameters(copy: &Transfer) -> sys::CUDA_MEMCPY3D {
    use sys::CUmemorytype::{CU_MEMORYTYPE_DEVICE as DEVICE, CU_MEMORYTYPE_HOST as HOST};
    let (src_type, src_device, src_host, dst_type, dst_device, dst_host) = match *copy {
        Transfer::Within { from, to, .. } => (DEVICE, from, 0, DEVICE, to, 0),
        Transfer::Up { from, to, .. } => (HOST, 0, from, DEVICE, to, 0),
        Transfer::Down { from, to, .. } => (DEVICE, from, 0, HOST, 0, to),
    };
    let width = copy.bytes().max(1);
    sys::CUDA_MEMCPY3D {
        srcXInBytes: 0,
        srcY: 0,
        srcZ: 0,
        srcLOD: 0,
        srcMemoryType: src_type,
        srcHost: src_host as *const c_void,
        srcDevice: src_device,
        srcArray: std::ptr::null_mut(),
        reserved0: std::ptr::null_mut(),
        srcPitch: width,
        srcHeight: 1,
        dstXInBytes: 0,
        dstY: 0,
        dstZ: 0,
        dstLOD: 0,
        dstMemoryType: dst_type,
        dstHost: dst_host as *mut c_void,
        dstDevice: dst_device,
        dstArray: std::ptr::null_mut(),
        reserved1: std::ptr::null_mut(),
        dstPitch: width,
        dstHeight: 1,
        WidthInBytes: width,
        Height: 1,
        Depth: 1,
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        if self.gpu.enter().is_err() {
            return;
        }
        // SAFETY: both were made by the builder, if at all, and are destroyed once; runs in streams go on.
        unsafe {
            if !self.runs.is_null() {
                sys::cuGraphExecDestroy(self.runs);
            }
            sys::cuGraphDestroy(self.raw);
        }
    }
}
