//! A skill, tried out from a form that its schema makes.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_model::{
    call::CallTarget,
    failure::{Failure, FailureKind},
    message::Part,
    name,
};

use super::{
    layout::{self, Frame, Page},
    visit::{Visit, encoded},
};
use crate::{
    admin::{agents, tasks},
    schema_form, text,
};

pub(super) async fn form(visit: Visit) -> Result<Response, Failure> {
    let target = target(&visit).await?;
    let frame = visit.frame();
    let body = ask(&frame, &target, &[], None);
    Ok(frame.page(&Page { title: "Try a skill", at: "/agents", live: None, is_over: false, body }))
}

pub(super) async fn begin(visit: Visit) -> Result<Response, Failure> {
    let target = target(&visit).await?;
    let schema = target.skill.as_ref().and_then(|skill| skill.input_schema.as_ref());
    let part = schema_form::read(schema, &visit.form).map(|args| match args {
        Some(args) => Part::data(args),
        None => Part::text(schema_form::message(&visit.form)),
    });
    let begun = match part {
        Ok(part) => tasks::begin(&visit.console, &visit.caller, target.clone(), part).await,
        Err(why) => Err(Failure::new(FailureKind::Invalid, why)),
    };
    match begun {
        Ok(task) => Ok(visit.go(&format!("/tasks/{}", encoded(task.as_str())), "begun")),
        Err(failure) => {
            let frame = visit.frame();
            let body = ask(&frame, &target, &visit.form, Some(&failure));
            let page = Page { title: "Try a skill", at: "/agents", live: None, is_over: false, body };
            Ok(frame.answer(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

async fn target(visit: &Visit) -> Result<CallTarget, Failure> {
    let agent = agents::find(&visit.console, &visit.caller, visit.part("key")).await?;
    let id = visit.part("skill");
    let skill = agent.card.skill(id).cloned();
    let skill = skill.ok_or_else(|| {
        Failure::new(
            FailureKind::NotFound,
            format!("{} has no skill \"{id}\"; its page shows those it has", agent.slug),
        )
    })?;
    Ok(CallTarget { agent, skill: Some(skill) })
}

fn ask(frame: &Frame, target: &CallTarget, given: &[(String, String)], failure: Option<&Failure>) -> Markup {
    let CallTarget { agent, skill: Some(skill) } = target else { return html! {} };
    let action = format!("/agents/{}/try/{}", encoded(&agent.slug), encoded(skill.id.as_str()));
    html! {
        div data-dialog-body {
            h1 { "Try " (text::line(&skill.name, 80)) }
            p.muted { code { (text::line(&name::canonical(&agent.slug, skill.id.as_str()), 160)) } }
            @if !skill.description.is_empty() { p { (text::line(&skill.description, 400)) } }
            (layout::refused(failure))
            form method="post" action=(frame.to(&action)) {
                (frame.proof())
                (schema_form::fields(skill.input_schema.as_ref(), given))
                @for example in skill.examples.iter().take(3) { p.hint.muted { "For example: " (text::line(example, 200)) } }
                div.actions { button.first type="submit" { "Call it" } a.button href=(frame.to(&format!("/agents/{}", encoded(&agent.slug)))) { "Cancel" } }
            }
            p.hint.muted { "This is a real call: policies, limits and records are those of any other." }
        }
    }
}
