//! From a model of the manifest to what is compiled for it: import, plan, and what can be said of
//! the result.

mod artifacts;
mod error;
mod import;
mod model;
mod options;
mod plan;
mod resources;
mod summary;
mod text;
mod units;
mod work;

pub use artifacts::{Artifacts, TargetImages, run_once};
pub use error::ModelError;
pub use import::{ManifestProblems, import_model};
pub use model::{Prepared, prepare, with_plan, with_plan_of};
pub use options::{bucket_bounds, feature, import_options, lower_options, targets};
pub use plan::{Planned, assemble_model, lower_model};
pub use resources::kernel_usage;
pub use summary::{
    BufferSummary, DimSummary, KernelSummary, LaunchSummary, MemorySummary, ModelSummary,
    PortSummary, TargetSummary,
};
pub use units::{ImportArtifact, ModelUnits, PlanArtifact, PlannedKernel, Workshop};
pub use work::Work;
