//! What the workspace's tests share: small networks that exercise every operator and fusion, with
//! inputs, for the CPU (groups interpreted) and for the GPU (kernels run).

pub mod cases;
pub mod compare;
pub mod decoder;
pub mod device;
pub mod manifest;
pub mod models;
pub mod net;
pub mod packed;
pub mod picture;
pub mod sessions;
