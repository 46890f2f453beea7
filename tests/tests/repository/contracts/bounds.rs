//! The numbers in the words of the schemas match the code.

use domain::limits::{OUTPUT_BYTES_MAX, OUTPUTS_BYTES_MAX, SENT_BYTES_MAX};

use super::schemas::files;

#[test]
fn bounds_that_json_schema_cannot_say_are_said_in_words() {
    let files = files("schemas");
    for (schema, pointer, bytes) in [
        ("common", "/$defs/Outcome/oneOf/0/description", OUTPUT_BYTES_MAX),
        ("request", "/properties/Outputs/description", OUTPUTS_BYTES_MAX),
        ("request", "/properties/Body/description", SENT_BYTES_MAX),
    ] {
        let words = files[schema].pointer(pointer).unwrap_or_else(|| panic!("there is no {pointer}")).as_str().unwrap();
        assert!(words.contains(&format!("{bytes} bytes")), "{words}");
    }
}
