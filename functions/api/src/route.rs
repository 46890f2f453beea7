//! Which call of design §7 a request is.

use domain::message::Action;
use http::Method;

/// A path that the door knows. Ids are as the caller wrote them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// `/orders`
    Orders,
    /// `/orders/{id}`
    Order(&'a str),
    /// `/orders/{id}/resubmit` and `/orders/{id}/cancel`
    Command(&'a str, Action),
    /// `/services`
    Services,
    /// `/health`
    Health,
}

/// What is asked of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verb {
    Get,
    /// As `Get`, without the body.
    Head,
    Post,
    /// None that any path takes.
    Other,
}

impl<'a> Route<'a> {
    /// The route of a path. A trailing slash makes another path.
    pub(crate) fn of(path: &'a str) -> Option<Self> {
        let mut segments = path.strip_prefix('/')?.splitn(4, '/');
        match [segments.next(), segments.next(), segments.next(), segments.next()] {
            [Some("orders"), None, None, None] => Some(Self::Orders),
            [Some("services"), None, None, None] => Some(Self::Services),
            [Some("health"), None, None, None] => Some(Self::Health),
            [Some("orders"), Some(id), None, None] if !id.is_empty() => Some(Self::Order(id)),
            [Some("orders"), Some(id), Some("resubmit"), None] if !id.is_empty() => {
                Some(Self::Command(id, Action::Resubmit))
            }
            [Some("orders"), Some(id), Some("cancel"), None] if !id.is_empty() => {
                Some(Self::Command(id, Action::Cancel))
            }
            _ => None,
        }
    }

    /// The methods that it takes, as the header `Allow` lists them.
    pub(crate) const fn allow(self) -> &'static str {
        match self {
            Self::Orders => "GET, HEAD, POST",
            Self::Order(_) | Self::Services | Self::Health => "GET, HEAD",
            Self::Command(..) => "POST",
        }
    }
}

impl Verb {
    /// The verb of a method.
    pub(crate) fn of(method: &Method) -> Self {
        match *method {
            Method::GET => Self::Get,
            Method::HEAD => Self::Head,
            Method::POST => Self::Post,
            _ => Self::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calls_of_the_design_are_routes() {
        assert_eq!(Route::of("/orders"), Some(Route::Orders));
        assert_eq!(Route::of("/orders/abc"), Some(Route::Order("abc")));
        assert_eq!(Route::of("/orders/abc/resubmit"), Some(Route::Command("abc", Action::Resubmit)));
        assert_eq!(Route::of("/orders/abc/cancel"), Some(Route::Command("abc", Action::Cancel)));
        assert_eq!(Route::of("/services"), Some(Route::Services));
        assert_eq!(Route::of("/health"), Some(Route::Health));
    }

    #[test]
    fn nothing_else_is_one() {
        for path in
            ["", "/", "*", "orders", "/orders/", "//orders", "/orders//cancel", "/orders/a/cancel/", "/orders/a/b"]
        {
            assert_eq!(Route::of(path), None, "{path}");
        }
    }
}
