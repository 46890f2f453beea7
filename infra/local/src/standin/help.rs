//! The help text of the stand-ins.

/// Part of `stepwarden serve --help` and `stepwarden stand-ins --help`.
pub const HELP: &str = r#"Stand-ins:
  A stand-in in this process replaces a service without a URL. The member "StandIn" of an order's document sets its
  behaviour for this order, for example
      {"Item": "mug", "StandIn": {"payment": {"Flaky": 2}, "shipping": {"SlowMs": 1500}}}
  For each of "inventory", "payment" and "shipping":
      "Flaky": N         answers 503 to the first N calls with a key
      "SlowMs": N        carries out the call, and answers N ms later (at most 60000)
      "LoseAnswers": N   carries out the first N calls with a key, and hangs up without an answer
      "Down": true       answers 503 to every call
      "DownMs": N        answers 503 to calls with a key until N ms after the first one
      "Decline": "CODE"  rejects the call: 402 at payment, 409 elsewhere, with the problem code CODE
      "ForgetKeys": true ignores Idempotency-Key: every call is carried out again
      "Undo": {...}      the same members for release, refund and cancel; without it these succeed
  To switch a whole service, whatever the orders say:
      curl -XPOST {stand-in}/payment/control -d '{"Down": true}'
  The members are "Down" (answers 503 to every call until it is false again) and "ForgetKeys"; an absent member keeps
  its value. Otherwise stand-ins honour Idempotency-Key. GET {stand-in}/effects shows the calls and effects of each
  key."#;
