//! Access to the parts of the ports. Each role's `…Ports` trait names the parts that the role may use.
//!
//! A part is also its own access: an implementation of [`Store`] has a store, namely itself. So a test double of one
//! part needs nothing around it, and an adapter is a struct of parts without any forwarding.

use super::{Environment, Events, Queues, Records, Store};

macro_rules! parts {
    ($($has:ident, $part:ident, $method:ident: $what:literal;)+) => {
        $(
            #[doc = concat!("Gives access to ", $what, ".")]
            pub trait $has: Send + Sync {
                #[doc = concat!("The adapter of ", $what, ".")]
                type $part: $part;

                #[doc = concat!("Access to ", $what, ".")]
                fn $method(&self) -> &Self::$part;
            }

            impl<P: $part> $has for P {
                type $part = P;

                fn $method(&self) -> &P {
                    self
                }
            }
        )+
    };
}

parts! {
    HasStore, Store, store: "the order database and the state store";
    HasQueues, Queues, queues: "the queues between the functions";
    HasEvents, Events, events: "the event bus and the reply channels";
    HasRecords, Records, records: "the versioned records";
    HasEnvironment, Environment, environment: "time and randomness";
}

/// Implements the access to parts for a struct that holds them: each line names the trait, the part, and the expression
/// that finds it.
///
/// ```
/// # use domain::ports::{Environment, HasEnvironment};
/// struct Ports<E> {
///     clock: E,
/// }
///
/// domain::has_parts!([E: Environment] Ports<E> {
///     HasEnvironment, Environment = E, environment: |ports| &ports.clock;
/// });
/// ```
#[macro_export]
macro_rules! has_parts {
    ([$($generics:tt)*] $owner:ty {
        $($has:ident, $part:ident = $type:ty, $method:ident: |$ports:ident| $found:expr;)+
    }) => {
        $crate::has_parts!(@each [$($generics)*] [$owner] $([$has $part [$type] $method $ports $found])+);
    };
    (@each $generics:tt $owner:tt $($line:tt)+) => {
        $($crate::has_parts!(@one $generics $owner $line);)+
    };
    (@one [$($generics:tt)*] [$owner:ty] [$has:ident $part:ident [$type:ty] $method:ident $ports:ident $found:expr]) => {
        impl<$($generics)*> $crate::ports::$has for $owner {
            type $part = $type;

            fn $method(&self) -> &Self::$part {
                let $ports = self;
                $found
            }
        }
    };
}
