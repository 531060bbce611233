"""The smallest text agent on a2a-sdk 1.3.0: declares text/plain, and says what it was asked."""

import serving
from a2a.helpers import new_text_message
from a2a.server.agent_execution import AgentExecutor
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
from starlette.applications import Starlette


class Echo(AgentExecutor):
    async def execute(self, context, event_queue) -> None:
        await event_queue.enqueue_event(new_text_message(context.get_user_input(), context_id=context.context_id))

    async def cancel(self, context, event_queue) -> None:
        raise NotImplementedError


def main() -> None:
    sock, url = serving.bind(serving.parse(__doc__).port)
    card = AgentCard(
        name="Text Agent",
        description="Says what it was asked.",
        version="1",
        supported_interfaces=[AgentInterface(url=f"{url}/", protocol_binding="JSONRPC", protocol_version="1.0")],
        capabilities=AgentCapabilities(),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="ask", name="Ask", description="Says what it was asked.", tags=["text"])],
    )
    handler = DefaultRequestHandler(Echo(), InMemoryTaskStore(), card)
    serving.serve(Starlette(routes=create_agent_card_routes(card) + create_jsonrpc_routes(handler, "/")), sock, url)


if __name__ == "__main__":
    main()
