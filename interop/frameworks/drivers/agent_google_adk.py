"""Google ADK: an `LlmAgent` with an `McpToolset`."""

import os

from driver import KEY, PROMPT, Job, serve
from google.adk.agents import LlmAgent
from google.adk.models import Gemini
from google.adk.runners import InMemoryRunner
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams, StreamableHTTPConnectionParams
from google.genai.types import Content, Part
from mcp import StdioServerParameters
from mcp.types import ElicitResult

os.environ["GOOGLE_API_KEY"] = KEY


async def run(job: Job) -> str:
    if job.transport == "stdio":
        more = {"timeout": job.patience} if job.patience else {}
        server = StdioConnectionParams(server_params=StdioServerParameters(command=job.command, args=job.args), **more)
    else:
        server = StreamableHTTPConnectionParams(url=job.url, headers=job.headers)

    async def elicit(*_asked) -> ElicitResult:
        return ElicitResult(action="accept", content=job.answer)

    tools = McpToolset(connection_params=server, elicitation_callback=elicit if job.answer else None)
    agent = LlmAgent(name="worker", model=Gemini(model="gemini-2.5-flash", base_url=job.model), tools=[tools])
    runner = InMemoryRunner(agent=agent, app_name="interop")
    session = await runner.session_service.create_session(app_name="interop", user_id="user")
    said = ""
    message = Content(role="user", parts=[Part(text=PROMPT)])
    async for event in runner.run_async(user_id="user", session_id=session.id, new_message=message):
        if event.is_final_response() and event.content:
            said = "".join(part.text or "" for part in event.content.parts)
    await runner.close()
    return said


serve(run)
