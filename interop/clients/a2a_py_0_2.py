"""An A2A 0.2 client on the official Python SDK, a2a-sdk 0.2.16 (JSON-RPC only)."""

import uuid
from typing import Any

import a2a_driving as driving
import httpx
from a2a.client import A2ACardResolver, A2AClient
from a2a.client.auth import AuthInterceptor, InMemoryContextCredentialStore
from a2a.client.middleware import ClientCallContext
from a2a.types import (
    CancelTaskRequest,
    GetTaskPushNotificationConfigParams,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    JSONRPCErrorResponse,
    MessageSendConfiguration,
    MessageSendParams,
    PushNotificationConfig,
    SendMessageRequest,
    SendStreamingMessageRequest,
    SetTaskPushNotificationConfigRequest,
    TaskIdParams,
    TaskPushNotificationConfig,
    TaskQueryParams,
)
from a2a_py_0_x import message, shown


class Refused(Exception):
    """This SDK hands errors back like answers."""

    def __init__(self, error) -> None:
        super().__init__(error.message)
        self.code = error.code


class Client:
    def __init__(self, card, sdk) -> None:
        self.shown, self.sdk = card, sdk

    @classmethod
    async def connect(cls, args):
        http = httpx.AsyncClient(timeout=60)
        card = await A2ACardResolver(http, args.url).get_agent_card()
        # The SDK itself finds out from the card how the token is shown.
        store = InMemoryContextCredentialStore()
        for scheme in (card.security_schemes or {}) if args.token else []:
            await store.set_credentials("one", scheme, args.token)
        return cls(card, A2AClient(http, card, interceptors=[AuthInterceptor(store)]))

    def read_card(self) -> dict[str, Any]:
        return driving.card(shown(self.shown))

    async def send(self, command):
        request = SendMessageRequest(id=new(), params=params(command))
        return driving.event(result(await self.sdk.send_message(request, context=context())))

    async def stream(self, command):
        request = SendStreamingMessageRequest(id=new(), params=params(command))
        async for event in self.sdk.send_message_streaming(
            request, context=context(), http_kwargs={}
        ):
            yield driving.event(result(event))

    async def get(self, command):
        request = GetTaskRequest(id=new(), params=TaskQueryParams(id=command["task"]))
        return driving.task(result(await self.sdk.get_task(request, context=context())))

    async def cancel(self, command):
        request = CancelTaskRequest(id=new(), params=TaskIdParams(id=command["task"]))
        return driving.task(result(await self.sdk.cancel_task(request, context=context())))

    async def push_set(self, command):
        wanted = TaskPushNotificationConfig(
            task_id=command["task"],
            push_notification_config=PushNotificationConfig(**command["push"]),
        )
        request = SetTaskPushNotificationConfigRequest(id=new(), params=wanted)
        return config(result(await self.sdk.set_task_callback(request, context=context())))

    async def push_get(self, command):
        wanted = GetTaskPushNotificationConfigParams(
            id=command["task"], push_notification_config_id=command["config"]
        )
        request = GetTaskPushNotificationConfigRequest(id=new(), params=wanted)
        return config(result(await self.sdk.get_task_callback(request, context=context())))


def new() -> str:
    return str(uuid.uuid4())


def context() -> ClientCallContext:
    return ClientCallContext(state={"sessionId": "one"})


def params(command) -> MessageSendParams:
    configuration = MessageSendConfiguration(
        accepted_output_modes=["text/plain", "application/json"],
        blocking=not command.get("at_once", False),
    )
    if push := command.get("push"):
        configuration.push_notification_config = PushNotificationConfig(**push)
    return MessageSendParams(
        message=message(command),
        configuration=configuration,
        metadata=driving.metadata_of(command) or None,
    )


def result(answer) -> dict[str, Any]:
    if isinstance(answer.root, JSONRPCErrorResponse):
        raise Refused(answer.root.error)
    return shown(answer.root.result)


def config(made: dict[str, Any]) -> dict[str, Any]:
    own = made["pushNotificationConfig"]
    return {
        "task": made["taskId"],
        "config": own.get("id"),
        "url": own["url"],
        "token": own.get("token"),
    }


def complaint(error: Exception) -> dict[str, Any]:
    return {"code": getattr(error, "code", None), "http": getattr(error, "status_code", None)}


if __name__ == "__main__":
    args = driving.parse(__doc__)
    driving.drive(lambda: Client.connect(args), complaint)
