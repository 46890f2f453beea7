//! Configuration folders.

use config::{DeploymentFile, Folder};
use domain::workflow::Workflow;

/// Begins the name of each file of a folder. What stands before the first is `stepwarden.toml`.
const FILE: &str = "--- ";

/// A fault has a place in its file and one line of text. What has none is stored as text, and read again as the same.
pub(super) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (deployment, rest) = text.split_once(FILE).unwrap_or((text, ""));
    let file = |text: &str| {
        let (name, text) = text.split_once('\n').unwrap_or((text, ""));
        (name.to_owned(), text.to_owned())
    };
    let mut files = vec![("stepwarden.toml".to_owned(), deployment.to_owned())];
    files.extend(rest.split(FILE).filter(|file| !file.is_empty()).map(file));
    match Folder::check(&files) {
        Err(faults) => {
            assert!(!faults.0.is_empty());
            for one in &faults.0 {
                let texts: Vec<&str> =
                    files.iter().filter(|(name, _)| **name == *one.file).map(|(_, text)| &**text).collect();
                let lines = texts.iter().map(|text| text.matches('\n').count() + 1).max().unwrap_or(1);
                assert!((1..=lines).contains(&one.fault.line) && one.fault.column >= 1, "{one}");
                assert!(!one.fault.problem.is_empty());
            }
        }
        Ok(checked) => {
            for one in &checked.workflows {
                assert_eq!(Workflow::read(&one.text).as_ref(), Ok(&one.workflow));
            }
            let stored = DeploymentFile::parse(&checked.deployment_text).expect("it was read before");
            assert_eq!(stored.default, checked.default);
            assert_eq!(
                stored.reply_channels.keys().collect::<Vec<_>>(),
                checked.reply_channels.keys().collect::<Vec<_>>()
            );
            assert!(stored.settings.names().eq(checked.settings.names()));
        }
    }
}
