// Echo requests between two hosts, as a curve and in figures.
import { $, figure, svg } from "/page/dom.js";
import { socket } from "/page/connection.js";

const INTERVAL_S = 0.2;
/** How long after it was sent a request without an answer counts as lost while the measurement runs. */
const PATIENCE_S = 1;
let measuring = null;

$("ping").onclick = () => {
  if (measuring) { measuring.close(); return; }
  const [from, to, seconds] = [$("source").value, $("target").value, Number($("seconds").value)];
  if (from === to) { $("figures").textContent = "Choose two hosts."; return; }
  /** `answers`: round trips in ms by the request's number. `asked`: how many are known to have been sent. */
  const seen = { answers: new Map(), asked: 0, ended: false };
  const line = socket(`/echoes/${encodeURIComponent(from)}/${encodeURIComponent(to)}?seconds=${seconds}`);
  measuring = line;
  $("ping").textContent = "Stop";
  const show = () => plot(seen, seconds, `${from} to ${to}`);
  line.onmessage = (event) => {
    const told = JSON.parse(event.data);
    if (told.number) seen.answers.set(told.number, told.rtt_ms);
    seen.asked = Math.max(seen.asked, told.sent ?? told.unanswered ?? told.number);
    seen.ended ||= told.sent !== undefined;
    show();
  };
  line.onclose = (event) => {
    measuring = null;
    $("ping").textContent = "Measure";
    seen.ended = true;
    show();
    if (event.reason) $("figures").textContent = event.reason;
  };
  show();
};
/** The numbers of requests that were lost: without an answer, though a later one has one, or for PATIENCE_S. */
function lostOf({ answers, asked, ended }) {
  const newest = Math.max(0, ...answers.keys()), lost = [];
  for (let number = 1; number <= asked; number++)
    if (!answers.has(number) && (ended || number < newest || (asked - number) * INTERVAL_S > PATIENCE_S)) lost.push(number);
  return lost;
}
/** What the measurement says at this moment: the newest round trip, or since when there is none. */
function nowOf({ answers, asked }) {
  const newest = Math.max(0, ...answers.keys()), waiting_s = (asked - newest) * INTERVAL_S;
  if (newest && waiting_s < answers.get(newest) / 1000 + 2.5 * INTERVAL_S) return `now ${figure(answers.get(newest), 4)} ms`;
  return newest ? `no answer for ${figure(waiting_s)} s` : "no answer yet";
}
function inWords(seen, name, lost) {
  const sorted = [...seen.answers.values()].sort((one, other) => one - other);
  if (!sorted.length) return seen.ended ? `${name}: no request was answered, ${lost.length} lost` : `${name}: no answer yet, ${lost.length} lost`;
  const of = [`least ${sorted[0]}`, `median ${sorted[sorted.length >> 1]}`, `most ${sorted.at(-1)} ms`];
  return `${name}: ${[nowOf(seen), ...of].join(", ")}; ${sorted.length} answered, ${lost.length} lost`;
}
function plot(seen, seconds, name) {
  $("plot").removeAttribute("hidden");
  const wide = Math.max(300, Math.min(600, $("plot").clientWidth || 600));
  $("plot").setAttribute("viewBox", `0 0 ${wide} 200`);
  const answers = [...seen.answers].sort(([one], [other]) => one - other), lost = lostOf(seen);
  const highest = Math.max(1, ...seen.answers.values()), most = seconds / INTERVAL_S;
  const x = (number) => 46 + ((wide - 60) * number) / most, y = (ms) => 175 - (139 * ms) / highest;
  const drawn = [svg("path", { d: `M46 15V175H${wide - 10}` })];
  for (const part of [0, 0.5, 1]) {
    drawn.push(svg("text", { x: 40, y: y(part * highest) + 4, "text-anchor": "end" }, figure(part * highest)));
    drawn.push(svg("text", { x: x(most * part), y: 192, "text-anchor": part === 1 ? "end" : "start" }, `${seconds * part} s`));
  }
  drawn.push(svg("text", { x: 52, y: 12 }, "round trip in ms"));
  for (const number of lost) drawn.push(svg("path", { d: `M${x(number)} 168V175`, class: "lost" }));
  let d = "", before = null;
  for (const [number, ms] of answers) {
    d += `${before === number - 1 ? "L" : "M"}${x(number)} ${y(ms)}`;
    drawn.push(svg("circle", { cx: x(number), cy: y(ms), r: 2 }));
    before = number;
  }
  drawn.push(svg("path", { d: d || "M0 0", class: "series" }));
  $("plot").replaceChildren(...drawn);
  const text = seen.asked || seen.ended ? inWords(seen, name, lost) : `${name}: no answer yet`;
  $("figures").textContent = text;
  $("plot").setAttribute("aria-label", `Round trips, ${text}`);
}
