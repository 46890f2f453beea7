//! The configuration of Stepwarden: a folder of workflows and agents.
//!
//! [`Folder::check`] finds every fault of a folder at once. [`Settings`] has the agents of `stepwarden.toml`, which are
//! stored as its text and read from it again.
//!
//! What must never be here: files, the environment, the values of secrets, and calls of any service.

use domain::limits::DOCUMENT_BYTES_MAX;

pub mod apply;
pub mod auth;
pub mod deployment;
mod folder;
mod foreign;
pub mod keys;
mod reference;
mod remote;
mod settings;
pub mod sinks;
mod status;
mod webhook;

pub use deployment::DeploymentFile;
pub use folder::{Checked, CheckedWorkflow, DEPLOYMENT_FILE, Fault, Faults, Folder, WORKFLOWS_FOLDER};
pub use reference::{Reference, SecretSource};
pub use remote::{BadUrl, CALLBACK_URL, IDEMPOTENCY_KEY, Operations, Remote, SIGNATURE_HEADERS, TRACE};
pub use settings::{AgentSettings, BadSettings, Settings, without_likely_secrets};
pub use status::{Condition, Meaning, StatusTable};
pub use webhook::{EventMeaning, WebhookScheme, WebhookSettings};

/// Largest file of a folder, in bytes.
pub const FILE_BYTES_MAX: usize = 64 * 1024;
/// Files of a folder.
pub const FILES_MAX: usize = 100;
/// All files of a folder together, in bytes of JSON: they go to the API in one request, with an operator and a reason.
pub const FOLDER_BYTES_MAX: usize = DOCUMENT_BYTES_MAX - COMMAND_BYTES_MAX;
/// The rest of such a request, in bytes: the operator and the reason, each character escaped, and the other members.
const COMMAND_BYTES_MAX: usize = 4 * 1024;
