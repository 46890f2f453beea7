//! What is known, while a record is handled, to everything that handles it: its trace, and its company.
//!
//! The ports' methods say nothing of either, since an order's fate does not depend on them.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

tokio::task_local! {
    static CURRENT: Scope;
}

/// The surroundings of one record, or of one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// The X-Ray header that whatever is sent on behalf of the record carries on.
    pub(crate) trace_header: Option<Arc<str>>,
    /// Who else may send something soon.
    pub(crate) company: Company,
}

/// Counts those of an invocation that are still at work and may send something. Cloning it counts the same ones.
#[derive(Debug, Clone, Default)]
pub(crate) struct Company(Arc<AtomicUsize>);

/// One of them; it is counted until this is dropped.
#[derive(Debug)]
pub(crate) struct Member(Company);

impl Scope {
    /// The surroundings of whatever is running. Outside of any, there is no trace and nobody else.
    pub(crate) fn current() -> Self {
        CURRENT.try_with(Self::clone).unwrap_or_default()
    }

    /// Does `work` in these surroundings, as one more member of the company.
    pub(crate) async fn run<T>(self, work: impl Future<Output = T>) -> T {
        let _member = self.company.join();
        CURRENT.scope(self, work).await
    }
}

impl Company {
    /// A crowd of at least so many, of whom nobody tells when they are done.
    pub(crate) fn of(size: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(size)))
    }

    /// Counts one more.
    pub(crate) fn join(&self) -> Member {
        self.0.fetch_add(1, Relaxed);
        Member(self.clone())
    }

    /// How many there are.
    pub(crate) fn size(&self) -> usize {
        self.0.load(Relaxed)
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::Barrier;

    use super::*;

    #[tokio::test]
    async fn two_records_of_a_batch_have_each_their_own_trace_and_know_of_each_other() {
        let company = Company::default();
        let of = |trace: &str| Scope { trace_header: Some(trace.into()), company: company.clone() };
        let both = Barrier::new(2);
        let look = || async {
            both.wait().await;
            let Scope { trace_header, company } = Scope::current();
            let size = company.size();
            both.wait().await;
            (trace_header, size)
        };
        let (a, b) = tokio::join!(of("a").run(look()), of("b").run(look()));
        assert_eq!((a.0.as_deref(), b.0.as_deref()), (Some("a"), Some("b")));
        assert_eq!((a.1, b.1, company.size()), (2, 2, 0));
        assert_eq!(Scope::current().trace_header, None);
    }
}
