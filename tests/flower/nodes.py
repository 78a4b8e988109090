"""Flower's nodes in this process: what its simulation does without Ray, so that a test can break them."""

from flwr.app import Context, Error, Message, RecordDict
from flwr.supercore.task_identity import TaskIdentity


class Nodes:
    """A grid whose nodes call the client app at once. Contexts are kept as Flower keeps them."""

    def __init__(self, app, configurations):
        TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 1
        self.app = app
        self.contexts = {
            1000 + n: Context(1, 1000 + n, given, RecordDict(), {})
            for n, given in enumerate(configurations)
        }
        self.lost = set()  # (round, node) of replies that do not arrive
        self.failing = set()  # (round, node) of errors
        self.forgets = set()  # (round, node) before which the node is started anew
        self.answers = {}  # in place of those of (round, node)
        self.round = 0
        self.asked = []  # nodes, for each round

    def get_node_ids(self):
        return list(self.contexts)

    def send_and_receive(self, messages, *, timeout=None):
        messages = list(messages)
        if not messages:  # the round of evaluation
            return []
        self.round += 1
        self.asked.append([message.metadata.dst_node_id for message in messages])
        return [reply for message in messages for reply in self.answer(message)]

    def answer(self, message):
        node = message.metadata.dst_node_id
        if (self.round, node) in self.forgets:
            before = self.contexts[node]
            self.contexts[node] = Context(1, node, before.node_config, RecordDict(), {})
        if (self.round, node) in self.answers:
            return [Message(self.answers[self.round, node], reply_to=message)]
        if (self.round, node) in self.failing:
            return [Message(Error(0, "out of power"), reply_to=message)]
        try:
            reply = self.app(message, self.contexts[node])
        except Exception as error:
            reply = Message(Error(0, f"{type(error).__name__}: {error}"), reply_to=message)
        return [] if (self.round, node) in self.lost else [reply]
