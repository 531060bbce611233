//! `rialto policy add`, `remove`, `history`, `restore`, `fmt`: what is changed is checked first, and kept.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use rialto_model::{
    agent::Trust,
    call::Target,
    clock::{Clock, SystemClock},
    ids::OrgId,
    store::Store,
};
use rialto_policy::{Action, Object, PolicyError, Source, Template, Who, Wish, format};
use serde_json::{Value, json};

use super::ask;
use crate::{
    cli::{AddPolicy, Listing, Policy, PolicyKind},
    output::{self, Trouble},
    policies::{self, Book, Kept, SaveError, Shelf, Version},
    program::Program,
};

/// What policies are changed with. It needs no valid ones, so that broken ones can be mended.
pub(crate) struct Desk {
    pub(crate) policies: Book,
    pub(crate) store: Arc<dyn Store>,
}

// === impl Desk ===

impl Desk {
    pub(crate) fn of(program: &Program) -> Self {
        Self { policies: program.policies.clone(), store: Arc::clone(&program.store) }
    }

    pub(crate) async fn run(&self, command: Policy) -> Result<(), Trouble> {
        match command {
            Policy::Remove { name, shelf } => {
                let kept = self.policies.remove(&name, shelf.shelf(), SystemClock.now()).await?;
                self.tell(&kept).await?;
                output::line(format!("removed {kept}"));
                output::note(format!("`rialto policy history {}` shows its text", kept.name()));
                Ok(())
            }
            Policy::Restore { name, version, shelf } => {
                let kept = self.policies.restore(&name, version, shelf.shelf(), SystemClock.now()).await?;
                self.tell(&kept).await?;
                output::line(format!("restored {kept}"));
                Ok(())
            }
            Policy::History { name, shelf, listing } => self.history(&name, shelf.shelf(), listing).await,
            Policy::Fmt { files, check } => self.fmt(&files, check).await,
            Policy::Add(AddPolicy { file: Some(file), name, shelf, listing, .. }) => {
                self.add_file(&file, name.as_deref(), shelf.shelf(), listing).await
            }
            _ => Err(Trouble::usage("this command needs the policies in force to be valid")),
        }
    }

    async fn add_file(
        &self,
        file: &Path,
        name: Option<&str>,
        shelf: Option<Shelf>,
        listing: Listing,
    ) -> Result<(), Trouble> {
        let source = policies::source(file).map_err(|error| Trouble::usage(error.to_string()))?;
        let name = name.unwrap_or(&source.name);
        let saved = self.policies.save(name, &source.text, shelf, SystemClock.now()).await?;
        self.saved(&saved, listing).await
    }

    async fn history(&self, name: &str, shelf: Option<Shelf>, listing: Listing) -> Result<(), Trouble> {
        let versions = self.policies.history(name, shelf).await?;
        if listing.json {
            output::json(&versions.iter().map(told).collect::<Vec<_>>());
        } else if versions.is_empty() {
            output::line(format!(
                "\"{name}\" has no older versions: it was not changed with this command line"
            ));
        } else {
            for Version { version, text, at, by, .. } in versions {
                output::line(match by {
                    Some(by) => format!("{version} ({at}, by {}):", output::printable(&by)),
                    None => format!("{version} (replaced {at}):"),
                });
                let text = text.as_deref().unwrap_or("// removed");
                text.lines().for_each(|line| output::line(format!("    {}", output::printable(line))));
            }
        }
        Ok(())
    }

    /// Lays files out alike: those that are named, or all that are in force.
    async fn fmt(&self, files: &[PathBuf], check: bool) -> Result<(), Trouble> {
        let changed = self.laid_out(files).await?;
        let names: Vec<&str> = changed.iter().map(|(_, source)| source.name.as_str()).collect();
        let names = names.join(", ");
        if changed.is_empty() {
            output::line("everything is laid out well");
            return Ok(());
        }
        if check {
            return Err(Trouble::other(format!("not laid out well: {names}; `rialto policy fmt` does it")));
        }
        for (file, source) in &changed {
            match file {
                Some(file) => policies::write_whole(file, &source.text)?,
                None => {
                    let shelf = Some(policies::place(&source.name).0);
                    self.policies.save(&source.name, &source.text, shelf, SystemClock.now()).await?;
                }
            }
        }
        output::line(format!("laid out {names}"));
        self.touch().await
    }

    /// What would look different: the file, when it was named, and its new text.
    async fn laid_out<'a>(&self, files: &'a [PathBuf]) -> Result<Vec<(Option<&'a Path>, Source)>, Trouble> {
        let invalid = |error: PolicyError| Trouble::usage(error.to_string());
        let sources: Vec<(Option<&Path>, Source)> = if files.is_empty() {
            let in_force = self.policies.sources().await.map_err(SaveError::from)?.map_err(invalid)?;
            in_force.into_iter().map(|source| (None, source)).collect()
        } else {
            let read = |file: &'a PathBuf| Ok((Some(file.as_path()), policies::source(file)?));
            files.iter().map(read).collect::<Result<_, _>>().map_err(invalid)?
        };
        let mut changed = Vec::new();
        for (file, source) in sources {
            let text = format(&source).map_err(invalid)?;
            if text != source.text {
                changed.push((file, Source { text, ..source }));
            }
        }
        Ok(changed)
    }

    async fn saved(&self, kept: &Kept, listing: Listing) -> Result<(), Trouble> {
        self.tell(kept).await?;
        let policy = self.policies.load().await.map_err(SaveError::from)?;
        let policy = policy.map_err(|error| Trouble::other(error.to_string()))?;
        let name = kept.source_name();
        let rules: Vec<_> = policy.rules().into_iter().filter(|rule| rule.file == name).collect();
        if listing.json {
            let rules = rules.iter().map(
                |rule| json!({ "name": rule.name, "effect": rule.effect.as_str(), "summary": rule.summary }),
            );
            output::json(&json!({
                "file": kept.to_string(),
                "policies": rules.collect::<Vec<_>>(),
            }));
        } else {
            for rule in rules {
                output::line(format!("{}: {}", rule.name, output::printable(&rule.summary)));
            }
            output::line(format!("saved in {kept}"));
        }
        Ok(())
    }

    /// Makes every running server look at a file with its next call. A change in the store is one that they see anyway.
    async fn tell(&self, kept: &Kept) -> Result<(), Trouble> {
        match kept {
            Kept::File(_) => self.touch().await,
            Kept::Store(_) => Ok(()),
        }
    }

    async fn touch(&self) -> Result<(), Trouble> {
        self.store.touch().await.map(drop).map_err(|error| Trouble::other(error.to_string()))
    }
}

fn told(version: &Version) -> Value {
    let Version { name, version: number, text, at, by, shelf } = version;
    match shelf {
        Shelf::Files => {
            json!({ "name": name, "version": number, "replacedAt": at.to_string(), "text": text })
        }
        Shelf::Store => {
            json!({ "name": name, "version": number, "changedAt": at.to_string(), "by": by, "text": text })
        }
    }
}

pub(super) async fn add(program: &Program, add: &AddPolicy) -> Result<(), Trouble> {
    let desk = Desk::of(program);
    if let Some(file) = &add.file {
        return desk.add_file(file, add.name.as_deref(), add.shelf.shelf(), add.listing).await;
    }
    let (Some(kind), Some(target)) = (add.kind, &add.target) else {
        return Err(Trouble::usage("say which policy, and what it is about"));
    };
    let caller = match &add.caller {
        Some(name) => {
            let (caller, _) = ask::caller(program, name, add.caller_kind)?;
            Some(Who { kind: caller.kind, id: caller.id })
        }
        None => None,
    };
    let wish = match kind {
        PolicyKind::AllowAgent
        | PolicyKind::AllowSkill
        | PolicyKind::AllowTrust
        | PolicyKind::AllowTag
        | PolicyKind::AllowAdmin => Wish::Allow,
        PolicyKind::DenyAgent | PolicyKind::DenySkill => Wish::Deny,
        PolicyKind::RequireApproval => Wish::Approval { by: add.by.clone() },
    };
    let found = Found::of(program, kind, target)?;
    if kind == PolicyKind::AllowAdmin && caller.is_none() {
        return Err(Trouble::usage("say who may administer, with --caller"));
    }
    let template = Template { wish, caller, object: found.object() };
    let (name, shelf) = (add.name.as_deref(), add.shelf.shelf());
    let kept = program.policies.add(&template, name, shelf, SystemClock.now()).await?;
    desk.saved(&kept, add.listing).await
}

/// What a policy shall be about.
enum Found<'a> {
    Target(Target),
    Trust(Trust),
    Tag(&'a str),
    Admin(Action, OrgId),
}

impl<'a> Found<'a> {
    fn of(program: &Program, kind: PolicyKind, name: &'a str) -> Result<Self, Trouble> {
        match kind {
            PolicyKind::AllowAgent | PolicyKind::DenyAgent => {
                let agent = program.engine.registry().find(&Program::local_caller().scope, name)?;
                Ok(Self::Target(Target { agent, skill: None }))
            }
            PolicyKind::AllowSkill | PolicyKind::DenySkill => {
                let target = ask::target(program, &Program::local_caller(), name)?;
                if target.skill.is_none() {
                    let agent = &target.agent.slug;
                    return Err(Trouble::usage(format!(
                        "{agent} is an agent; name one of its skills, like {agent}.SKILL: `rialto agents show {agent}` lists them"
                    )));
                }
                Ok(Self::Target(target))
            }
            PolicyKind::RequireApproval => {
                Ok(Self::Target(ask::target(program, &Program::local_caller(), name)?))
            }
            PolicyKind::AllowTrust => {
                let levels = [Trust::External, Trust::Trusted, Trust::System];
                let level = levels.into_iter().find(|level| level.as_str() == name);
                level.map(Self::Trust).ok_or_else(|| {
                    Trouble::usage(format!(
                        "\"{name}\" is not a level of trust; use external, trusted or system"
                    ))
                })
            }
            PolicyKind::AllowTag => Ok(Self::Tag(name)),
            PolicyKind::AllowAdmin => {
                let action = Action::parse(name).filter(|action| action.is_admin());
                action.map(|action| Self::Admin(action, Program::local_caller().scope.org)).ok_or_else(|| {
                    let actions = Action::ALL.into_iter().filter(|action| action.is_admin());
                    let names: Vec<_> = actions.map(Action::as_str).collect();
                    Trouble::usage(format!("\"{name}\" is not an admin action; use {}", names.join(", ")))
                })
            }
        }
    }

    fn object(&self) -> Object<'_> {
        match self {
            Self::Target(Target { agent, skill: Some(skill) }) => Object::Skill(agent, &skill.id),
            Self::Target(Target { agent, skill: None }) => Object::Agent(agent),
            Self::Trust(level) => Object::Trust(*level),
            Self::Tag(tag) => Object::Tag(tag),
            Self::Admin(action, org) => Object::Admin(*action, org),
        }
    }
}

impl From<SaveError> for Trouble {
    fn from(error: SaveError) -> Self {
        let status = match &error {
            SaveError::Invalid(_) | SaveError::Name(_) | SaveError::Shared { .. } | SaveError::Both(_) => 2,
            SaveError::NotFound(_) | SaveError::NoVersion { .. } => 4,
            SaveError::NoFolder | SaveError::File { .. } | SaveError::Store(_) => 1,
        };
        Self { status, ..Self::other(error.to_string()) }
    }
}
