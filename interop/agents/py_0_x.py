"""The executor and card shared by the pydantic generations of the Python SDK, 0.2 and 0.3."""

import base64

import skills
from a2a.server.agent_execution import AgentExecutor
from a2a.server.tasks import TaskUpdater
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentSkill,
    DataPart,
    FilePart,
    FileWithBytes,
    FileWithUri,
    Message,
    Part,
    Role,
    TaskState,
    TextPart,
)
from a2a.utils import new_task


class Executor(AgentExecutor):
    def __init__(self) -> None:
        self.skills = skills.Skills()

    async def execute(self, context, event_queue) -> None:
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        begun = context.current_task is not None
        async for event in self.skills.answer(context.task_id, asked(context)):
            if isinstance(event, skills.Reply):
                await event_queue.enqueue_event(said(context, event.text))
                return
            if not begun:
                await event_queue.enqueue_event(new_task(context.message))
                begun = True
            await publish(updater, event)

    async def cancel(self, context, event_queue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def asked(context) -> skills.Asked:
    # `message.skill` cannot be read here: the SDK's models drop unknown members.
    parts = [p.root for p in context.message.parts]
    data = [p.data for p in parts if isinstance(p, DataPart)]
    metadatas = [context.metadata, context.message.metadata]
    return skills.asked(metadatas, data[0] if data else None, context.get_user_input())


async def publish(updater: TaskUpdater, event) -> None:
    if isinstance(event, skills.Artifact):
        parts = [part(p) for p in event.parts]
        await updater.add_artifact(
            parts, event.name, event.name, append=event.append, last_chunk=event.last
        )
        return
    message = event.text and updater.new_agent_message([part({"text": event.text})])
    waits = event.state in ("input-required", "auth-required")
    await updater.update_status(TaskState(event.state), message or None, final=waits)


def part(neutral: dict) -> Part:
    if "text" in neutral:
        return Part(root=TextPart(text=neutral["text"]))
    if "data" in neutral:
        return Part(root=DataPart(data=neutral["data"]))
    named = {"name": neutral["name"], "mime_type": neutral["mime"]}
    if "raw" in neutral:
        raw = base64.b64encode(neutral["raw"]).decode()
        return Part(root=FilePart(file=FileWithBytes(bytes=raw, **named)))
    return Part(root=FilePart(file=FileWithUri(uri=neutral["url"], **named)))


def said(context, text: str) -> Message:
    return Message(
        role=Role.agent,
        message_id=f"reply-to-{context.message.message_id}",
        context_id=context.context_id,
        parts=[part({"text": text})],
    )


def card(url: str, streaming: bool, **more) -> AgentCard:
    return AgentCard(
        url=url,
        capabilities=AgentCapabilities(streaming=streaming),
        default_input_modes=["text/plain", "application/json"],
        default_output_modes=["text/plain", "application/json"],
        skills=[
            AgentSkill(
                id=id,
                name=skill["name"],
                description=skill["description"],
                tags=["interop"],
                examples=[skill["example"]],
            )
            for id, skill in skills.SKILLS.items()
        ],
        **more,
    )
