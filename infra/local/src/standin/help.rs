//! What is told of the stand-ins on the command line.

/// What `stepwarden serve --help` says about it.
pub const HELP: &str = r#"Stand-ins:
  A service without a URL is played by a stand-in in this process. A member "StandIn" of an order's document tells
  it how to behave with this order, for example
      {"Item": "mug", "StandIn": {"payment": {"Flaky": 2}, "shipping": {"SlowMs": 1500}}}
  For each of "inventory", "payment" and "shipping":
      "Flaky": N         answers 503 to the first N calls with a key
      "SlowMs": N        carries the call out, and answers N ms later (at most 60000)
      "LoseAnswers": N   carries the call out, and hangs up without an answer, for the first N calls with a key
      "Down": true       answers 503 to every call
      "DownMs": N        answers 503 to calls with a key until N ms after the first one
      "Decline": "CODE"  says no for good: 402 at payment, 409 elsewhere, with the problem code CODE
      "ForgetKeys": true does not honour Idempotency-Key: every call is carried out again
      "Undo": {...}      the same members for release, refund and cancel; without it these just succeed
  A whole service is switched, whatever the orders say, by a call such as
      curl -XPOST {stand-in}/payment/control -d '{"Down": true}'
  with "Down" (answers 503 to every call until it is false again) or "ForgetKeys" or both; what is not named stays.
  Otherwise stand-ins honour Idempotency-Key. GET {stand-in}/effects tells the calls and effects of each key."#;
