// Watch a robot with the protocol's own client. Reads its task as JSON from standard input, prints what came.

const { createRequire } = require("node:module");
const { readFileSync } = require("node:fs");

const task = JSON.parse(readFileSync(0, "utf-8"));
const from = createRequire(`${task.folder}/package.json`);
const { FoxgloveClient } = from("@foxglove/ws-protocol");
const WebSocket = from("ws");

const report = { errors: [], statuses: [], messages: {}, counts: {}, assets: {} };
const socket = new WebSocket(task.url, task.protocols, { headers: task.headers ?? {} });
const end = () => {
  console.log(JSON.stringify(report));
  process.exit(0);
};
socket.on("unexpected-response", (_, answer) => {
  report.refused = answer.statusCode;
  end();
});
const client = new FoxgloveClient({ ws: socket });
const topics = new Map();
const enough = () =>
  (report.counts["/joint_states"] ?? 0) >= (task.states ?? 20) &&
  Object.keys(report.messages).length >= (task.topics ?? 4) &&
  Object.keys(report.assets).length >= (task.assets ?? []).length;
client.on("error", (error) => report.errors.push(String(error)));
client.on("serverInfo", (info) => {
  report.info = info;
  report.protocol = socket.protocol;
});
client.on("status", (status) => report.statuses.push(status.message));
client.on("advertise", (channels) => {
  report.channels = channels;
  for (const channel of channels) topics.set(client.subscribe(channel.id), channel.topic);
  (task.assets ?? []).forEach((uri, number) => client.fetchAsset(uri, number));
  if (task.say) socket.send(task.say);
});
client.on("fetchAssetResponse", (answer) => {
  const data = answer.data ? Buffer.from(answer.data.buffer, answer.data.byteOffset, answer.data.byteLength) : null;
  report.assets[task.assets[answer.requestId]] = { status: answer.status, data: data?.toString("base64"), error: answer.error };
});
client.on("message", ({ subscriptionId, timestamp, data }) => {
  const topic = topics.get(subscriptionId);
  report.counts[topic] = (report.counts[topic] ?? 0) + 1;
  report.messages[topic] = {
    timestamp: String(timestamp),
    data: Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString("base64"),
  };
  if (enough()) end();
});
client.on("close", end);
setTimeout(end, task.patience_ms ?? 60_000);
