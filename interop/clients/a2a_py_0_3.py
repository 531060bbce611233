"""An A2A 0.3 client on the official Python SDK, a2a-sdk 0.3.26 (JSON-RPC, REST or gRPC)."""

from typing import Any

import a2a_driving as driving
import httpx
from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, InMemoryContextCredentialStore
from a2a.client.middleware import ClientCallContext
from a2a.types import (
    GetTaskPushNotificationConfigParams,
    MessageSendConfiguration,
    PushNotificationConfig,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
)
from a2a_py_0_x import message, shown

BINDINGS = {"jsonrpc": "JSONRPC", "rest": "HTTP+JSON", "grpc": "GRPC"}
ONE_AGENT = "/a2a/agents/"


class Client:
    def __init__(self, card, made) -> None:
        self.shown, self.made = card, made
        self.plain, self.streaming = made(streaming=False), made(streaming=True)

    @classmethod
    async def connect(cls, args):
        http = httpx.AsyncClient(timeout=60)
        card = await A2ACardResolver(http, args.url).get_agent_card()
        slug = None
        if args.binding == "grpc" and ONE_AGENT in args.url:
            # The agent's own card has no gRPC of 0.3, which cannot say whom it means: the metadata does.
            whole, slug = args.url.split(ONE_AGENT)
            whole = await A2ACardResolver(http, whole).get_agent_card()
            card.additional_interfaces = whole.additional_interfaces
        if args.binding == "rest" and args.token:  # this SDK has no interceptors there
            http.headers["Authorization"] = f"Bearer {args.token}"
        # Over JSON-RPC the SDK itself finds out from the card how the token is shown.
        store = InMemoryContextCredentialStore()
        for scheme in (card.security_schemes or {}) if args.token else []:
            await store.set_credentials("one", scheme, args.token)

        def made(streaming: bool, pushes=()):
            config = ClientConfig(
                streaming=streaming,
                push_notification_configs=list(pushes),
                httpx_client=http,
                supported_transports=[BINDINGS[args.binding]],
                grpc_channel_factory=lambda target: channel(args, target, slug),
            )
            return ClientFactory(config).create(card, interceptors=[AuthInterceptor(store)])

        return cls(card, made)

    def read_card(self) -> dict[str, Any]:
        return driving.card(shown(self.shown))

    async def send(self, command):
        client = self.plain
        if push := command.get("push"):  # in the SDK of 0.3 this belongs to the client
            client = self.made(streaming=False, pushes=[PushNotificationConfig(**push)])
        async for answer in client.send_message(**asked(command)):
            return told(answer)

    async def stream(self, command):
        async for event in self.streaming.send_message(**asked(command)):
            yield told(event)

    async def resubscribe(self, command):
        request = TaskIdParams(id=command["task"])
        async for event in self.streaming.resubscribe(request, context=context()):
            yield told(event)

    async def get(self, command):
        request = TaskQueryParams(id=command["task"])
        return driving.task(shown(await self.plain.get_task(request, context=context())))

    async def cancel(self, command):
        request = TaskIdParams(id=command["task"])
        return driving.task(shown(await self.plain.cancel_task(request, context=context())))

    async def push_set(self, command):
        wanted = TaskPushNotificationConfig(
            task_id=command["task"],
            push_notification_config=PushNotificationConfig(**command["push"]),
        )
        return config(await self.plain.set_task_callback(wanted, context=context()))

    async def push_get(self, command):
        request = GetTaskPushNotificationConfigParams(
            id=command["task"], push_notification_config_id=command["config"]
        )
        return config(await self.plain.get_task_callback(request, context=context()))

    async def card(self, command):
        return driving.card(shown(await self.plain.get_card(context=context())))


def channel(args, target: str, slug: str | None):
    """Shows the token with every call, and says which agent is meant: for gRPC, too, the SDK has no interceptors of its own."""
    import grpc  # only the gRPC binding needs it

    more = [("authorization", f"Bearer {args.token}")] if args.token else []
    more += [("rialto-agent", slug)] if slug else []

    def shown(details):
        return details._replace(metadata=[*(details.metadata or ()), *more])

    class Unary(grpc.aio.UnaryUnaryClientInterceptor):
        async def intercept_unary_unary(self, go_on, details, request):
            return await go_on(shown(details), request)

    class Stream(grpc.aio.UnaryStreamClientInterceptor):
        async def intercept_unary_stream(self, go_on, details, request):
            return await go_on(shown(details), request)

    return driving.channel(args.url, target, [Unary(), Stream()])


def context() -> ClientCallContext:
    return ClientCallContext(state={"sessionId": "one"})


def asked(command) -> dict[str, Any]:
    return {
        "request": message(command),
        "configuration": MessageSendConfiguration(blocking=not command.get("at_once", False)),
        "request_metadata": driving.metadata_of(command) or None,
        "context": context(),
    }


def told(event) -> dict[str, Any]:
    """The SDK pairs the task as it has put it together with the update that came."""
    if isinstance(event, tuple):
        task, update = event
        return driving.event(shown(update or task))
    return driving.event(shown(event))


def config(made) -> dict[str, Any]:
    own = made.push_notification_config
    return {"task": made.task_id, "config": own.id, "url": own.url, "token": own.token}


def complaint(error: Exception) -> dict[str, Any]:
    if hasattr(error, "details"):  # gRPC's own
        return {"code": None, "grpc": error.code().name}
    inner = getattr(error, "error", None)
    return {"code": getattr(inner, "code", None), "http": getattr(error, "status_code", None)}


if __name__ == "__main__":
    args = driving.parse(__doc__, tuple(BINDINGS))
    driving.drive(lambda: Client.connect(args), complaint)
