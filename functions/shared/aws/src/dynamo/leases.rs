//! Leases: one conditional update each.

use aws_sdk_dynamodb::operation::update_item::UpdateItemError;
use aws_sdk_dynamodb::operation::update_item::builders::UpdateItemFluentBuilder;
use aws_sdk_dynamodb::types::{ReturnValue, ReturnValuesOnConditionCheckFailure};
use domain::limits::CLOCKS_DIFFER_MS;
use domain::ports::{Lease, LeaseRecord, Leases, PortError};
use domain::time::Timestamp;

use super::Dynamo;
use super::record::{Item, Reader, Unreadable, number, text, time, ttl};
use crate::sdk_error::port_error;

/// The time that an item outlives its lease. The epoch must keep counting, so that a process frozen for less than this
/// time cannot be mistaken for the holder.
const KEPT_MS: u64 = 7 * 24 * 60 * 60 * 1_000;
/// Reading stops after the page that reaches this number of records. There is one for each shard, and a few more.
const ALL_MAX: usize = 1_000;
/// The end of a term that is always over.
const GIVEN_BACK: Timestamp = Timestamp::from_epoch_ms(0);

impl Leases for Dynamo {
    async fn acquire(&self, name: &str, owner: &str, now: Timestamp, term_ms: u64) -> Result<Option<Lease>, PortError> {
        const OPERATION: &str = "leases.acquire";
        let expires_at = now.plus_ms(term_ms);
        let lease = |epoch| Lease { name: name.into(), owner: owner.into(), epoch, expires_at };
        let request = self
            .update_lease(name)
            .update_expression(
                "SET #owner = :owner, #epoch = if_not_exists(#epoch, :none) + :one, #expires = :expires, #ttl = :ttl, \
                 #renewed = :now REMOVE #health",
            )
            .condition_expression("attribute_not_exists(#name) OR #expires <= :now OR #expires > :believed")
            .expression_attribute_names("#name", "Name")
            .expression_attribute_names("#owner", "Owner")
            .expression_attribute_names("#epoch", "Epoch")
            .expression_attribute_names("#expires", "ExpiresAt")
            .expression_attribute_names("#ttl", "TTL")
            .expression_attribute_names("#health", "Health")
            .expression_attribute_names("#renewed", "RenewedAt")
            .expression_attribute_values(":owner", text(owner))
            .expression_attribute_values(":none", number(0))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":expires", time(expires_at))
            .expression_attribute_values(":ttl", ttl(expires_at.plus_ms(KEPT_MS)))
            .expression_attribute_values(":now", time(now))
            .expression_attribute_values(":believed", time(expires_at.plus_ms(CLOCKS_DIFFER_MS)))
            .return_values(ReturnValue::AllNew);
        let held = match request.send().await {
            Ok(taken) => held(taken.attributes.unwrap_or_default()),
            Err(error) => match error.as_service_error() {
                Some(UpdateItemError::ConditionalCheckFailedException(failed)) => {
                    // An earlier attempt of this call may have taken the lease, and its answer was lost.
                    let held = held(failed.item.clone().unwrap_or_default());
                    let is_own = |held: &Held| *held.owner == *owner && held.expires_at == expires_at;
                    return Ok(held.ok().filter(is_own).map(|held| lease(held.epoch)));
                }
                _ => return Err(port_error(OPERATION, &error)),
            },
        };
        held.map(|held| Some(lease(held.epoch))).map_err(|error| PortError::refused(OPERATION, error))
    }

    async fn renew(
        &self,
        lease: &Lease,
        now: Timestamp,
        term_ms: u64,
        health: &str,
    ) -> Result<Option<Lease>, PortError> {
        let expires_at = now.plus_ms(term_ms);
        let request = self
            .update_held(lease)
            .update_expression("SET #expires = :expires, #ttl = :ttl, #health = :health, #renewed = :now")
            .condition_expression("#epoch = :epoch AND #owner = :owner AND #expires > :now")
            .expression_attribute_names("#expires", "ExpiresAt")
            .expression_attribute_names("#ttl", "TTL")
            .expression_attribute_names("#health", "Health")
            .expression_attribute_names("#renewed", "RenewedAt")
            .expression_attribute_values(":expires", time(expires_at))
            .expression_attribute_values(":ttl", ttl(expires_at.plus_ms(KEPT_MS)))
            .expression_attribute_values(":health", text(health))
            .expression_attribute_values(":now", time(now));
        let renewed = if_held("leases.renew", request).await?;
        Ok(renewed.then(|| Lease { expires_at, ..lease.clone() }))
    }

    async fn release(&self, lease: &Lease) -> Result<(), PortError> {
        let request = self
            .update_held(lease)
            .update_expression("SET #expires = :given_back")
            .condition_expression("#epoch = :epoch AND #owner = :owner")
            .expression_attribute_names("#expires", "ExpiresAt")
            .expression_attribute_values(":given_back", time(GIVEN_BACK));
        if_held("leases.release", request).await?;
        Ok(())
    }

    async fn report(&self, name: &str, owner: &str, now: Timestamp, health: &str) -> Result<(), PortError> {
        let request = self
            .update_lease(name)
            .update_expression(
                "SET #owner = :owner, #epoch = if_not_exists(#epoch, :none) + :one, #expires = :given_back, \
                 #ttl = :ttl, #health = :health, #renewed = :now",
            )
            .expression_attribute_names("#owner", "Owner")
            .expression_attribute_names("#epoch", "Epoch")
            .expression_attribute_names("#expires", "ExpiresAt")
            .expression_attribute_names("#ttl", "TTL")
            .expression_attribute_names("#health", "Health")
            .expression_attribute_names("#renewed", "RenewedAt")
            .expression_attribute_values(":owner", text(owner))
            .expression_attribute_values(":none", number(0))
            .expression_attribute_values(":one", number(1))
            .expression_attribute_values(":given_back", time(GIVEN_BACK))
            .expression_attribute_values(":ttl", ttl(now.plus_ms(KEPT_MS)))
            .expression_attribute_values(":health", text(health))
            .expression_attribute_values(":now", time(now));
        request.send().await.map(drop).map_err(|error| port_error("leases.report", &error))
    }

    async fn all_leases(&self) -> Result<Vec<LeaseRecord>, PortError> {
        const OPERATION: &str = "leases.all_leases";
        let (mut all, mut start) = (Vec::new(), None);
        while all.len() < ALL_MAX {
            let request = self.client().scan().table_name(&self.tables().leases).consistent_read(true);
            let page = request.set_exclusive_start_key(start).send().await;
            let page = page.map_err(|error| port_error(OPERATION, &error))?;
            for item in page.items.into_iter().flatten() {
                all.push(record(item).map_err(|error| PortError::refused(OPERATION, error))?);
            }
            start = page.last_evaluated_key;
            if start.is_none() {
                break;
            }
        }
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }
}

impl Dynamo {
    fn update_lease(&self, name: &str) -> UpdateItemFluentBuilder {
        let request = self.client().update_item().table_name(&self.tables().leases).key("Name", text(name));
        request.return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
    }

    /// An update of a lease that its caller believes to hold.
    fn update_held(&self, lease: &Lease) -> UpdateItemFluentBuilder {
        self.update_lease(&lease.name)
            .expression_attribute_names("#epoch", "Epoch")
            .expression_attribute_names("#owner", "Owner")
            .expression_attribute_values(":epoch", number(lease.epoch))
            .expression_attribute_values(":owner", text(&*lease.owner))
    }
}

/// Whether the update's condition held.
async fn if_held(operation: &'static str, request: UpdateItemFluentBuilder) -> Result<bool, PortError> {
    match request.send().await {
        Ok(_) => Ok(true),
        Err(error) => match error.as_service_error() {
            Some(UpdateItemError::ConditionalCheckFailedException(_)) => Ok(false),
            _ => Err(port_error(operation, &error)),
        },
    }
}

/// The lease in an item.
struct Held {
    owner: String,
    epoch: u64,
    expires_at: Timestamp,
}

fn held(item: Item) -> Result<Held, Unreadable> {
    let mut reader = Reader::new(item);
    Ok(Held { owner: reader.text("Owner")?, epoch: reader.number("Epoch")?, expires_at: reader.time("ExpiresAt")? })
}

fn record(item: Item) -> Result<LeaseRecord, Unreadable> {
    let mut reader = Reader::new(item);
    Ok(LeaseRecord {
        name: reader.text("Name")?.into(),
        owner: reader.text("Owner")?.into(),
        epoch: reader.number("Epoch")?,
        expires_at: Some(reader.time("ExpiresAt")?).filter(|at| *at != GIVEN_BACK),
        renewed_at: reader.time_if("RenewedAt")?,
        health: reader.text_if("Health")?.map(Into::into),
    })
}
