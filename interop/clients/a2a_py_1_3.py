"""An A2A 1.0 client on the official Python SDK, a2a-sdk 1.3.0 (JSON-RPC, REST or gRPC).

With `--binding rest03` it is the same SDK's HTTP+JSON client for agents of 0.3.
"""

import uuid
from typing import Any

import a2a_driving as driving
import httpx
from a2a.client import ClientCallContext, ClientConfig, ClientFactory
from a2a.client.auth import AuthInterceptor, InMemoryContextCredentialStore
from a2a.client.card_resolver import A2ACardResolver
from a2a.types.a2a_pb2 import (
    CancelTaskRequest,
    DeleteTaskPushNotificationConfigRequest,
    GetExtendedAgentCardRequest,
    GetTaskPushNotificationConfigRequest,
    GetTaskRequest,
    ListTaskPushNotificationConfigsRequest,
    ListTasksRequest,
    SendMessageRequest,
    SubscribeToTaskRequest,
    TaskPushNotificationConfig,
)
from a2a.utils.errors import JSON_RPC_ERROR_CODE_MAP
from google.protobuf.json_format import MessageToDict, ParseDict

BINDINGS = {"jsonrpc": "JSONRPC", "rest": "HTTP+JSON", "grpc": "GRPC", "rest03": "HTTP+JSON"}


class Client:
    def __init__(self, card, at_once, streaming) -> None:
        self.shown, self.at_once, self.streaming = card, at_once, streaming

    @classmethod
    async def connect(cls, args):
        http = httpx.AsyncClient(timeout=60)
        card = await A2ACardResolver(http, args.url).get_agent_card()
        if args.binding == "rest03":
            older = [i for i in card.supported_interfaces if i.protocol_version.startswith("0.3")]
            del card.supported_interfaces[:]
            card.supported_interfaces.extend(older)
        # The SDK itself finds out from the card how the token is shown.
        store = InMemoryContextCredentialStore()
        for scheme in card.security_schemes if args.token else []:
            await store.set_credentials("one", scheme, args.token)

        def made(streaming: bool):
            config = ClientConfig(
                streaming=streaming,
                httpx_client=http,
                supported_protocol_bindings=[BINDINGS[args.binding]],
                grpc_channel_factory=lambda target: driving.channel(args.url, target),
            )
            return ClientFactory(config).create(card, interceptors=[AuthInterceptor(store)])

        return cls(card, made(False), made(True))

    def read_card(self) -> dict[str, Any]:
        return driving.card(shown(self.shown))

    async def send(self, command):
        async for answer in self.at_once.send_message(request(command), context=context()):
            return driving.event(shown(answer))

    async def stream(self, command):
        async for event in self.streaming.send_message(request(command), context=context()):
            yield driving.event(shown(event))

    async def resubscribe(self, command):
        request = SubscribeToTaskRequest(id=command["task"])
        async for event in self.streaming.subscribe(request, context=context()):
            yield driving.event(shown(event))

    async def get(self, command):
        request = GetTaskRequest(id=command["task"])
        return driving.task(shown(await self.at_once.get_task(request, context=context())))

    async def list(self, command):
        request = ListTasksRequest(context_id=command["context"], include_artifacts=True)
        listed = await self.at_once.list_tasks(request, context=context())
        return [driving.task(task) for task in shown(listed)["tasks"]]

    async def cancel(self, command):
        request = CancelTaskRequest(id=command["task"])
        return driving.task(shown(await self.at_once.cancel_task(request, context=context())))

    async def push_set(self, command):
        wanted = TaskPushNotificationConfig(task_id=command["task"], **command["push"])
        made = await self.at_once.create_task_push_notification_config(wanted, context=context())
        return config(made)

    async def push_get(self, command):
        request = GetTaskPushNotificationConfigRequest(task_id=command["task"], id=command["config"])
        return config(
            await self.at_once.get_task_push_notification_config(request, context=context())
        )

    async def push_list(self, command):
        request = ListTaskPushNotificationConfigsRequest(task_id=command["task"])
        listed = await self.at_once.list_task_push_notification_configs(request, context=context())
        return [config(one) for one in listed.configs]

    async def push_delete(self, command):
        request = DeleteTaskPushNotificationConfigRequest(
            task_id=command["task"], id=command["config"]
        )
        await self.at_once.delete_task_push_notification_config(request, context=context())

    async def card(self, command):
        request = GetExtendedAgentCardRequest()
        extended = await self.at_once.get_extended_agent_card(request, context=context())
        return driving.card(shown(extended))


class Client03(Client):
    """What the SDK's client for 0.3 over HTTP+JSON can do: it has no list, push_list and push_delete."""

    def __getattribute__(self, name: str):
        if name in ("list", "push_list", "push_delete"):
            raise AttributeError(name)
        return super().__getattribute__(name)


def context() -> ClientCallContext:
    return ClientCallContext(state={"sessionId": "one"})


def request(command) -> SendMessageRequest:
    message = {
        "messageId": str(uuid.uuid4()),
        "role": "ROLE_USER",
        "parts": driving.parts_of(command),
        "taskId": command.get("task", ""),
        "contextId": command.get("context", ""),
    }
    configuration = {"returnImmediately": command.get("at_once", False)}
    if push := command.get("push"):
        configuration["taskPushNotificationConfig"] = push
    metadata = driving.metadata_of(command)
    params = {"message": message, "configuration": configuration, "metadata": metadata}
    return ParseDict(params, SendMessageRequest())


def config(made) -> dict[str, Any]:
    return {"task": made.task_id, "config": made.id, "url": made.url, "token": made.token}


def shown(message) -> dict[str, Any]:
    return MessageToDict(message)


def complaint(error: Exception) -> dict[str, Any]:
    return {"code": JSON_RPC_ERROR_CODE_MAP.get(type(error))}


if __name__ == "__main__":
    args = driving.parse(__doc__, tuple(BINDINGS))
    kind = Client03 if args.binding == "rest03" else Client
    driving.drive(lambda: kind.connect(args), complaint)
