// A page with RTCPeerConnection in a real browser, as a client of the simulated robot.
// Reads its task as JSON from standard input: page (where playwright-core is), chromium, offer (the
// URL that takes offers), hide (leave every candidate out of the offer). Prints what it saw as JSON.

import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";

const task = JSON.parse(readFileSync(0, "utf-8"));
const { chromium } = createRequire(`${task.page}/package.json`)("playwright-core");
const ORIGIN = "http://client.test";

async function talk(hide) {
  const connection = new RTCPeerConnection();
  const channel = connection.createDataChannel("data");
  const gathered = new Promise((resolve) => {
    connection.onicegatheringstatechange = () => connection.iceGatheringState === "complete" && resolve();
  });
  await connection.setLocalDescription(await connection.createOffer());
  await gathered;
  const whole = connection.localDescription.sdp;
  const candidates = whole.split("\r\n").filter((line) => line.startsWith("a=candidate:"));
  const sdp = hide ? whole.split("\r\n").filter((line) => !line.startsWith("a=candidate:")).join("\r\n") : whole;
  const body = JSON.stringify({ id: "STA_localNetwork", sdp, type: "offer", token: "" });
  const response = await fetch("/offer", { method: "POST", headers: { "Content-Type": "application/json" }, body });
  const kind = response.headers.get("content-type");
  const answer = await response.json();
  const said = new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`ICE is ${connection.iceConnectionState}, the channel ${channel.readyState}`)), 20000);
    channel.onmessage = async (event) => {
      const message = JSON.parse(event.data);
      if (message.type === "validation" && message.data !== "Validation Ok.") {
        channel.send(JSON.stringify({ type: "validation", topic: "", data: await window.answerTo(message.data) }));
      } else if (message.type === "validation") {
        const header = { identity: { id: 1, api_id: 7107 } };
        channel.send(JSON.stringify({ type: "req", topic: "rt/api/arm/request", data: { header, parameter: "" } }));
      } else if (message.type === "res") {
        resolve(message);
      }
    };
  });
  await connection.setRemoteDescription({ type: answer.type, sdp: answer.sdp });
  const list = await said;
  connection.close();
  return { candidates, kind, code: list.data.header.status.code, list: JSON.parse(list.data.data) };
}

const browser = await chromium.launch({
  executablePath: task.chromium,
  args: process.getuid() === 0 ? ["--no-sandbox"] : [],
});
try {
  const page = await browser.newPage();
  await page.exposeFunction("answerTo", (challenge) =>
    createHash("md5").update(`UnitreeGo2_${challenge}`).digest("base64"),
  );
  await page.route(`${ORIGIN}/**`, async (route) => {
    if (!route.request().url().endsWith("/offer")) return route.fulfill({ contentType: "text/html", body: "<p>" });
    return route.fulfill({ response: await route.fetch({ url: task.offer }) });
  });
  await page.goto(`${ORIGIN}/`);
  console.log(JSON.stringify(await page.evaluate(talk, task.hide)));
} finally {
  await browser.close();
}
