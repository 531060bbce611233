//! Fetches agents' cards.
//!
//! A card is public until its server says otherwise: the token is shown only when it is asked for, or when the card says that
//! those who log in are shown another one ([`extended_card`](crate::extended_card)). Whatever is found is
//! read in full before it counts, so that a registered card is always one the bridge understood.

use std::sync::Arc;

use async_trait::async_trait;
use http::{HeaderValue, Method, StatusCode, Uri, header};
use rialto_a2a_wire::{
    card::{
        self,
        signature::{Keys, Verdict, verify},
    },
    garbled::Garbled,
};
use rialto_edge::{
    address::Reach,
    fetch::{Fetch, FetchError, Request, Response},
};
use rialto_engine::peer::{Discovery, DiscoveryError, Fetched, Place};
use rialto_model::{
    agent::{Agent, Signature},
    card::Card,
    clock::Timestamp,
    ids::AgentId,
    json::Extra,
};
use tokio::time::Instant;

use crate::{
    credential::{Door, Keys as Secrets, Resolver, Shown},
    extended_card::{self, Extended},
    instance::Instance,
    route::{Carrier, routes},
};

/// Where cards are, the newest convention first.
const WELL_KNOWN: [&str; 2] = ["/.well-known/agent-card.json", "/.well-known/agent.json"];

/// A card may have one mebibyte.
const LIMIT: usize = 1024 * 1024;

/// Fetches cards.
pub struct Discoverer {
    fetch: Arc<dyn Fetch>,
    secrets: Secrets,
    keys: Keys,
    instance: Option<Instance>,
}

/// One search, with what it may still cost.
struct Search<'a> {
    discoverer: &'a Discoverer,
    place: &'a Place,
    until: Instant,
}

// === impl Discoverer ===

impl Discoverer {
    /// A discoverer that fetches with `fetch` and shows tokens from `tokens` where it is asked to. With `keys`, the
    /// signature of a signed card must hold; without any, signatures are noted but not checked.
    pub fn new(fetch: Arc<dyn Fetch>, tokens: Resolver, keys: Keys) -> Self {
        Self { secrets: Secrets::new(tokens, Arc::clone(&fetch)), fetch, keys, instance: None }
    }

    /// The same, which refuses cards of this installation.
    #[must_use]
    pub fn refusing_own(mut self, instance: Instance) -> Self {
        self.instance = Some(instance);
        self
    }

    /// Reads a card and looks at its signature. Only what a good signature covers is taken from a signed card.
    fn examine(&self, text: &str) -> Result<(Card, Signature), String> {
        let invalid = |garbled: Garbled| garbled.to_string();
        let card = card::decode(text).map_err(invalid)?;
        if !card.signed {
            return Ok((card, Signature::None));
        }
        if self.keys.is_empty() {
            return Ok((card, Signature::Unchecked));
        }
        match verify(text, &self.keys) {
            Verdict::Verified { covered, .. } => {
                let covered =
                    with_signatures(&covered, text).map_err(|_| "it is not an object".to_owned())?;
                Ok((card::decode(&covered).map_err(invalid)?, Signature::Valid))
            }
            Verdict::Invalid(why) => Err(format!(
                "its signature does not hold: {why}; it must be made with a key whose public half is in [a2a] card_keys"
            )),
            Verdict::NoSignature => Ok((card, Signature::None)),
        }
    }
}

#[async_trait]
impl Discovery for Discoverer {
    async fn fetch(&self, place: &Place) -> Result<Fetched, DiscoveryError> {
        let search = Search { discoverer: self, place, until: Instant::now() + place.timeout };
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

// === impl Search ===

impl Search<'_> {
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

    async fn get(&self, url: &str, uri: Uri, shown: Option<&Shown>) -> Result<Response, DiscoveryError> {
        let mut request = Request::new(Method::GET, uri);
        self.limit(&mut request);
        request.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        // The public card may be the same while the extended one has changed.
        let etag = self.place.etag.as_ref().filter(|_| !self.may_be_extended());
        if let Some(etag) = etag.and_then(|etag| HeaderValue::try_from(etag).ok()) {
            request.headers.insert(header::IF_NONE_MATCH, etag);
        }
        if let Some(shown) = shown {
            shown.put(&mut request).map_err(DiscoveryError::Refused)?;
        }
        self.discoverer.fetch.fetch(request).await.map_err(|error| self.trouble(url, &error))
    }

    /// What the agent is shown. Without its card nobody knows how, unless a person said so.
    async fn login(&self) -> Result<Option<Shown>, DiscoveryError> {
        let Some(credential) = &self.place.credential else { return Ok(None) };
        let door = Door { url: &self.place.url, card: None, reach: self.reach(), proof: None };
        let shown = self.discoverer.secrets.show(credential, &credential.source, &door).await;
        shown.map(Some).map_err(DiscoveryError::Refused)
    }

    const fn reach(&self) -> Reach {
        if self.place.allow_private { Reach::Private } else { Reach::Public }
    }

    async fn read(&self, url: String, path: &str, answer: Response) -> Result<Fetched, DiscoveryError> {
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
                // The validator is the public card's, and says nothing about this one.
                Ok(Some((card, signature))) => {
                    return Ok(Fetched::Card { card: Box::new(card), path, etag: None, signature });
                }
                // The card that is known may be the extended one: it stays.
                Err(()) if self.place.known.is_some() => return Ok(Fetched::Unchanged),
                Ok(None) | Err(()) => {}
            }
        }
        if self.is_known(text) {
            return Ok(Fetched::Unchanged);
        }
        Ok(Fetched::Card { card: Box::new(card), path, etag, signature })
    }

    /// Whether a text is the card that is known. A signature is looked at each time: keys may have changed.
    fn is_known(&self, text: &str) -> bool {
        self.place.known.as_ref().is_some_and(|known| !known.signed && known.raw.get() == text)
    }

    /// Whether the card that is known may be one for those who log in.
    fn may_be_extended(&self) -> bool {
        extended_card::is_wanted(self.place) && self.place.known.as_ref().is_some_and(|known| known.extended)
    }

    /// The card for those who log in. None when the agent has none for us, or one that is signed worse than its public card;
    /// an error when it could not be asked.
    async fn extended(&self, card: &Card, public: Signature) -> Result<Option<(Card, Signature)>, ()> {
        let Some(credential) = &self.place.credential else { return Ok(None) };
        let row = Agent::new(
            AgentId::from(""),
            String::new(),
            self.place.url.clone(),
            Arc::new(card.clone()),
            Timestamp::UNIX_EPOCH,
        );
        let row = Agent { credential: Some(credential.clone()), ..row };
        let door = Door { url: &self.place.url, card: Some(card), reach: self.reach(), proof: None };
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
                    let is_good = |signature| public != Signature::Valid || signature == Signature::Valid;
                    return Ok(examined.filter(|(_, signature)| is_good(*signature)));
                }
                Extended::NotNow => return Err(()),
                Extended::Refused => {}
            }
        }
        Ok(None)
    }

    async fn ask_extended(&self, carrier: Carrier, mut request: Request, shown: &Shown) -> Extended {
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

    /// Puts the limits of this search on a request.
    fn limit(&self, request: &mut Request) {
        request.reach = self.reach();
        request.limit = Some(LIMIT);
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
            // What was left of the time for one step says nothing; the whole does.
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

/// What is covered, with the signatures that cover it: a card that is read again later must still count as signed.
fn with_signatures(covered: &str, card: &str) -> Result<String, serde_json::Error> {
    let mut members: Extra = serde_json::from_str(covered)?;
    if let Some(signatures) = serde_json::from_str::<Extra>(card)?.take("signatures") {
        members.push("signatures", signatures);
    }
    serde_json::to_string(&members)
}

/// Where to look, below the base URL.
fn paths(given: Option<&str>) -> Vec<String> {
    let mut paths = Vec::with_capacity(3);
    if let Some(given) = given {
        paths.push(format!("/{}", given.trim_start_matches('/')));
    }
    for path in WELL_KNOWN {
        if !paths.iter().any(|known| known == path) {
            paths.push(path.to_owned());
        }
    }
    paths
}
