//! The kinds of problems: the common part of their documents, and the page that `type` links to.

use bytes::Bytes;
use http::{Response, StatusCode};

use crate::reply;

/// The path of the pages. The `type` of a problem is the path of its page, and never changes.
const PAGES: &str = "/problems/";

/// Defines the kinds, each with its page.
macro_rules! kinds {
    ($($kind:ident $status:ident $name:literal $title:literal $meaning:literal $advice:literal)+) => {
        /// The common part of all problems of one type.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum Kind {
            $(#[doc = $title] $kind,)+
        }

        impl Kind {
            /// All of them.
            pub(crate) const ALL: &[Self] = &[$(Self::$kind),+];

            /// The last part of its `type`.
            pub(crate) const fn name(self) -> &'static str {
                match self { $(Self::$kind => $name),+ }
            }

            /// Its status.
            pub(crate) const fn status(self) -> StatusCode {
                match self { $(Self::$kind => StatusCode::$status),+ }
            }

            /// Its `title`.
            pub(crate) const fn title(self) -> &'static str {
                match self { $(Self::$kind => $title),+ }
            }

            /// Its meaning, and the remedy.
            const fn words(self) -> (&'static str, &'static str) {
                match self { $(Self::$kind => ($meaning, $advice)),+ }
            }
        }
    };
}

kinds! {
    UnknownRoute NOT_FOUND "unknown-route" "Unknown route"
        "There is nothing at this path. A trailing slash makes another path, and so do capitals."
        "Look the path up in /openapi.json."
    WrongMethod METHOD_NOT_ALLOWED "method-not-allowed" "Method not allowed"
        "The path is known, and takes other methods than this one."
        "Use a method that the header Allow lists."
    Unauthenticated UNAUTHORIZED "unauthenticated" "Who calls is not known"
        "This deployment knows its callers by tokens, and the request has none that is known: it is missing, mistyped or \
         removed."
        "Send Authorization: Bearer TOKEN. On the command line set STEPWARDEN_TOKEN. Who runs the server makes a token \
         with `stepwarden token add`."
    Forbidden FORBIDDEN "forbidden" "Not one of the caller's roles"
        "The caller is known, and none of its roles may make this call; detail names the roles that may."
        "Use a caller with that role. A token has its roles from `stepwarden token add` or from its scopes. A role or user \
         of AWS has them from the parameter IamRoles of the stack."
    CrossSite FORBIDDEN "cross-site" "Called from another site"
        "A browser says, in Sec-Fetch-Site or Origin, that a page of another site wants to post here, or to read what \
         costs work. That is refused, since the visitor may know nothing of it."
        "Call from a page that this API serves, or from a program. A proxy in between has to leave Host as it was sent."
    Misdirected MISDIRECTED_REQUEST "misdirected-request" "Misdirected request"
        "The API does not go by the name in Host. A page of another site may let its own name lead here, to read and \
         post what it likes. So such a request is refused."
        "Call it localhost or 127.0.0.1, or start it with `stepwarden serve --allow-host NAME`."
    BodyTooLarge PAYLOAD_TOO_LARGE "body-too-large" "Body too large"
        "The body is larger than 128 KiB, the largest document."
        "Keep what is large elsewhere, and send a reference to it."
    MediaType UNSUPPORTED_MEDIA_TYPE "unsupported-media-type" "Unsupported media type"
        "The header Content-Type names something that is no JSON."
        "Send the body as application/json."
    NotJson BAD_REQUEST "malformed-json" "Malformed JSON"
        "The body is no JSON text in UTF-8; detail says where it goes wrong."
        "Mend the body. Nothing was done, so it is safe to send it again."
    TooDeep BAD_REQUEST "too-deep" "Nested too deep"
        "Arrays and objects in the body are nested deeper than 64 levels."
        "Flatten the document."
    NotAnObject BAD_REQUEST "not-an-object" "Not a JSON object"
        "The body is JSON, but no object."
        "Send an object."
    InvalidField BAD_REQUEST "invalid-field" "Invalid field"
        "The member of the body that field names is missing, unknown or wrong; detail says which."
        "Mend that member. Nothing was done, so it is safe to send it again."
    InvalidHeader BAD_REQUEST "invalid-header" "Invalid header"
        "The header that field names is wrong; detail says how it has to look."
        "Mend that header. Nothing was done, so it is safe to send it again."
    InvalidParameter BAD_REQUEST "invalid-parameter" "Invalid query parameter"
        "The parameter of the query that field names is unknown, repeated or wrong; detail says which. A cursor is good \
         for the list, and the search, that gave it, and for no other."
        "Mend that parameter; where it is the cursor, begin again without it."
    KeyReused UNPROCESSABLE_ENTITY "idempotency-key-reused" "Idempotency key reused"
        "An order was posted before under this Idempotency-Key with another document; instance is the path of that order."
        "Use a new key for a new order. To post the same order again, post the same document."
    MemberRefused UNPROCESSABLE_ENTITY "member-refused" "Member refused"
        "The workflow refuses orders with these members, such as card numbers, so that none is stored; field has the first, \
         detail all of them."
        "Leave them out. Nothing was stored."
    MemberMissing UNPROCESSABLE_ENTITY "member-missing" "Member missing"
        "The document has nothing where a step of the workflow sends something of it; field has the pointer."
        "Add the member. Where it may be missing, the pointer in the workflow ends with a question mark. Nothing was stored."
    SchemaMismatch UNPROCESSABLE_ENTITY "schema-mismatch" "The document does not fit the schema"
        "The workflow has a schema of its orders, and the document does not fit it. faults has the first misfits, each with \
         a JSON pointer and the reason; field has the first pointer, and is empty for the document as a whole."
        "Mend the document, or apply a version of the workflow with another schema. Nothing was stored, so the same \
         Idempotency-Key is good for the mended document."
    NoOrder NOT_FOUND "order-not-found" "Order not found"
        "There is no order of this id. One that was accepted a moment ago may not be stored yet."
        "Check the id: it is written with its hyphens. After a 202, ask again, or wait with Prefer: wait."
    StateForbids CONFLICT "state-conflict" "Not possible in the order's state"
        "The order is in a state, told as ProcessState, in which this action makes no sense. Only an order in Error can be \
         resubmitted or closed, or have a step settled. One that is finished cannot be cancelled, and only one that is \
         Compensated can be posted again. A settle is also refused for a wrong step and for an output that is too large. \
         Neither a settle nor a close is possible while a call may still have its effect."
        "detail says what is in the way, and until when. Look at the order again (instance is its path), then decide."
    VersionChanged PRECONDITION_FAILED "version-changed" "Changed meanwhile"
        "The action was meant for a version of the order or job that is not the present one any more. ETag is the present."
        "Look at it again, then decide; to act whatever the version is, leave If-Match out."
    ForgedCallback UNAUTHORIZED "forged-callback" "Not a callback address"
        "No key of this deployment signed the address, so it belongs to no call. It may be cut off or altered, or come \
         from another deployment."
        "Use the header Callback-Url of the call as it is. Nothing was changed."
    NoJob NOT_FOUND "job-not-found" "Job not found"
        "There is no job of this id."
        "GET /bulk lists the jobs."
    JobForbids CONFLICT "job-state-conflict" "Not possible in the job's state"
        "The job is in a state in which this makes no sense: only a planned one can be started, and one that is ended \
         cannot be cancelled."
        "Look at the job again (instance is its path)."
    NoService NOT_FOUND "service-not-found" "Service not found"
        "There is no service of this name: no workflow has such an agent."
        "GET /services lists the services."
    ServiceForbids CONFLICT "service-state-conflict" "Not possible in the service's state"
        "Rejections can be accepted only of a service that waits because of them: its Reason is rejections."
        "Look at GET /services again. The rejections of any other service count anyway."
    NoWorkflow NOT_FOUND "workflow-not-found" "Workflow not found"
        "There is no workflow of this name and version."
        "GET /workflows lists them."
    FaultyConfiguration UNPROCESSABLE_ENTITY "faulty-configuration" "Faulty configuration"
        "The files of the configuration have faults. faults has each with its file, line and column."
        "Mend them all: `stepwarden check` finds the same. Nothing was applied."
    ConfigurationRefused CONFLICT "configuration-refused" "Configuration refused"
        "It contradicts what was applied before: a version that is applied never changes, and one that orders need is not \
         retired. faults has each reason."
        "Do what the reason says, and apply again. Nothing was applied."
    TooManyOrders TOO_MANY_REQUESTS "too-many-orders" "Too many orders of one caller"
        "In one second the server takes a limited number of orders of one caller, so that others have their share."
        "Post it again after as many seconds as Retry-After says. Nothing was stored. `serve --post-rate` sets the limit."
    Unavailable SERVICE_UNAVAILABLE "unavailable" "Temporarily unavailable"
        "A store or queue behind the API did not do its work in time; it may have done it all the same. detail says what is \
         safe to repeat."
        "Ask again after as many seconds as Retry-After says. Post an order again with the same Idempotency-Key."
}

impl Kind {
    /// The `type` of its documents: the path of its page.
    pub(crate) fn uri(self) -> String {
        format!("{PAGES}{}", self.name())
    }

    /// The kind with this last part of its `type`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.name() == name)
    }

    /// `GET /problems/{name}`: its meaning and the remedy, in words.
    pub(crate) fn page(self) -> Response<Bytes> {
        let (meaning, advice) = self.words();
        let status = self.status();
        reply::text(format!("{} ({status})\n\n{meaning}\n\nWhat to do: {advice}\n", self.title()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Fake;

    #[test]
    fn the_type_of_each_problem_leads_to_a_page_that_says_what_to_do() {
        let fake = Fake::default();
        for kind in Kind::ALL {
            let answer = fake.get(&kind.uri());
            assert_eq!((answer.status, answer.header("content-type")), (200, Some("text/plain; charset=utf-8")));
            for word in [kind.title(), kind.status().as_str(), "What to do: "] {
                assert!(answer.text.contains(word), "{word} in {}", answer.text);
            }
        }
        let refused = fake.get("/nowhere");
        assert_eq!(fake.get(refused.body["type"].as_str().unwrap()).status, 200);
        fake.get("/problems/unheard-of").is_problem(404, "unknown-route");
        fake.get("/problems").is_problem(404, "unknown-route");
    }

    #[test]
    fn no_two_kinds_share_a_name() {
        let names: std::collections::BTreeSet<_> = Kind::ALL.iter().map(|kind| kind.name()).collect();
        assert_eq!(names.len(), Kind::ALL.len());
    }
}
