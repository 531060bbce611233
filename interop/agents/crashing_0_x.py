"""An agent on a2a-sdk 0.2 or 0.3 whose executor raises an exception: before it says anything, or after a status.

The SDK then cuts the stream, and the task keeps the state it had.
"""

import asyncio

import serving
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentSkill, TaskState
from a2a.utils import new_task


SKILLS = ("at_once", "submitted", "working")


class Crash(AgentExecutor):
    def __init__(self, when: str) -> None:
        self.when = when

    async def execute(self, context, event_queue) -> None:
        if self.when != "at_once":
            await event_queue.enqueue_event(new_task(context.message))
        if self.when == "working":
            updater = TaskUpdater(event_queue, context.task_id, context.context_id)
            await updater.update_status(TaskState.working)
            await asyncio.sleep(0.1)
        raise RuntimeError("it crashed on purpose")

    async def cancel(self, context, event_queue) -> None:
        pass


def main() -> None:
    parser = serving.parser(__doc__)
    parser.add_argument("--when", choices=SKILLS, default="submitted")
    args = parser.parse_args()
    sock, url = serving.bind(args.port)
    card = AgentCard(
        name=f"Crashing {args.when}",
        description="A foreign agent that crashes.",
        version="1.0.0",
        url=f"{url}/",
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain", "application/json"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="work", name="Work", description="Crashes.", tags=["interop"])],
    )
    handler = DefaultRequestHandler(Crash(args.when), InMemoryTaskStore())
    serving.serve(A2AStarletteApplication(card, handler).build(), sock, url)


if __name__ == "__main__":
    main()
