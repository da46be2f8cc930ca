//! Runs that nobody waits for yet.

use std::sync::Arc;

use super::CudaModel;
use super::context::Context;
use super::driver::Notice;
use super::execution::Fetch;
use crate::Result;

/// A run that is going on. If it is dropped, the run goes on, and what it gives is lost.
#[derive(Debug)]
pub(crate) struct Started<'m> {
    model: &'m CudaModel,
    /// Given back when this is dropped.
    context: Option<Context>,
    fetches: Vec<Fetch>,
    notice: Arc<Notice>,
}

impl<'m> Started<'m> {
    pub(super) fn new(
        model: &'m CudaModel,
        context: Context,
        fetches: Vec<Fetch>,
        notice: Arc<Notice>,
    ) -> Self {
        Self { model, context: Some(context), fetches, notice }
    }

    /// Waits for the end of the run.
    pub(crate) async fn ended(&self) -> Result<()> {
        std::future::poll_fn(|task| self.notice.poll(self.model.gpu(), task)).await?;
        if let Some(context) = &self.context {
            context.flight.over();
        }
        Ok(())
    }

    /// The shape and the bytes of the n-th output on the host, after the run has ended.
    pub(crate) fn output(&self, index: usize) -> Option<(&[usize], &[u8])> {
        let fetch = self.fetches.get(index)?;
        Some((&fetch.shape, self.context.as_ref()?.fetched(fetch)))
    }
}

impl Drop for Started<'_> {
    fn drop(&mut self) {
        if let Some(context) = self.context.take() {
            self.model.give_back(context);
        }
    }
}
