//! Versioned records: health of services, memos of agents, jobs of operators, leases and others. A write replaces the whole record, and
//! succeeds only if its writer saw the last version.
//!
//! The record is stored as the domain's JSON. Other attributes beside it serve conditions and people who search. Each
//! write has its own nonce. Of two callers with the same content, only one may win; a retry of the winner must still
//! report success (rule 3).

use aws_sdk_dynamodb::operation::put_item::PutItemError;
use aws_sdk_dynamodb::types::{AttributeValue, ReturnValuesOnConditionCheckFailure};
use domain::ports::{Commit, Listed, PortError, Record, RecordKind, Records, Seen, Shown, sorted, surplus};
use serde::de::DeserializeOwned;

use super::Dynamo;
use super::record::{Item, Reader, bytes, number, text, time, ttl};
use crate::sdk_error::{chain, port_error};

/// The key that all alerts share. They are in the table of the jobs.
const ALERT: &str = "alert";
/// The key that all marks of schedules share. They are there too.
const SCHEDULE: &str = "schedule";
/// The attribute with the record.
const RECORD: &str = "Record";
const NONCE: &str = "Nonce";
/// The key that all jobs share, so that a list sees every write.
const JOB: &str = "job";
/// The key that all definitions of workflows share.
const DEFINITION: &str = "definition";
/// The key of the deployment.
const DEPLOYMENT: &str = "deployment";
/// The key that all dead letters share.
pub(super) const DEAD_LETTER: &str = "letter";
/// The time that an item outlives its record. A reader's clock may be behind, and the item must exist while the reader
/// counts it as valid.
const KEPT_MS: u64 = 60 * 60 * 1_000;
/// The maximum number of records deleted after one write.
const FORGOTTEN_MAX: usize = 10;

impl Records for Dynamo {
    async fn get<R: Record>(&self, key: &str) -> Result<Option<R>, PortError> {
        let operation = R::KIND.get();
        let request = self.client().get_item().table_name(self.table_of(R::KIND)).set_key(Some(key_of(R::KIND, key)));
        let found = request.consistent_read(true).send().await.map_err(|error| port_error(operation, &error))?;
        // An item without one is of a form that this version does not know, and is written over.
        let item = found.item.filter(|item| item.contains_key(RECORD));
        item.map(|item| record_of(operation, item)).transpose()
    }

    async fn put<R: Record>(&self, seen: Seen, record: &R) -> Result<Commit, PortError> {
        let commit = self.put_record(seen, record).await?;
        // What expires is deleted by DynamoDB.
        if commit == Commit::Committed && record.is_over() && record.expires_at().is_none() {
            // The record is written in any case. If the deletion fails, the next record that is over tries again.
            if let Err(error) = self.forget_surplus::<R>().await {
                tracing::warn!("records that are over are not deleted: {}", told(&error));
            }
        }
        Ok(commit)
    }

    async fn list<R: Listed>(&self, limit: usize) -> Result<Vec<R>, PortError> {
        let records = self.all(R::KIND.list(), limit).await?;
        // The index decides the order of dead letters that were settled in the same millisecond, on every page alike.
        Ok(if R::KIND == RecordKind::DeadLetter { records } else { sorted(records, limit) })
    }
}

impl Dynamo {
    pub(super) async fn put_record<R: Record>(&self, seen: Seen, record: &R) -> Result<Commit, PortError> {
        let operation = R::KIND.put();
        let body = serde_json::to_string(record).map_err(|error| PortError::refused(operation, error))?;
        let nonce = bytes(&self.random().to_be_bytes());
        let mut item = key_of(R::KIND, record.key());
        item.extend(record.shown().into_iter().map(|(name, shown)| (name.to_owned(), value_of(shown))));
        if let Some(expires_at) = record.expires_at() {
            item.insert("ExpiresAt".to_owned(), time(expires_at));
            item.insert("TTL".to_owned(), ttl(expires_at.plus_ms(KEPT_MS)));
        }
        item.insert("Version".to_owned(), number(record.version()));
        item.insert(RECORD.to_owned(), text(body));
        item.insert(NONCE.to_owned(), nonce.clone());
        let (expression, values) = condition(seen, record.expires_at().is_some());
        let mut request = self
            .client()
            .put_item()
            .table_name(self.table_of(R::KIND))
            .set_item(Some(item))
            .condition_expression(expression)
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld);
        for (name, value) in values {
            request = request.expression_attribute_values(name, value);
        }
        let Err(error) = request.send().await else {
            return Ok(Commit::Committed);
        };
        match error.as_service_error() {
            Some(PutItemError::ConditionalCheckFailedException(failed)) => {
                let is_own = failed.item().is_some_and(|stored| stored.get(NONCE) == Some(&nonce));
                Ok(if is_own { Commit::Committed } else { Commit::Conflict })
            }
            _ => Err(port_error(operation, &error)),
        }
    }

    /// Deletes surplus records, at most [`FORGOTTEN_MAX`].
    async fn forget_surplus<R: Record>(&self) -> Result<(), PortError> {
        let operation = R::KIND.put();
        for record in surplus(self.all::<R>(operation, usize::MAX).await?).into_iter().take(FORGOTTEN_MAX) {
            let request = self
                .client()
                .delete_item()
                .table_name(self.table_of(R::KIND))
                .set_key(Some(key_of(R::KIND, record.key())))
                .condition_expression("Version = :seen")
                .expression_attribute_values(":seen", number(record.version()));
            request.send().await.map_err(|error| port_error(operation, &error))?;
        }
        Ok(())
    }

    /// All records of a kind; of dead letters, the `limit` that were settled last. A record of an unknown form is skipped,
    /// so that it does not block the others.
    async fn all<R: Record>(&self, operation: &'static str, limit: usize) -> Result<Vec<R>, PortError> {
        let table = self.table_of(R::KIND);
        let items = match R::KIND {
            // Reads the whole table. It has one item for each agent of the workflows, or for each shard and recent job.
            RecordKind::Service | RecordKind::Memo | RecordKind::Lease => self.scan(operation, table).await?,
            RecordKind::Job => self.partition(operation, table, JOB).await?,
            RecordKind::Alert => self.partition(operation, table, ALERT).await?,
            RecordKind::Schedule => self.partition(operation, table, SCHEDULE).await?,
            RecordKind::Definition => self.partition(operation, table, DEFINITION).await?,
            RecordKind::Deployment => self.partition(operation, table, DEPLOYMENT).await?,
            RecordKind::DeadLetter => self.newest(operation, table, DEAD_LETTER, limit).await?,
        };
        let records = items.into_iter().map(|item| record_of::<R>(operation, item));
        let read = |record: Result<R, PortError>| {
            record.inspect_err(|error| tracing::error!("a record cannot be read: {}", told(error))).ok()
        };
        Ok(records.filter_map(read).collect())
    }

    /// All items of a small table, by a consistent read.
    async fn scan(&self, operation: &'static str, table: &str) -> Result<Vec<Item>, PortError> {
        let (mut all, mut start) = (Vec::new(), None);
        loop {
            let request = self.client().scan().table_name(table).consistent_read(true);
            let page = request.set_exclusive_start_key(start).send().await;
            let page = page.map_err(|error| port_error(operation, &error))?;
            all.extend(page.items.into_iter().flatten());
            start = page.last_evaluated_key;
            if start.is_none() {
                return Ok(all);
            }
        }
    }

    fn table_of(&self, kind: RecordKind) -> &str {
        match kind {
            RecordKind::Service => &self.tables().services,
            RecordKind::Memo => &self.tables().memos,
            RecordKind::Job | RecordKind::Alert | RecordKind::Schedule => &self.tables().jobs,
            RecordKind::Definition | RecordKind::Deployment => &self.tables().definitions,
            RecordKind::Lease => &self.tables().leases,
            RecordKind::DeadLetter => &self.tables().dead_letters,
        }
    }
}

/// The key of a record in the table of its kind.
fn key_of(kind: RecordKind, key: &str) -> Item {
    match kind {
        RecordKind::Service => Item::from([("Service".to_owned(), text(key))]),
        RecordKind::Memo => Item::from([("Key".to_owned(), text(key))]),
        RecordKind::Job => Item::from([("Kind".to_owned(), text(JOB)), ("JobID".to_owned(), text(key))]),
        RecordKind::Alert => Item::from([("Kind".to_owned(), text(ALERT)), ("JobID".to_owned(), text(key))]),
        RecordKind::Schedule => Item::from([("Kind".to_owned(), text(SCHEDULE)), ("JobID".to_owned(), text(key))]),
        RecordKind::Definition => Item::from([("Kind".to_owned(), text(DEFINITION)), ("Key".to_owned(), text(key))]),
        RecordKind::Deployment => Item::from([("Kind".to_owned(), text(DEPLOYMENT)), ("Key".to_owned(), text(key))]),
        RecordKind::Lease => Item::from([("Name".to_owned(), text(key))]),
        RecordKind::DeadLetter => {
            Item::from([("Kind".to_owned(), text(DEAD_LETTER)), ("MessageID".to_owned(), text(key))])
        }
    }
}

fn value_of(shown: Shown) -> AttributeValue {
    match shown {
        Shown::Text(words) => text(words),
        Shown::Time(at) => time(at),
    }
}

/// The condition of a write, and its values. A record that had expired at the time of the read counts as absent.
fn condition(seen: Seen, expires: bool) -> (&'static str, Vec<(&'static str, AttributeValue)>) {
    let version = (":seen", number(seen.version));
    let now = (":now", number(seen.at.epoch_ms()));
    match (seen.version, expires) {
        (0, false) => ("attribute_not_exists(Version)", Vec::new()),
        (0, true) => ("attribute_not_exists(Version) OR ExpiresAt <= :now", vec![now]),
        (_, false) => ("Version = :seen", vec![version]),
        (_, true) => ("Version = :seen AND ExpiresAt > :now", vec![version, now]),
    }
}

/// The record in an item.
fn record_of<R: DeserializeOwned>(operation: &'static str, item: Item) -> Result<R, PortError> {
    let mut reader = Reader::new(item);
    let record = reader.text(RECORD).map_err(|error| PortError::refused(operation, error))?;
    let record = serde_json::from_str(&record).map_err(|error| reader.wrong(RECORD, error.to_string()));
    record.map_err(|error| PortError::refused(operation, error))
}

/// The problem of a record, for a log. The text of the error itself names only the operation.
fn told(error: &PortError) -> String {
    chain(error)
}
