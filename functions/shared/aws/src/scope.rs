//! The context of one record while its handler runs: its trace, and the work in flight beside it.
//!
//! The ports' methods do not carry this context, because the outcome of an order does not depend on it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

tokio::task_local! {
    static CURRENT: Scope;
}

/// The context of one record, or of one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Scope {
    /// The X-Ray header of the record's trace. Every message sent for the record carries it.
    pub(crate) trace_header: Option<Arc<str>>,
    /// The in-flight work that may send a message soon.
    pub(crate) company: Company,
}

/// Counts the in-flight work of an invocation that may send a message. A clone shares the count.
#[derive(Debug, Clone, Default)]
pub(crate) struct Company(Arc<AtomicUsize>);

/// One unit of in-flight work. It counts until its drop.
#[derive(Debug)]
pub(crate) struct Member(Company);

impl Scope {
    /// The context of the running task. Outside any context, there is no trace and no in-flight work.
    pub(crate) fn current() -> Self {
        CURRENT.try_with(Self::clone).unwrap_or_default()
    }

    /// Runs `work` in this context, and counts it as in flight.
    pub(crate) async fn run<T>(self, work: impl Future<Output = T>) -> T {
        let _member = self.company.join();
        CURRENT.scope(self, work).await
    }
}

impl Company {
    /// A fixed in-flight count, for work whose completion is not reported.
    pub(crate) fn of(size: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(size)))
    }

    /// Counts one more unit of work.
    pub(crate) fn join(&self) -> Member {
        self.0.fetch_add(1, Relaxed);
        Member(self.clone())
    }

    /// The in-flight count.
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
