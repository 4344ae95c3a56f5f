// The page of minigts serve. It shows the server's messages, and inserts them as text; only a lesson's page is HTML,
// which the server makes.
import { $, html } from "/page/dom.js";
import { SILENT, ask, problem, said, socket, token } from "/page/connection.js";
import { showControl } from "/page/control.js";
import { draw, mark, onActs, showNow } from "/page/map.js";
import { open } from "/page/terminals.js";
import "/page/latency.js";

const state = { links: new Map(), chosen: null, runs: "" };
onActs(open, choose);

// --- the network ---------------------------------------------------------------------------------------------------

function showTopology(topology) {
  document.title = `${topology.lab} · minigts`;
  $("lab").textContent = topology.lab;
  draw(topology);
  const hosts = topology.machines.filter((each) => !each.switch).map((each) => each.name);
  $("hosts").replaceChildren(...hosts.map((name) => {
    const button = html("button", name, { type: "button", onclick: () => open(name) });
    button.dataset.host = name;
    button.setAttribute("aria-pressed", "false");
    return button;
  }));
  for (const id of ["source", "target"]) $(id).replaceChildren(...hosts.map((name) => html("option", name)));
  $("target").value = hosts[hosts.length - 1];
  $("paced").textContent = topology.virtual
    ? "Virtual time: while a terminal or a measurement is open, a second takes a second. Watching does not advance the clock." : "";
  const chosen = topology.links.find((each) => each.name === state.chosen) ?? topology.links[0];
  if (chosen) choose(chosen.name);
}
function choose(name) {
  state.chosen = name;
  $("chosen").textContent = `Link ${name}`;
  mark(name);
  if (state.links.has(name)) showControl(state.links.get(name));
}
function showLab(now) {
  problem("");
  $("clock").textContent = now.clock_s === null ? "real time"
    : `virtual time ${now.clock_s.toFixed(3)} s${now.seconds > 0 ? "" : ", stands still"}`;
  state.links = new Map(now.links.map((link) => [link.name, link]));
  showNow(now);
  if (state.links.has(state.chosen)) showControl(state.links.get(state.chosen));
}

// --- experiments and lessons ---------------------------------------------------------------------------------------

function showRuns(runs) {
  const text = JSON.stringify(runs);
  if (text === state.runs) return;
  state.runs = text;
  if ($("experiment").options.length !== runs.experiments.length)
    $("experiment").replaceChildren(...runs.experiments.map((name) => html("option", name)));
  $("run").disabled = runs.running !== null;
  $("stop").hidden = runs.running === null;
  $("run-state").textContent = runs.running ? `${runs.running} is running …`
    : runs.last ? `${runs.last} has ended${runs.code ? ` with code ${runs.code}` : ""}` : "";
  $("said").hidden = !runs.said.length;
  $("said").textContent = runs.said.join("\n");
  $("reports").replaceChildren(...runs.reports.map(({ name, path }) => {
    const item = html("li");
    item.append(html("a", name, { href: path, target: "_blank", rel: "noopener" }));
    return item;
  }));
}
$("run").onclick = () => ask("/run", { experiment: $("experiment").value });
$("stop").onclick = () => ask("/stop", {});

async function showLesson() {
  if (!$("lesson-name").value) return $("lesson-text").replaceChildren();
  const answer = await fetch(`/lesson/${encodeURIComponent($("lesson-name").value)}`, said);
  $("lesson-text").innerHTML = await answer.text();
}
function showLessons({ names, own }) {
  $("lesson").hidden = !names.length;
  const none = own ? [] : [html("option", "choose one", { value: "" })];
  $("lesson-name").replaceChildren(...none, ...names.map((name) => html("option", name)));
  if (own) {
    $("lesson-name").value = own;
    $("network").after($("lesson"));
    document.querySelector("main").classList.add("taught");
  }
  if (names.length) showLesson();
}
$("lesson-name").onchange = showLesson;

// --- messages of the server ------------------------------------------------------------------------------------------

const TOLD = {
  topology: showTopology, now: showLab, runs: showRuns, lessons: showLessons, problem: (told) => problem(told.text),
};
function listen() {
  const line = socket("/live");
  line.onmessage = (event) => { const told = JSON.parse(event.data); TOLD[told.kind](told); };
  line.onclose = () => { problem(SILENT); setTimeout(listen, 2000); };
}
if (token) listen();
else problem("the token is missing: open the address that minigts serve has printed");
