//! Form to try a skill, generated from its input schema.

use axum::response::Response;
use http::StatusCode;
use maud::{Markup, html};
use rialto_admin::{agents, tasks};
use rialto_model::{
    call::CallTarget,
    failure::{Failure, FailureKind},
    message::Part,
    name,
};

use super::{
    layout::{self, PageContent, PageFrame},
    request::{PageRequest, encode_segment},
};
use crate::{schema_form, text};

pub(super) async fn form(request: PageRequest) -> Result<Response, Failure> {
    let target = find_target(&request).await?;
    let frame = request.frame();
    let body = call_form(&frame, &target, &[], None);
    Ok(frame.respond_ok(&PageContent {
        title: "Try a skill",
        at: "/agents",
        live: None,
        is_over: false,
        body,
    }))
}

pub(super) async fn call(request: PageRequest) -> Result<Response, Failure> {
    let target = find_target(&request).await?;
    let schema = target.skill.as_ref().and_then(|skill| skill.input_schema.as_ref());
    let part = schema_form::read_arguments(schema, &request.form).map(|args| match args {
        Some(args) => Part::data(args),
        None => Part::text(schema_form::read_message(&request.form)),
    });
    let started = match part {
        Ok(part) => tasks::start(&request.admin, &request.caller, target.clone(), part).await,
        Err(why) => Err(Failure::new(FailureKind::Invalid, why)),
    };
    match started {
        Ok(task) => Ok(request.redirect(&format!("/tasks/{}", encode_segment(task.as_str())), "begun")),
        Err(failure) => {
            let frame = request.frame();
            let body = call_form(&frame, &target, &request.form, Some(&failure));
            let page = PageContent { title: "Try a skill", at: "/agents", live: None, is_over: false, body };
            Ok(frame.respond(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
    }
}

async fn find_target(request: &PageRequest) -> Result<CallTarget, Failure> {
    let agent = agents::find(&request.admin, &request.caller, request.path_param("key")).await?;
    let id = request.path_param("skill");
    let skill = agent.card.skill(id).cloned();
    let skill = skill.ok_or_else(|| {
        Failure::new(
            FailureKind::NotFound,
            format!("{} has no skill \"{id}\"; its page lists its skills", agent.slug),
        )
    })?;
    Ok(CallTarget { agent, skill: Some(skill) })
}

fn call_form(
    frame: &PageFrame,
    target: &CallTarget,
    given: &[(String, String)],
    failure: Option<&Failure>,
) -> Markup {
    let CallTarget { agent, skill: Some(skill) } = target else { return html! {} };
    let action = format!("/agents/{}/try/{}", encode_segment(&agent.slug), encode_segment(skill.id.as_str()));
    html! {
        div data-dialog-body {
            h1 { "Try " (text::render_line(&skill.name, 80)) }
            p.muted { code { (text::render_line(&name::canonical(&agent.slug, skill.id.as_str()), 160)) } }
            @if !skill.description.is_empty() { p { (text::render_line(&skill.description, 400)) } }
            (layout::error_message(failure))
            form method="post" action=(frame.url(&action)) {
                (frame.csrf_field())
                (schema_form::form_fields(skill.input_schema.as_ref(), given))
                @for example in skill.examples.iter().take(3) { p.hint.muted { "For example: " (text::render_line(example, 200)) } }
                div.actions { button.first type="submit" { "Call" } a.button href=(frame.url(&format!("/agents/{}", encode_segment(&agent.slug)))) { "Cancel" } }
            }
            p.hint.muted { "This is a real call: policies, limits and the audit log apply." }
        }
    }
}
