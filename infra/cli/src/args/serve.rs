//! The options of `stepwarden serve`.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use domain::redaction::REDACTED_BY_DEFAULT;
use http::HeaderName;
use local::BadSetting;
use local::hosts;
use local::reply_channels::ReplyChannel;
use local::serve::{self, RemoteSettings};
use standins::Service;

use super::{named, period};

pub(super) const SERVE_HELP: &str = "\
Alerts:
  An order that needs an operator is one line on stderr: ALERT, the order, its step, the reason, the remedy.
  `stepwarden alerts` lists the causes. Slack, e-mail or a webhook are told of each: [alerts.NAME] in stepwarden.toml.

Reply channels:
  An order may name a registered channel: {\"ReplyChannel\": \"shop\"}. Its status messages OrderReceived, OrderWaiting,
  OrderLate, OrderProcessed, OrderFailed, OrderCompensated and OrderClosed are CloudEvents. Each is posted to the URL of
  the channel until a 2xx comes within 2 s. Duplicates are possible: the highest data.Version is the latest.";

/// `stepwarden serve`
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Address to listen on. 0.0.0.0 lets other machines in, and needs callers (--tokens, --jwt-issuer or
    /// --trusted-proxy), or --no-auth
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// The callers, each with a token and roles: a file of `stepwarden token add`. It is read again when it changes.
    /// Without it, --jwt-issuer or --trusted-proxy, anybody who reaches the API may do everything
    #[arg(long, value_name = "FILE")]
    pub tokens: Option<PathBuf>,
    /// Callers have tokens (JWT) of this issuer: https, or http on this machine. Its keys are found by its
    /// /.well-known/openid-configuration. The name of a caller is the claim `sub`
    #[arg(long, value_name = "URL", requires = "jwt_audience", value_parser = serve::issuer_url)]
    pub jwt_issuer: Option<String>,
    /// The name of this API that a token of --jwt-issuer must have as `aud`
    #[arg(long, value_name = "NAME", requires = "jwt_issuer")]
    pub jwt_audience: Option<String>,
    /// The claim with the roles of a caller: its name, or a JSON pointer such as /realm_access/roles
    #[arg(long, value_name = "CLAIM", default_value = "roles", requires = "jwt_issuer")]
    pub jwt_roles_claim: String,
    /// A proxy that names the caller in --trusted-header and --trusted-roles-header, by its address, or `unix` for all
    /// that call by --socket (repeatable, or with commas). Such a header of anybody else is refused
    #[arg(long = "trusted-proxy", value_name = "ADDRESS", value_delimiter = ',', requires = "trusted_header")]
    pub trusted_proxies: Vec<serve::TrustedPeer>,
    /// The header in which --trusted-proxy names the caller, such as X-Forwarded-User
    #[arg(long, value_name = "NAME", requires = "trusted_proxies", value_parser = of_a_proxy)]
    pub trusted_header: Option<HeaderName>,
    /// The header in which --trusted-proxy names the roles of the caller, with commas between them
    #[arg(
        long,
        value_name = "NAME",
        default_value = "x-forwarded-roles",
        requires = "trusted_proxies",
        value_parser = of_a_proxy
    )]
    pub trusted_roles_header: HeaderName,
    /// Let other machines do everything, without a token: something else keeps strangers out
    #[arg(long, conflicts_with_all = ["tokens", "jwt_issuer", "trusted_proxies"])]
    pub no_auth: bool,
    /// A further host name to accept, for a proxy that passes Host on (repeatable). On a loopback address, serve
    /// accepts only localhost, 127.0.0.1, ::1 and these names: a defence against DNS rebinding. On any other address
    /// Host is checked only if a name is given
    #[arg(long = "allow-host", value_name = "NAME", value_parser = hosts::host_name)]
    pub allowed_hosts: Vec<String>,
    /// Port of the API; 0 picks a free port
    #[arg(long, value_name = "PORT", default_value_t = 3000)]
    pub port: u16,
    /// The certificate of this server (PEM), with those of its issuers after it: the port speaks TLS, and nothing else.
    /// It is read again when it changes
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert (PEM, without a password)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// A Unix socket to listen on too, which only its owner can open; commands call it as unix:PATH
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Listen on --socket alone
    #[arg(long, requires = "socket", conflicts_with_all = ["host", "port", "tls_cert", "tls_key"])]
    pub no_port: bool,
    /// The URL of this API as the services reach it, for the results that they tell later. Unless given, the address
    /// and port above; its host name is accepted as with --allow-host
    #[arg(long, value_name = "URL", value_parser = hosts::PublicUrl::parse)]
    pub public_url: Option<hosts::PublicUrl>,
    /// Data directory; created if missing
    #[arg(long, value_name = "DIR", default_value = ".stepwarden")]
    pub data: PathBuf,
    /// Start although committed transactions are missing, for example after a disk lost them: go on without them
    #[arg(long)]
    pub accept_loss: bool,
    /// Show the data, keep new orders (GET is 404) and commands for the next start, and call no service: for a restored copy
    #[arg(long)]
    pub paused: bool,
    /// The most orders under way; while there are as many, a new one is answered 503 and not accepted
    #[arg(long, value_name = "N", default_value_t = serve::ORDERS_MAX, value_parser = clap::value_parser!(u64).range(1..))]
    pub orders_max: u64,
    /// Orders that one known caller may post in a second; more are answered 429
    #[arg(long, value_name = "N", default_value_t = serve::POST_RATE, value_parser = clap::value_parser!(u32).range(1..))]
    pub post_rate: u32,
    /// Days for which the audit stream is kept; for ever, unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub audit_days: Option<u32>,
    /// Form of the log and of the alerts on stderr
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
    /// Period of the supervisors' sweep for overdue orders: 10ms to 1h
    #[arg(long, value_name = "PERIOD", default_value = "1s", value_parser = period("10ms", "1h"))]
    pub supervise_every: Duration,
    /// Supervisors that share the sweep by leases: 1 to 64
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    pub supervisors: u16,
    /// A reply channel that orders may name in "ReplyChannel"; its status messages go to the URL (repeatable)
    #[arg(long = "reply-channel", value_name = "NAME=URL", value_parser = ReplyChannel::parse)]
    pub reply_channels: Vec<ReplyChannel>,
    /// A member whose value is hidden in documents and outputs, at any depth (repeatable; replaces the defaults)
    #[arg(long, value_name = "NAME", default_values = REDACTED_BY_DEFAULT)]
    pub redact: Vec<String>,
    /// A configuration folder (see `stepwarden init`), applied at the start: its workflows, its agents, its reply
    /// channels and its alerts. Orders keep the version that they began with. Without it, the workflows and agents that
    /// were applied before stay, and no alert is sent
    #[arg(long, value_name = "DIR")]
    pub config: Option<PathBuf>,
    /// The remote services.
    #[command(flatten)]
    pub services: ServiceArgs,
}

/// The forms of the log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Lines for people
    #[default]
    Text,
    /// One JSON object for each line
    Json,
}

/// The URLs of the remote services as given (an empty URL means none), and options of their agents.
#[derive(Debug, Clone, Default, Args)]
pub struct ServiceArgs {
    /// Base URL of the inventory service (reserve, release); default: a stand-in
    #[arg(long, value_name = "URL", env = "INVENTORY_URL")]
    pub inventory_url: Option<String>,
    /// Base URL of the payment service (charge, refund); default: a stand-in
    #[arg(long, value_name = "URL", env = "PAYMENT_URL")]
    pub payment_url: Option<String>,
    /// Base URL of the shipping service (ship, cancel); default: a stand-in
    #[arg(long, value_name = "URL", env = "SHIPPING_URL")]
    pub shipping_url: Option<String>,
    /// Store the results of a service that ignores idempotency keys (repeatable): inventory, payment, shipping
    #[arg(long, value_name = "SERVICE", value_parser = service)]
    pub memo: Vec<Service>,
    /// The most waiting orders released per second when a failed service recovers. At the normal rate, the service gets
    /// about twice its normal load, new orders included. By default the release doubles each second
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub release_max: Option<u32>,
}

impl ServeArgs {
    /// The issuer of tokens, if there is one.
    #[must_use]
    pub fn jwt(&self) -> Option<serve::JwtSettings> {
        let (issuer, audience) = self.jwt_issuer.clone().zip(self.jwt_audience.clone())?;
        Some(serve::JwtSettings { issuer, audience, roles_claim: self.jwt_roles_claim.clone() })
    }

    /// The proxies that name callers, if there are any.
    #[must_use]
    pub fn proxy(&self) -> Option<serve::ProxySettings> {
        let (peers, roles) = (self.trusted_proxies.clone(), self.trusted_roles_header.clone());
        self.trusted_header.clone().map(|name| serve::ProxySettings { peers, name, roles })
    }
}

impl ServiceArgs {
    /// Converts into the settings of the local machine. `variable` reads the environment, for secrets.
    ///
    /// # Errors
    /// [`BadSetting`] for URLs that cannot be used.
    pub fn settings(self, variable: fn(&str) -> Option<String>) -> Result<RemoteSettings, BadSetting> {
        let Self { inventory_url, payment_url, shipping_url, memo, release_max } = self;
        let settings = RemoteSettings::at([&inventory_url, &payment_url, &shipping_url].map(Option::as_deref))?;
        Ok(RemoteSettings { memo, release_max, variable: Some(variable), ..settings })
    }
}

fn service(text: &str) -> Result<Service, String> {
    named(&Service::ALL, Service::name, text)
}

/// A header that a proxy sets. One that clients send themselves, with whatever value, names no caller.
fn of_a_proxy(text: &str) -> Result<HeaderName, String> {
    let name: HeaderName = text.parse().map_err(|_| "is not the name of a header".to_owned())?;
    if ["x-", "remote-"].iter().any(|prefix| name.as_str().starts_with(prefix)) {
        Ok(name)
    } else {
        Err("clients may send it themselves: give one that the proxy alone sets, and that begins with X- or Remote-"
            .to_owned())
    }
}
