//! The commands on a configuration folder, which need no server.

use std::fs;

use serde_json::json;

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
        "shop/stepwarden.toml:18:11: default names \"shpo\", which is not a workflow of this folder: did you mean shop?",
        "shop/stepwarden.toml:19:1: colour is not a setting. Settings are: default, agents, reply_channels, alerts, schedule\n",
        "shop/workflows/two.toml:2:11: version must be a whole number",
    ]);
    assert_eq!(bad.stdout.lines().count(), 4, "{bad:?}");
    let mut serve = program(&["serve", "--port", "0", "--config", "shop"]);
    serve.current_dir(directory.path());
    let served = run(serve, "").with_status(1);
    assert_eq!(served.stderr, bad.stdout, "the same lines");
}

#[test]
fn an_order_is_tried_without_a_server_and_a_script_knows_what_came_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let command = |more: &[&str]| {
        let mut command = program(&[&["try", "shop", "shop/order.json"], more].concat());
        command.current_dir(directory.path());
        run(command, "")
    };
    command(&[]).with_status(2).says(&["shop cannot be read"]);
    let mut init = program(&["init", "shop"]);
    init.current_dir(directory.path());
    run(init, "").with_status(0);
    let write = |file: &str, text: &str| fs::write(directory.path().join(file), text).unwrap();
    write("answer.json", r#"{"ID": "r-1"}"#);
    let whole = command(&["--answer", "reserve-stock:200=answer.json"]).with_status(0);
    whole.shows(&["● reserve-stock (stock)\nPOST http://localhost:9001/reserve\n", "Its output: {\"ID\": \"r-1\"}\n"]);
    assert!(whole.stderr.is_empty(), "{whole:?}");
    let key = "01900000-0000-7000-8000-000000000000/send-parcel/undo";
    for as_json in [&["--json"][..], &["-o", "json"]] {
        let one = command(&[&["--step", "send-parcel"], as_json].concat()).with_status(0).json();
        assert_eq!((&one["Workflow"], &one["Version"], &one["Secrets"]), (&json!("shop"), &json!(1), &json!([])));
        let undo = json!({
            "Method": "POST",
            "URL": "http://localhost:9003/undo",
            "Headers": [
                {"Name": "idempotency-key", "Value": key},
                {"Name": "content-type", "Value": "application/json"},
            ],
            "Body": "{\"order\":\"01900000-0000-7000-8000-000000000000\"}",
        });
        assert_eq!((one["Steps"].as_array().unwrap().len(), &one["Steps"][0]["Undo"]), (1, &undo));
    }
    let needs = command(&["--step", "take-money", "--json"]).with_status(0).json();
    assert_eq!(needs["Steps"][0]["Forward"], json!({"Needs": ["/Outputs/reserve-stock"]}));
    for (more, words) in [
        (["--step", "parcel"], "workflow shop has no step parcel. It has: reserve-stock, take-money, send-parcel"),
        (["--answer", "parcel:200=answer.json"], "workflow shop has no step parcel."),
        (["--answer", "take-money:200=none.json"], "none.json cannot be read: "),
        (["--answer", "take-money=answer.json"], "must be STEP:STATUS=FILE, such as charge:200=answer.json"),
    ] {
        command(&more).with_status(2).says(&[words]);
    }
    command(&["--workflow", "spa"]).with_status(1).shows(&["Refused: 400 Invalid field: there is no workflow \"spa\""]);
    write("shop/order.json", r#"{"Item": "mug"}"#);
    command(&[]).with_status(1).shows(&["Refused: 422 The document does not fit the schema"]);
    write("shop/stepwarden.toml", "colour = 1");
    let bad = command(&[]).with_status(2);
    bad.says(&["shop/stepwarden.toml:1:1: colour is not a setting"]);
    assert!(bad.stdout.is_empty(), "{bad:?}");
}
