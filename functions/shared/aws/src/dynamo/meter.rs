//! Counts capacity units as DynamoDB bills them, for each request. It serves tests and measurements of an order's cost.
//! A client without a meter does not ask DynamoDB for these figures.

use std::fmt;
use std::sync::Arc;

use aws_sdk_dynamodb::config::interceptors::{
    BeforeSerializationInterceptorContextMut, FinalizerInterceptorContextRef,
};
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::BoxError;
use aws_sdk_dynamodb::operation::batch_get_item::{BatchGetItemInput, BatchGetItemOutput};
use aws_sdk_dynamodb::operation::delete_item::{DeleteItemInput, DeleteItemOutput};
use aws_sdk_dynamodb::operation::get_item::{GetItemInput, GetItemOutput};
use aws_sdk_dynamodb::operation::put_item::{PutItemInput, PutItemOutput};
use aws_sdk_dynamodb::operation::query::{QueryInput, QueryOutput};
use aws_sdk_dynamodb::operation::scan::{ScanInput, ScanOutput};
use aws_sdk_dynamodb::operation::transact_write_items::{TransactWriteItemsInput, TransactWriteItemsOutput};
use aws_sdk_dynamodb::operation::update_item::{UpdateItemInput, UpdateItemOutput};
use aws_sdk_dynamodb::types::{ConsumedCapacity, ReturnConsumedCapacity};

/// The units that one request consumed of one table. DynamoDB does not report them for a request with a failed
/// condition.
#[derive(Debug, Clone, PartialEq)]
pub struct Consumed {
    /// The operation, like `UpdateItem`.
    pub operation: &'static str,
    /// The table.
    pub table: String,
    /// Write units of the table itself; none for a read.
    pub table_write_units: f64,
    /// Write units of its indexes together; none for a read.
    pub index_write_units: f64,
    /// Read units of table and indexes together; none for a write.
    pub read_units: f64,
}

/// An interceptor of a DynamoDB client that reports the consumed units of each request.
///
/// ```
/// # use aws::dynamo::Meter;
/// let meter = Meter::new(|consumed| tracing::debug!("{consumed:?}"));
/// let config = aws_sdk_dynamodb::Config::builder().interceptor(meter);
/// ```
#[derive(Clone)]
pub struct Meter(Arc<dyn Fn(Consumed) + Send + Sync>);

impl Meter {
    /// Reports to `tell`.
    pub fn new(tell: impl Fn(Consumed) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }

    fn read(&self, operation: &'static str, capacity: &ConsumedCapacity) {
        self.tell(operation, capacity, |total, _| (0.0, 0.0, total));
    }

    fn wrote(&self, operation: &'static str, capacity: &ConsumedCapacity) {
        self.tell(operation, capacity, |total, indexes| (total - indexes, indexes, 0.0));
    }

    fn tell(
        &self,
        operation: &'static str,
        capacity: &ConsumedCapacity,
        split: impl FnOnce(f64, f64) -> (f64, f64, f64),
    ) {
        let indexes = capacity.global_secondary_indexes().into_iter().flatten();
        let indexes = indexes.filter_map(|(_, index)| index.capacity_units()).fold(0.0, |sum, units| sum + units);
        let total = capacity.capacity_units().unwrap_or(0.0);
        let (table_write_units, index_write_units, read_units) = split(total, indexes);
        let table = capacity.table_name().unwrap_or_default().to_owned();
        (self.0)(Consumed { operation, table, table_write_units, index_write_units, read_units });
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meter")
    }
}

impl Intercept for Meter {
    fn name(&self) -> &'static str {
        "Meter"
    }

    fn modify_before_serialization(
        &self,
        context: &mut BeforeSerializationInterceptorContextMut<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let input = context.input_mut();
        macro_rules! ask {
            ($($input:ty),+) => {
                $(if let Some(input) = input.downcast_mut::<$input>() {
                    input.return_consumed_capacity = Some(ReturnConsumedCapacity::Indexes);
                })+
            };
        }
        ask!(GetItemInput, BatchGetItemInput, QueryInput, ScanInput);
        ask!(PutItemInput, UpdateItemInput, DeleteItemInput, TransactWriteItemsInput);
        Ok(())
    }

    fn read_after_execution(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let Some(Ok(output)) = context.output_or_error() else {
            return Ok(());
        };
        macro_rules! tell {
            ($($output:ty: $tell:ident $operation:literal),+) => {
                $(if let Some(output) = output.downcast_ref::<$output>() {
                    output.consumed_capacity().into_iter().for_each(|capacity| self.$tell($operation, capacity));
                })+
            };
        }
        tell!(
            GetItemOutput: read "GetItem",
            BatchGetItemOutput: read "BatchGetItem",
            QueryOutput: read "Query",
            ScanOutput: read "Scan",
            PutItemOutput: wrote "PutItem",
            UpdateItemOutput: wrote "UpdateItem",
            DeleteItemOutput: wrote "DeleteItem",
            TransactWriteItemsOutput: wrote "TransactWriteItems"
        );
        Ok(())
    }
}
