//! The commands on a configuration folder, which need no server.

use std::fs;

use crate::run::{program, run};

#[test]
fn a_folder_is_begun_checked_and_its_faults_are_named_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("shop");
    let command = |name: &str| {
        let mut command = program(&[name, "shop"]);
        command.current_dir(directory.path());
        run(command, "")
    };
    command("check").with_status(2).says(&["shop cannot be read"]);
    command("init").with_status(0).shows(&[
        "shop/stepwarden.toml",
        "shop/workflows/shop-1.toml",
        "stepwarden check shop",
    ]);
    command("init").with_status(2).says(&["shop is not empty"]);
    let good = command("check").with_status(0);
    good.shows(&["shop, version 1, for orders that name none", "send-parcel", "http://localhost:9002", "No fault"]);
    assert!(good.stderr.is_empty(), "{good:?}");

    let file = folder.join("stepwarden.toml");
    let text = fs::read_to_string(&file).unwrap().replace("default = \"shop\"", "default = \"shpo\"\ncolour = 1");
    fs::write(&file, text).unwrap();
    fs::write(folder.join("workflows/two.toml"), "name = \"two\"\nversion = 0\n").unwrap();
    let bad = command("check").with_status(1);
    bad.shows(&[
        "shop/stepwarden.toml:16:11: default names \"shpo\", which is not a workflow of this folder: did you mean shop?",
        "shop/stepwarden.toml:17:1: colour is not a setting. Settings are: default, agents, reply_channels, alerts\n",
        "shop/workflows/two.toml:2:11: version must be a whole number",
    ]);
    assert_eq!(bad.stdout.lines().count(), 4, "{bad:?}");
    let mut serve = program(&["serve", "--port", "0", "--config", "shop"]);
    serve.current_dir(directory.path());
    let served = run(serve, "").with_status(1);
    assert_eq!(served.stderr, bad.stdout, "the same lines");
}
