//! Fetches agents' cards.
//!
//! A card is public until its server says otherwise: the credential is sent only when the server requires it, or when the card declares
//! an authenticated extended card ([`extended_card`](crate::extended_card)). A card is parsed completely before it is accepted, so that
//! a registered card is always valid.

use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderValue, Method, StatusCode, Uri, header};
use rialto_a2a_codec::{
    card::{
        self,
        signature::{SignatureVerdict, VerificationKeys, verify},
    },
    invalid::InvalidDocument,
};
use rialto_engine::peer::{Discovery, DiscoveryError, DiscoveryRequest, Fetched};
use rialto_http_client::{
    address::Reach,
    fetch::{Fetch, FetchError, FetchRequest, FetchResponse},
};
use rialto_model::{
    agent::{Agent, SignatureStatus},
    card::Card,
    clock::Timestamp,
    ids::AgentId,
    json::Extra,
};
use tokio::time::Instant;

use crate::{
    credential::{CredentialResolver as Secrets, CredentialTarget, RequestAuth, SecretResolver},
    endpoints::{Carrier, routes},
    extended_card::{self, Extended},
    instance::Instance,
};

/// Well-known card paths, newest first.
const WELL_KNOWN_PATHS: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// Maximum size of a card, in bytes.
const MAX_CARD_BYTES: usize = 1024 * 1024;

/// Fetches cards.
pub struct Discoverer {
    fetch: Arc<dyn Fetch>,
    secrets: Secrets,
    keys: VerificationKeys,
    instance: Option<Instance>,
}

/// One search for a card, with its remaining time.
struct CardSearch<'a> {
    discoverer: &'a Discoverer,
    place: &'a DiscoveryRequest,
    until: Instant,
}

// === impl Discoverer ===

impl Discoverer {
    /// Creates a discoverer that fetches with `fetch` and resolves credentials with `tokens`. With `keys`, the signature of a signed
    /// card must be valid; without any, signatures are recorded but not checked.
    pub fn new(fetch: Arc<dyn Fetch>, tokens: SecretResolver, keys: VerificationKeys) -> Self {
        Self { secrets: Secrets::new(tokens, Arc::clone(&fetch)), fetch, keys, instance: None }
    }

    /// Rejects cards of this installation.
    #[must_use]
    pub fn refusing_own(mut self, instance: Instance) -> Self {
        self.instance = Some(instance);
        self
    }

    /// Parses a card and checks its signature. Only the part that a valid signature covers is used of a signed card.
    fn examine(&self, text: &str) -> Result<(Card, SignatureStatus), String> {
        let invalid = |garbled: InvalidDocument| garbled.to_string();
        let card = card::decode(text).map_err(invalid)?;
        if !card.signed {
            return Ok((card, SignatureStatus::None));
        }
        if self.keys.is_empty() {
            return Ok((card, SignatureStatus::Unchecked));
        }
        match verify(text, &self.keys) {
            SignatureVerdict::Verified { covered, .. } => {
                let covered =
                    with_signatures(&covered, text).map_err(|_| "it is not an object".to_owned())?;
                Ok((card::decode(&covered).map_err(invalid)?, SignatureStatus::Valid))
            }
            SignatureVerdict::Invalid(why) => Err(format!(
                "its signature does not hold: {why}; it must be made with a key whose public half is in [a2a] card_keys"
            )),
            SignatureVerdict::NoSignature => Ok((card, SignatureStatus::None)),
        }
    }
}

#[async_trait]
impl Discovery for Discoverer {
    async fn fetch(&self, place: &DiscoveryRequest) -> Result<Fetched, DiscoveryError> {
        let search = CardSearch { discoverer: self, place, until: Instant::now() + place.timeout };
        let mut missing = None;
        for path in paths(place.card_path.as_deref()) {
            match search.look(&path).await {
                Err(DiscoveryError::Status { url, status: 404 }) => {
                    missing.get_or_insert(DiscoveryError::Status { url, status: 404 });
                }
                outcome => return outcome,
            }
        }
        let nowhere = || DiscoveryError::Status { url: place.url.clone(), status: 404 };
        Err(missing.unwrap_or_else(nowhere))
    }
}

// === impl CardSearch ===

impl CardSearch<'_> {
    async fn look(&self, path: &str) -> Result<Fetched, DiscoveryError> {
        let url = format!("{}{path}", self.place.url.trim_end_matches('/'));
        let uri: Uri = url.parse().map_err(|_| DiscoveryError::Refused(format!("{url} is not a URL")))?;
        let mut answer = self.get(&url, uri.clone(), None).await?;
        if let StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN = answer.status
            && let Some(shown) = self.login().await?
        {
            answer = self.get(&url, uri, Some(&shown)).await?;
        }
        if let Some(instance) = &self.discoverer.instance
            && instance.is_own(&self.place.scope, &answer.headers).await
        {
            return Err(DiscoveryError::Own { url });
        }
        match answer.status {
            StatusCode::NOT_MODIFIED if self.place.etag.is_some() => Ok(Fetched::Unchanged),
            StatusCode::OK => self.read(url, path, answer).await,
            status => Err(DiscoveryError::Status { url, status: status.as_u16() }),
        }
    }

    async fn get(
        &self,
        url: &str,
        uri: Uri,
        shown: Option<&RequestAuth>,
    ) -> Result<FetchResponse, DiscoveryError> {
        let mut request = FetchRequest::new(Method::GET, uri);
        self.limit(&mut request);
        request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        // The public card may be unchanged while the extended one has changed.
        let etag = self.place.etag.as_ref().filter(|_| !self.may_be_extended());
        if let Some(etag) = etag.and_then(|etag| HeaderValue::try_from(etag).ok()) {
            request.headers.insert(header::IF_NONE_MATCH, etag);
        }
        if let Some(shown) = shown {
            shown.put(&mut request).map_err(DiscoveryError::Refused)?;
        }
        self.discoverer.fetch.fetch(request).await.map_err(|error| self.trouble(url, &error))
    }

    /// Authentication for the agent. Without a card the scheme is unknown, unless the operator configured one.
    async fn login(&self) -> Result<Option<RequestAuth>, DiscoveryError> {
        let Some(credential) = &self.place.credential else { return Ok(None) };
        let door = CredentialTarget { url: &self.place.url, card: None, reach: self.reach(), proof: None };
        let shown = self.discoverer.secrets.show(credential, &credential.source, &door).await;
        shown.map(Some).map_err(DiscoveryError::Refused)
    }

    const fn reach(&self) -> Reach {
        if self.place.allow_private { Reach::Private } else { Reach::Public }
    }

    async fn read(&self, url: String, path: &str, answer: FetchResponse) -> Result<Fetched, DiscoveryError> {
        let etag = answer.headers.get(header::ETAG).and_then(|etag| etag.to_str().ok()).map(str::to_owned);
        let body = answer.body.read().await.map_err(|error| self.trouble(&url, &error))?;
        let invalid = |reason| DiscoveryError::Invalid { url: url.clone(), reason };
        let text = std::str::from_utf8(&body).map_err(|_| invalid("it is not UTF-8 text".to_owned()))?;
        if !self.may_be_extended() && self.is_known(text) {
            return Ok(Fetched::Unchanged);
        }
        let (card, signature) = self.discoverer.examine(text).map_err(invalid)?;
        let path = path.to_owned();
        if card.extended && extended_card::is_wanted(self.place) {
            match self.extended(&card, signature).await {
                Ok(Some((extended, _))) if self.is_known(extended.raw.get()) => {
                    return Ok(Fetched::Unchanged);
                }
                // The validator belongs to the public card, and says nothing about this one.
                Ok(Some((card, signature))) => {
                    return Ok(Fetched::Card { card: Box::new(card), path, etag: None, signature });
                }
                // The known card may be the extended one: it stays.
                Err(()) if self.place.known.is_some() => return Ok(Fetched::Unchanged),
                Ok(None) | Err(()) => {}
            }
        }
        if self.is_known(text) {
            return Ok(Fetched::Unchanged);
        }
        Ok(Fetched::Card { card: Box::new(card), path, etag, signature })
    }

    /// True when a text equals the known card. Signatures are checked each time: keys may have changed.
    fn is_known(&self, text: &str) -> bool {
        self.place.known.as_ref().is_some_and(|known| !known.signed && known.raw.get() == text)
    }

    /// True when the known card may be an extended one.
    fn may_be_extended(&self) -> bool {
        extended_card::is_wanted(self.place) && self.place.known.as_ref().is_some_and(|known| known.extended)
    }

    /// Authenticated extended card. None when the agent has none, or one with a worse signature than its public card; an error when the
    /// agent could not be reached.
    async fn extended(
        &self,
        card: &Card,
        public: SignatureStatus,
    ) -> Result<Option<(Card, SignatureStatus)>, ()> {
        let Some(credential) = &self.place.credential else { return Ok(None) };
        let row = Agent::new(
            AgentId::from(""),
            String::new(),
            self.place.url.clone(),
            Arc::new(card.clone()),
            Timestamp::UNIX_EPOCH,
        );
        let row = Agent { credential: Some(credential.clone()), ..row };
        let door =
            CredentialTarget { url: &self.place.url, card: Some(card), reach: self.reach(), proof: None };
        let shown =
            self.discoverer.secrets.show(credential, &credential.source, &door).await.map_err(drop)?;
        let routes = routes(&row).unwrap_or_default();
        let known = routes.iter().filter(|route| {
            route.is_home && card.interfaces.iter().any(|offered| offered.dialect == route.dialect)
        });
        let asked = known.filter_map(|route| Some((route.carrier, extended_card::request(route)?)));
        let oldest = extended_card::oldest(&self.place.url).map(|request| (Carrier::Rest, request));
        for (carrier, request) in asked.chain(oldest) {
            match self.ask_extended(carrier, request, &shown).await {
                Extended::Card(text) => {
                    let examined = self.discoverer.examine(&text).ok();
                    let is_good =
                        |signature| public != SignatureStatus::Valid || signature == SignatureStatus::Valid;
                    return Ok(examined.filter(|(_, signature)| is_good(*signature)));
                }
                Extended::NotNow => return Err(()),
                Extended::Refused => {}
            }
        }
        Ok(None)
    }

    async fn ask_extended(
        &self,
        carrier: Carrier,
        mut request: FetchRequest,
        shown: &RequestAuth,
    ) -> Extended {
        self.limit(&mut request);
        if shown.put(&mut request).is_err() {
            return Extended::Refused;
        }
        let Ok(answer) = self.discoverer.fetch.fetch(request).await else { return Extended::NotNow };
        let status = answer.status;
        match answer.body.read().await {
            Ok(body) => extended_card::read(carrier, status, &body),
            Err(_) => Extended::NotNow,
        }
    }

    /// Applies the limits of this search to a request.
    fn limit(&self, request: &mut FetchRequest) {
        request.reach = self.reach();
        request.limit = Some(MAX_CARD_BYTES);
        let left = self.until.saturating_duration_since(Instant::now());
        request.patience = left;
        request.total = Some(left);
    }

    fn trouble(&self, url: &str, error: &FetchError) -> DiscoveryError {
        let url = url.to_owned();
        match error {
            FetchError::Forbidden(why) => DiscoveryError::Refused(format!("{url} may not be called: {why}")),
            FetchError::TooLarge(limit) => {
                DiscoveryError::Invalid { url, reason: format!("it is larger than {limit} bytes") }
            }
            // The remaining time of one step means nothing to the reader; the total does.
            FetchError::Timeout(_) => DiscoveryError::Unreachable {
                url,
                reason: FetchError::Timeout(self.place.timeout).to_string(),
            },
            FetchError::Local(reason) => DiscoveryError::Local { url, reason: reason.clone() },
            FetchError::NotSent(_) | FetchError::Broken(_) => {
                DiscoveryError::Unreachable { url, reason: error.to_string() }
            }
        }
    }
}

/// Signed part of the card, with the signatures that cover it: a card that is parsed again later must still count as signed.
fn with_signatures(covered: &str, card: &str) -> Result<String, serde_json::Error> {
    let mut members: Extra = serde_json::from_str(covered)?;
    if let Some(signatures) = serde_json::from_str::<Extra>(card)?.take("signatures") {
        members.push("signatures", signatures);
    }
    serde_json::to_string(&members)
}

/// Paths to try, below the base URL.
fn paths(given: Option<&str>) -> Vec<String> {
    let mut paths = Vec::with_capacity(3);
    if let Some(given) = given {
        paths.push(format!("/{}", given.trim_start_matches('/')));
    }
    for path in WELL_KNOWN_PATHS {
        if !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    paths
}
