//! Memos of agents. DynamoDB deletes them some time after they expired; until then they only count as not there.

use domain::ports::{Commit, Memo, Memos, PortError};
use domain::time::Timestamp;

use super::Dynamo;
use super::record::{Item, text, time};
use super::versioned::{Condition, Replacement, record_of, ttl};

/// How long an item outlives its memo: an agent's clock may be behind, and what it still sees must still be there.
const KEPT_MS: u64 = 60 * 60 * 1_000;

impl Memos for Dynamo {
    async fn memo(&self, key: &str, now: Timestamp) -> Result<Option<Memo>, PortError> {
        const OPERATION: &str = "memos.memo";
        let found = self.get_versioned(OPERATION, &self.tables().memos, key_of(key)).await?;
        let memo: Option<Memo> = found.map(|item| record_of(OPERATION, item)).transpose()?;
        Ok(memo.filter(|memo| memo.expires_at > now))
    }

    async fn set_memo(&self, version_before: u64, memo: Memo, now: Timestamp) -> Result<Commit, PortError> {
        let mut item = key_of(&memo.key);
        item.insert("ExpiresAt".to_owned(), time(memo.expires_at));
        item.insert("TTL".to_owned(), ttl(memo.expires_at.plus_ms(KEPT_MS)));
        self.put_versioned(Replacement {
            operation: "memos.set_memo",
            table: &self.tables().memos,
            item,
            version: memo.version,
            record: &memo,
            condition: Condition { version_before, now: Some(now) },
        })
        .await
    }
}

fn key_of(key: &str) -> Item {
    Item::from([("Key".to_owned(), text(key))])
}
