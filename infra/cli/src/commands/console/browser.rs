//! Opens the page in a browser without revealing its address.
//!
//! Every user of the machine can read the command line of a process, and the address contains the token. So the browser
//! opens a file that only its owner can read, which redirects to the page.

use std::io::Write;
use std::process::Stdio;

use tempfile::NamedTempFile;
use tokio::process::Command;

use super::super::dialogue;

/// Opens a URL in the browser; without a browser the printed address is enough. Dropping the value removes the file.
pub(super) async fn open(url: &str) -> Option<NamedTempFile> {
    let opened = async {
        let file = leading_to(url).ok()?;
        let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
        let mut command = Command::new(program);
        command.arg(file.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.status().await.is_ok_and(|status| status.success()).then_some(file)
    };
    let file = opened.await;
    if file.is_none() {
        dialogue::note("no browser could be opened; open the address by hand");
    }
    file
}

/// A page that redirects to a URL of letters, digits and slashes; only the owner can read it.
fn leading_to(url: &str) -> std::io::Result<NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix("stepwarden-console-").suffix(".html").tempfile()?;
    writeln!(
        file,
        "<!doctype html><meta charset=\"utf-8\"><meta name=\"referrer\" content=\"no-referrer\">\
         <meta http-equiv=\"refresh\" content=\"0;url={url}\"><title>Stepwarden</title><a href=\"{url}\">The console</a>"
    )?;
    file.flush()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_file_that_leads_on_is_for_its_owner_alone_and_goes_with_the_value() {
        let url = "http://127.0.0.1:4000/0123456789abcdef/";
        let file = leading_to(url).unwrap();
        let path = file.path().to_owned();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert!(std::fs::read_to_string(&path).unwrap().contains(&format!("content=\"0;url={url}\"")));
        drop(file);
        assert!(!path.exists());
    }
}
