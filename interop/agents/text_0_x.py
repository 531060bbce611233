"""The smallest text agent on a2a-sdk 0.3.26 or 0.2.16: declares text/plain, and says what it was asked."""

import serving
from a2a.server.agent_execution import AgentExecutor
from a2a.server.apps import A2AStarletteApplication
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import AgentCapabilities, AgentCard, AgentSkill
from a2a.utils import new_agent_text_message


class Echo(AgentExecutor):
    async def execute(self, context, event_queue) -> None:
        await event_queue.enqueue_event(new_agent_text_message(context.get_user_input()))

    async def cancel(self, context, event_queue) -> None:
        raise NotImplementedError


def main() -> None:
    sock, url = serving.bind(serving.parse(__doc__).port)
    card = AgentCard(
        name="Text Agent",
        description="Says what it was asked.",
        version="1",
        url=f"{url}/",
        capabilities=AgentCapabilities(),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="ask", name="Ask", description="Says what it was asked.", tags=["text"])],
    )
    handler = DefaultRequestHandler(Echo(), InMemoryTaskStore())
    serving.serve(A2AStarletteApplication(card, handler).build(), sock, url)


if __name__ == "__main__":
    main()
