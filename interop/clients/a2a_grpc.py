"""Calls an A2A agent over gRPC with what the official Python SDK of this environment has.

    interop/run a2a_grpc_1_3 --target HOST:PORT [--token T]   the client transport of a2a-sdk 1.3.0
    interop/run a2a_grpc_0_3 --target HOST:PORT [--token T]   the stubs of a2a-sdk 0.3.26

Each line of stdin is `{"method": "SendMessage", "params": {…}}`, params in protobuf's JSON. The answer is one line,
`{"result": …}` or `{"error": {"type", "message"}}`; of a stream one line per event, `{"event": …}`, and then
`{"end": true}` or the error.
"""

import argparse
import asyncio
import json
import sys

import grpc
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.message_factory import GetMessageClass

try:
    from a2a.types import a2a_pb2 as pb2
except ImportError:
    pb2 = None

STREAMS = ("SendStreamingMessage", "SubscribeToTask", "TaskSubscription")


class New:
    """1.0, by the SDK's own client: what it makes of errors is what programs see."""

    NAMES = {
        "SendMessage": "send_message",
        "SendStreamingMessage": "send_message_streaming",
        "GetTask": "get_task",
        "ListTasks": "list_tasks",
        "CancelTask": "cancel_task",
        "SubscribeToTask": "subscribe",
        "CreateTaskPushNotificationConfig": "create_task_push_notification_config",
        "GetTaskPushNotificationConfig": "get_task_push_notification_config",
        "ListTaskPushNotificationConfigs": "list_task_push_notification_configs",
        "DeleteTaskPushNotificationConfig": "delete_task_push_notification_config",
        "GetExtendedAgentCard": "get_extended_agent_card",
    }

    def __init__(self, channel, token) -> None:
        from a2a.client.client import ClientCallContext
        from a2a.client.transports.grpc import GrpcTransport

        self.transport = GrpcTransport(channel, None)
        shown = {"authorization": f"Bearer {token}"} if token else None
        self.context = ClientCallContext(service_parameters=shown)
        self.service = pb2.DESCRIPTOR.services_by_name["A2AService"]

    def call(self, method: str, request):
        return getattr(self.transport, self.NAMES[method])(request, context=self.context)


class Old:
    """0.3, by the SDK's stubs."""

    def __init__(self, channel, token) -> None:
        from a2a.grpc import a2a_pb2, a2a_pb2_grpc

        self.stub = a2a_pb2_grpc.A2AServiceStub(channel)
        self.metadata = [("authorization", f"Bearer {token}")] if token else []
        self.service = a2a_pb2.DESCRIPTOR.services_by_name["A2AService"]

    def call(self, method: str, request):
        return getattr(self.stub, method)(request, metadata=self.metadata)


def tell(**line) -> None:
    print(json.dumps(line), flush=True)


async def ask(client, method: str, params: dict) -> None:
    kind = client.service.methods_by_name[method].input_type
    request = ParseDict(params, GetMessageClass(kind)())
    try:
        if method in STREAMS:
            async for event in client.call(method, request):
                tell(event=MessageToDict(event))
            tell(end=True)
        else:
            answer = await client.call(method, request)
            tell(result=None if answer is None else MessageToDict(answer))
    except grpc.aio.AioRpcError as error:
        tell(error={"type": error.code().name, "message": error.details()})
    except Exception as error:
        tell(error={"type": type(error).__name__, "message": str(error)})


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", required=True)
    parser.add_argument("--token")
    args = parser.parse_args()
    async with grpc.aio.insecure_channel(args.target) as channel:
        client = (New if pb2 else Old)(channel, args.token)
        while line := await asyncio.to_thread(sys.stdin.readline):
            asked = json.loads(line)
            await ask(client, asked["method"], asked.get("params", {}))


if __name__ == "__main__":
    asyncio.run(main())
