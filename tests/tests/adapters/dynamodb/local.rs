//! DynamoDB in the test's own process, with our tables in it. If `STEPWARDEN_DYNAMODB_URL` is set, it names another
//! stand-in, in which each test has its own tables.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use aws::config::Access;
use aws::dynamo::{Attribute, Dynamo, Index, Kind, Projection, TABLES, Table, Tables};
use aws::ports::System;
use aws_credential_types::Credentials;
use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::Builder;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, GlobalSecondaryIndex, KeySchemaElement, KeyType, ProjectionType,
    ScalarAttributeType, TimeToLiveSpecification,
};
use domain::limits::SHARDS;
use domain::task::Task;
use dynoxide::Database;
use tests::conformance::samples::NOON;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A DynamoDB with empty tables.
pub(crate) struct Local {
    /// Its address.
    pub(crate) url: String,
    /// Names of the tables.
    pub(crate) tables: Tables,
    server: Option<JoinHandle<()>>,
}

impl Local {
    /// Starts a DynamoDB and creates the tables.
    pub(crate) async fn start() -> Self {
        let (url, server) = match elsewhere() {
            Some(url) => (url, None),
            None => {
                let database = Database::memory().unwrap();
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let url = format!("http://{}", listener.local_addr().unwrap());
                let serve = async move { dynoxide::server::serve_on(listener, database).await };
                (url, Some(tokio::spawn(serve)))
            }
        };
        let local = Self { url, tables: tables(), server };
        let client = local.client();
        for table in &TABLES {
            create(&client, table, local.tables.name(table.variable).unwrap()).await;
        }
        local
    }

    /// The configuration of its client, as in a function.
    pub(crate) fn config(&self) -> Builder {
        self.client().config().to_builder()
    }

    /// A client of it.
    pub(crate) fn client(&self) -> Client {
        let access = Access {
            region: "eu-central-1".into(),
            credentials: Credentials::new("test", "test", None, None, "tests"),
            dynamodb_url: Some(self.url.as_str().into()),
            sqs_url: None,
            eventbridge_url: None,
        };
        aws::clients::dynamodb_alone(&access).unwrap()
    }

    /// Deletes a task that has a time to live. At the earliest 15 days after its submission: a message of the order may
    /// come until then.
    pub(crate) async fn delete_as_by_ttl(&self, task: &Task) {
        const MESSAGE_LIVES_MS: u64 = 15 * 24 * 60 * 60 * 1_000;
        let (client, key) = (self.client(), AttributeValue::S(task.order_id.to_string()));
        let found = client.get_item().table_name(&self.tables.tasks).key("OrderID", key.clone()).send().await.unwrap();
        let until = task.history[0].at.plus_ms(MESSAGE_LIVES_MS).max(task.expires_at.unwrap());
        let ttl = AttributeValue::N((until.plus_ms(999).epoch_ms() / 1_000).to_string());
        assert_eq!(found.item.unwrap().get("TTL"), Some(&ttl));
        client.delete_item().table_name(&self.tables.tasks).key("OrderID", key).send().await.unwrap();
    }

    /// The ports on it, with a client of this configuration. Lists begin at the time of the samples.
    pub(crate) fn ports(&self, config: Builder) -> Dynamo {
        static SEED: AtomicU64 = AtomicU64::new(0);
        // Each has nonces of its own.
        let system = System::simulated(SEED.fetch_add(1, Ordering::Relaxed), || NOON);
        Dynamo::new(Client::from_conf(config.build()), self.tables.clone(), SHARDS, system)
    }
}

impl Drop for Local {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.abort();
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a test that can be sent to another stand-in")]
fn elsewhere() -> Option<String> {
    std::env::var("STEPWARDEN_DYNAMODB_URL").ok().filter(|url| !url.is_empty())
}

/// Names that are unique to each test.
fn tables() -> Tables {
    static TESTS: AtomicU32 = AtomicU32::new(0);
    let test = format!("test-{}-{}", std::process::id(), TESTS.fetch_add(1, Ordering::Relaxed));
    let name = |table: &str| format!("{test}-{table}");
    Tables {
        orders: name("orders"),
        tasks: name("tasks"),
        leases: name("leases"),
        services: name("services"),
        memos: name("memos"),
        definitions: name("definitions"),
        jobs: name("jobs"),
        dead_letters: name("dead-letters"),
        index: name("index"),
        numbers: name("numbers"),
    }
}

async fn create(client: &Client, table: &Table, name: &str) {
    let keys_of = |hash: Attribute, range: Option<Attribute>| {
        let hash = [(hash, KeyType::Hash)].into_iter();
        hash.chain(range.map(|range| (range, KeyType::Range))).collect::<Vec<_>>()
    };
    let schema = |keys: &[(Attribute, KeyType)]| {
        let element = |(key, kind): &(Attribute, KeyType)| {
            KeySchemaElement::builder().attribute_name(key.name).key_type(kind.clone()).build().unwrap()
        };
        keys.iter().map(element).collect::<Vec<_>>()
    };
    let keys = keys_of(table.hash, table.range);
    let mut attributes: Vec<Attribute> = keys.iter().map(|(key, _)| *key).collect();
    let indexes = table.indexes.iter().map(|Index { name, hash, range, projection }| {
        let keys = keys_of(*hash, Some(*range));
        attributes.extend(keys.iter().map(|(key, _)| *key));
        let projection = match projection {
            Projection::Keys => ProjectionType::KeysOnly,
            Projection::All => ProjectionType::All,
        };
        let projection = aws_sdk_dynamodb::types::Projection::builder().projection_type(projection).build();
        let index = GlobalSecondaryIndex::builder().index_name(*name).projection(projection);
        index.set_key_schema(Some(schema(&keys))).build().unwrap()
    });
    let indexes: Vec<_> = indexes.collect();
    attributes.sort_by_key(|attribute| attribute.name);
    attributes.dedup();
    let definitions = attributes.iter().map(|attribute| {
        let kind = match attribute.kind {
            Kind::Text => ScalarAttributeType::S,
            Kind::Number => ScalarAttributeType::N,
        };
        AttributeDefinition::builder().attribute_name(attribute.name).attribute_type(kind).build().unwrap()
    });
    let request = client
        .create_table()
        .table_name(name)
        .billing_mode(BillingMode::PayPerRequest)
        .set_key_schema(Some(schema(&keys)))
        .set_attribute_definitions(Some(definitions.collect()));
    request.set_global_secondary_indexes((!indexes.is_empty()).then_some(indexes)).send().await.unwrap();
    if let Some(ttl) = table.ttl {
        let ttl = TimeToLiveSpecification::builder().attribute_name(ttl).enabled(true).build().unwrap();
        client.update_time_to_live().table_name(name).time_to_live_specification(ttl).send().await.unwrap();
    }
}
