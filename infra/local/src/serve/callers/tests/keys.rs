//! The keys of an issuer, which this test plays.

use super::*;

/// An issuer on this machine.
pub(super) struct Played {
    server: Server,
    keys: Arc<Mutex<Value>>,
    fetches: Arc<Mutex<usize>>,
}

impl Played {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (keys, fetches) = (Arc::<Mutex<Value>>::default(), Arc::<Mutex<usize>>::default());
        let (shown, counted) = (keys.clone(), fetches.clone());
        let server = Server::start(listener, 1_000, 0, move |request: Request<Bytes>| {
            let body = match request.uri().path() {
                "/.well-known/openid-configuration" => json!({"issuer": url, "jwks_uri": format!("{url}/keys")}),
                "/keys" => {
                    *counted.lock().unwrap() += 1;
                    shown.lock().unwrap().clone()
                }
                _ => Value::Null,
            };
            let status = if body.is_null() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
            async move { Ok(Response::builder().status(status).body(body.to_string().into()).unwrap()) }
        });
        Self { server: server.unwrap(), keys, fetches }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.server.address())
    }

    pub(super) fn has(&self, signers: &[&Signer]) {
        let keys = signers.iter().map(|signer| signer.jwk());
        let keys: Vec<Value> = std::iter::once(json!({"kty": "new"})).chain(keys).collect();
        *self.keys.lock().unwrap() = json!({"keys": keys});
    }

    fn fetches(&self) -> usize {
        *self.fetches.lock().unwrap()
    }

    fn issuer(&self) -> Arc<Issuer> {
        let settings = JwtSettings { issuer: self.url(), audience: "orders".into(), roles_claim: "roles".into() };
        Arc::new(Issuer::new(settings))
    }

    pub(super) fn token(&self, signer: &Signer) -> String {
        signer.token(&claims("iss", json!(self.url())))
    }
}

#[tokio::test]
async fn keys_are_fetched_once_and_again_for_one_that_is_new() {
    let (played, [old, new]) = (Played::start().await, ["old", "new"].map(Signer::ed));
    let issuer = played.issuer();
    played.has(&[&old]);
    for _ in 0..3 {
        assert!(issuer.caller(&played.token(&old)).await.is_some());
    }
    assert_eq!(played.fetches(), 1);
    played.has(&[&old, &new]);
    assert!(issuer.caller(&played.token(&new)).await.is_none(), "they were fetched a moment ago");
    issuer.later(issuer::PAUSE).await;
    assert!(issuer.caller(&played.token(&new)).await.is_some());
    assert_eq!(played.fetches(), 2);
}

#[tokio::test]
async fn rule_42_a_key_that_was_withdrawn_while_nobody_called_names_nobody() {
    let (played, [old, new]) = (Played::start().await, ["old", "new"].map(Signer::ed));
    let issuer = played.issuer();
    played.has(&[&old]);
    assert!(issuer.caller(&played.token(&old)).await.is_some());
    played.has(&[&new]);
    issuer.later(issuer::KEPT_FOR).await;
    let [by_old, by_new] = [&old, &new].map(|signer| played.token(signer));
    let asked = (0..100).map(|number| issuer.caller(if number % 2 == 0 { &by_old } else { &by_new }));
    let named = futures_util::future::join_all(asked).await;
    assert!(named.iter().enumerate().all(|(number, caller)| caller.is_some() == (number % 2 == 1)), "{named:?}");
    assert_eq!(played.fetches(), 2, "all waited for one");
}

#[tokio::test]
async fn rule_42_a_storm_of_unknown_keys_is_one_fetch_in_ten_seconds() {
    let (played, known) = (Played::start().await, Signer::ed("known"));
    let issuer = played.issuer();
    played.has(&[&known]);
    let strange: Vec<String> = ["a", "b", "c", "d"].map(|id| played.token(&Signer::ed(id))).into();
    let asked = (0..200).map(|number| issuer.caller(&strange[number % strange.len()]));
    assert!(futures_util::future::join_all(asked).await.iter().all(Option::is_none));
    assert!(issuer.caller(&played.token(&known)).await.is_some());
    assert_eq!(played.fetches(), 1);
    issuer.later(issuer::PAUSE).await;
    for token in &strange {
        assert!(issuer.caller(token).await.is_none());
    }
    assert_eq!(played.fetches(), 2);
}

#[tokio::test]
async fn rule_42_a_fetch_goes_on_when_who_caused_it_hangs_up() {
    let (played, known) = (Played::start().await, Signer::ed("known"));
    let issuer = played.issuer();
    played.has(&[&known]);
    let strange = played.token(&Signer::ed("strange"));
    let mut asked = Box::pin(issuer.caller(&strange));
    assert!(futures_util::poll!(asked.as_mut()).is_pending());
    tokio::task::yield_now().await;
    drop(asked);
    let token = played.token(&known);
    let known = async {
        while issuer.caller(&token).await.is_none() {
            tokio::task::yield_now().await;
        }
    };
    assert!(tokio::time::timeout(Duration::from_secs(300), known).await.is_ok());
    assert_eq!(played.fetches(), 1);
}

#[tokio::test]
async fn rule_42_few_requests_wait_for_an_issuer_that_does_not_answer() {
    let silent = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    let settings = JwtSettings { issuer: url, audience: "orders".into(), roles_claim: "roles".into() };
    let issuer = Arc::new(Issuer::new(settings));
    let token = Signer::ed("strange").token(&claims("aud", json!("orders")));
    let mut waiting: Vec<_> = (0..issuer::WAITING_MAX).map(|_| Box::pin(issuer.caller(&token))).collect();
    for asked in &mut waiting {
        assert!(futures_util::poll!(asked.as_mut()).is_pending());
    }
    let mut further = Box::pin(issuer.caller(&token));
    assert_eq!(futures_util::poll!(further.as_mut()), std::task::Poll::Ready(None));
}

#[tokio::test]
async fn keys_stay_while_their_issuer_is_away_or_says_nonsense() {
    let (played, known) = (Played::start().await, Signer::ed("known"));
    let issuer = played.issuer();
    assert!(issuer.caller(&played.token(&known)).await.is_none(), "it has not begun");
    played.has(&[&known]);
    issuer.later(issuer::PAUSE).await;
    assert!(issuer.caller(&played.token(&known)).await.is_some());
    for keys in
        [Value::Null, json!([]), json!({"keys": []}), json!({"keys": [{"kty": "oct", "k": "AA", "kid": "known"}]})]
    {
        *played.keys.lock().unwrap() = keys;
        issuer.later(issuer::PAUSE).await;
        assert!(issuer.caller(&played.token(&Signer::ed("other"))).await.is_none());
        assert!(issuer.caller(&played.token(&known)).await.is_some());
    }
    issuer.later(issuer::KEPT_FOR).await;
    assert!(issuer.caller(&played.token(&known)).await.is_some(), "old keys are better than none");
    played.has(&[&Signer::ed("other")]);
    issuer.later(issuer::AWAY_FOR).await;
    assert!(issuer.caller(&played.token(&known)).await.is_none(), "it is back");
}

#[tokio::test]
async fn an_issuer_that_calls_itself_otherwise_gives_no_keys() {
    let (played, known) = (Played::start().await, Signer::ed("known"));
    played.has(&[&known]);
    let issuer = format!("{}/", played.url());
    let settings = JwtSettings { issuer: issuer.clone(), audience: "orders".into(), roles_claim: "roles".into() };
    let token = known.token(&claims("iss", json!(issuer)));
    assert!(Arc::new(Issuer::new(settings)).caller(&token).await.is_none());
    assert_eq!(played.fetches(), 0);
}

#[test]
fn an_issuer_is_called_where_nobody_can_put_other_keys_in_place() {
    for url in
        ["https://login.example.com", "https://login.example.com/shop/", "http://127.0.0.1:8080", "http://[::1]/a"]
    {
        assert_eq!(issuer_url(url).as_deref(), Ok(url));
    }
    for url in ["http://login.example.com", "login.example.com", "https://a@b.example", "ftp://a", "https://a/?b", ""] {
        assert!(issuer_url(url).is_err(), "{url}");
    }
}
