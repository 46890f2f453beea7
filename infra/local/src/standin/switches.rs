//! What holds for a whole service, whatever the orders say.

use serde::{Deserialize, Serialize};

/// How a whole service behaves.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "PascalCase")]
pub struct Switches {
    /// Every call is answered 503.
    pub down: bool,
    /// Idempotency keys are not looked at.
    pub forget_keys: bool,
}

/// What `POST /{service}/control` is to change; what it does not name stays.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "PascalCase", deny_unknown_fields)]
pub(super) struct Change {
    down: Option<bool>,
    forget_keys: Option<bool>,
}

impl Switches {
    pub(super) fn change(&mut self, Change { down, forget_keys }: Change) {
        self.down = down.unwrap_or(self.down);
        self.forget_keys = forget_keys.unwrap_or(self.forget_keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_named_stays() {
        let mut switches = Switches { down: false, forget_keys: true };
        switches.change(serde_json::from_str(r#"{"Down": true}"#).unwrap());
        assert_eq!(switches, Switches { down: true, forget_keys: true });
        switches.change(serde_json::from_str(r#"{"ForgetKeys": false}"#).unwrap());
        assert_eq!(switches, Switches { down: true, forget_keys: false });
    }
}
