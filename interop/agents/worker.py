"""An agent with one skill, `work`, that does it well, badly or slowly, on a2a-sdk 1.3.0.

`--fails 2` has every second task fail, `--delay 1.5` has each take so many seconds, `--skill review` and `--tags qa,rust` say what
it can do. For choosing among agents.
"""

import asyncio

import serving
from a2a.helpers import new_task_from_user_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part
from starlette.applications import Starlette


class Executor(AgentExecutor):
    def __init__(self, name: str, fails: int, delay: float) -> None:
        self._name, self._fails, self._delay, self._count = name, fails, delay, 0

    async def execute(self, context, event_queue) -> None:
        self._count += 1
        is_bad = self._fails > 0 and self._count % self._fails == 0
        await event_queue.enqueue_event(new_task_from_user_message(context.message))
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await asyncio.sleep(self._delay)
        if is_bad:
            await updater.failed(updater.new_agent_message([Part(text="not this time")]))
            return
        await updater.add_artifact([Part(text=f"done by {self._name}")], "result", "result")
        await updater.complete()

    async def cancel(self, context, event_queue) -> None:
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def main() -> None:
    parser = serving.parser(__doc__)
    parser.add_argument("--name", default="Worker")
    parser.add_argument("--fails", type=int, default=0, help="every so many tasks one fails")
    parser.add_argument("--delay", type=float, default=0.0, help="how many seconds a task takes")
    parser.add_argument("--skill", default="work", help="the skill's id")
    parser.add_argument("--tags", default="labour", help="its tags, with commas between them")
    args = parser.parse_args()
    sock, url = serving.bind(args.port)
    tags = args.tags.split(",")
    skill = AgentSkill(id=args.skill, name=args.skill, description="Works as it is told.", tags=tags)
    card = AgentCard(
        name=args.name,
        description="Works.",
        version="1.0.0",
        supported_interfaces=[AgentInterface(url=f"{url}/", protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(streaming=False),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[skill],
    )
    handler = DefaultRequestHandler(Executor(args.name, args.fails, args.delay), InMemoryTaskStore(), card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/")]
    serving.serve(Starlette(routes=routes), sock, url)


if __name__ == "__main__":
    main()
