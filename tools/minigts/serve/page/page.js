// The page of minigts serve. It shows the server's messages, and inserts them as text; only a lesson's page is HTML,
// which the server makes.
import { Terminal, FitAddon } from "/xterm/index.js";

const $ = (id) => document.getElementById(id);
const SCALE = 210, MARGIN = 70, RADIUS = 26;
const state = { topology: null, links: new Map(), chosen: null, sliding: false, terminals: new Map(), runs: "", off: new Set() };

function svg(name, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}
function html(name, text = null, properties = {}) {
  const made = Object.assign(document.createElement(name), properties);
  if (text !== null) made.textContent = text;
  return made;
}
const figure = (value, digits = 3) => String(Number(value.toPrecision(digits)));
const both = (values, digits = 4) => [...new Set(values)].map((each) => figure(each, digits)).join(" / ");

// The token is after the # of the printed address, which a browser does not send. It is kept for this tab and this
// origin, port included, and is sent to the server only in a header.
const KEPT = "minigts-token";
function takeToken() {
  const given = new URLSearchParams(location.hash.slice(1)).get("token");
  if (given === null) return false;
  sessionStorage.setItem(KEPT, given);
  history.replaceState(null, "", "/");
  return true;
}
takeToken();
const token = sessionStorage.getItem(KEPT) ?? "";
addEventListener("hashchange", () => { if (takeToken()) location.reload(); });
const said = { headers: { Authorization: `Bearer ${token}` } };

async function ask(path, body) {
  const answer = await fetch(path, { ...said, method: "POST", body: JSON.stringify(body) });
  problem(answer.ok ? "" : await answer.text());
}
function problem(text) {
  $("problem").textContent = text;
  $("problem").hidden = !text;
}
const socket = (path) => new WebSocket(`ws://${location.host}${path}`, ["minigts", `minigts.token.${token}`]);

// --- the network ---------------------------------------------------------------------------------------------------

function drawTopology(topology) {
  state.topology = topology;
  document.title = `${topology.lab} · minigts`;
  $("lab").textContent = topology.lab;
  const at = new Map(topology.machines.map((each) => [each.name, [MARGIN + SCALE * each.x, MARGIN + SCALE * each.y]]));
  const right = Math.max(...[...at.values()].map(([x]) => x)) + MARGIN;
  const bottom = Math.max(...[...at.values()].map(([, y]) => y)) + MARGIN;
  const map = $("map");
  map.setAttribute("viewBox", `0 0 ${right} ${bottom}`);
  map.replaceChildren();
  map.style.minWidth = `${Math.round(0.8 * right)}px`; // below that width the drawing scrolls, since figures would be too small
  $("network").classList.toggle("broad", right > 700);
  const beside = new Map();
  for (const link of topology.links) {
    const [[ax, ay], [bx, by]] = link.ends.map((end) => at.get(end));
    const pair = [...link.ends].sort().join(" ");
    const number = beside.get(pair) ?? 0;
    beside.set(pair, number + 1);
    const length = Math.hypot(bx - ax, by - ay) || 1;
    const bend = number ? (number % 2 ? 1 : -1) * 26 * Math.ceil(number / 2) : 0;
    const mx = (ax + bx) / 2 - (bend * 2 * (by - ay)) / length, my = (ay + by) / 2 + (bend * 2 * (bx - ax)) / length;
    const group = svg("g", { role: "button", tabindex: "0", "data-link": link.name, "aria-pressed": "false" });
    const path = `M${ax} ${ay}Q${mx} ${my} ${bx} ${by}`;
    const level = Math.abs(ay - by) < 0.3 * SCALE;
    group.append(
      svg("path", { d: path, class: "hit", fill: "none" }),
      svg("path", { d: path, class: "line" }),
      svg("text", { x: (ax + bx + 2 * mx) / 4, y: (ay + by + 2 * my) / 4 - (level ? 12 : 4), class: "first" }),
      svg("text", { x: (ax + bx + 2 * mx) / 4, y: (ay + by + 2 * my) / 4 + (level ? 22 : 12), class: "second" }),
    );
    acts(group, () => choose(link.name));
    map.append(group);
  }
  for (const machine of topology.machines) {
    const [x, y] = at.get(machine.name);
    const group = svg("g", machine.switch ? {} : { role: "button", tabindex: "0", "aria-label": `Terminal on ${machine.name}` });
    group.append(
      machine.switch
        ? svg("rect", { x: x - RADIUS, y: y - RADIUS, width: 2 * RADIUS, height: 2 * RADIUS, class: "node" })
        : svg("circle", { cx: x, cy: y, r: RADIUS, class: "node" }),
      svg("text", { x, y: y + 5, class: "name" }, machine.name),
      svg("text", { x, y: y - RADIUS - 8, class: "power" }),
    );
    group.dataset.machine = machine.name;
    const where = machine.location;
    if (where && where.toLowerCase() !== machine.name.toLowerCase())
      group.append(svg("text", { x, y: y + RADIUS + 16, class: "small" }, where));
    if (!machine.switch) acts(group, () => open(machine.name));
    map.append(group);
  }
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
function acts(element, act) {
  element.addEventListener("click", act);
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); }
  });
}
function choose(name) {
  state.chosen = name;
  $("chosen").textContent = `Link ${name}`;
  for (const group of document.querySelectorAll("#map g[data-link]")) {
    const is = group.dataset.link === name;
    group.classList.toggle("chosen", is);
    group.setAttribute("aria-pressed", String(is));
  }
  showControl();
}
const ends = (link) => state.topology.links.find((each) => each.name === link.name)?.ends ?? [];
const offAt = (link) => ends(link).filter((end) => state.off.has(end));
function condition(link) {
  if (!link.up || offAt(link).length) return "down";
  const lossy = link.flows.some((flow) => flow.dropped + flow.overrun + flow.lost > 0);
  if (lossy) return "losing";
  if (link.flows.some((flow) => flow.rate_mbit && flow.mbit > 0.9 * flow.rate_mbit)) return "full";
  return link.flows.some((flow) => flow.frames > 0) ? "busy" : "idle";
}
const words = (link, how) => (link.up && how === "down" ? `${offAt(link).join(" and ")} off` : WORDS[how]);
function showPower(off) {
  state.off = new Set(off);
  for (const group of document.querySelectorAll("#map g[data-machine]")) {
    const isOff = state.off.has(group.dataset.machine);
    group.classList.toggle("off", isOff);
    group.querySelector(".power").textContent = isOff ? "off" : "";
    const button = document.querySelector(`[data-host=${CSS.escape(group.dataset.machine)}]`);
    if (button) button.textContent = group.dataset.machine + (isOff ? " (off)" : "");
  }
}
const WORDS = { down: "cut", losing: "drops or loses", full: "full", busy: "carries", idle: "idle" };

function showNow(now) {
  problem("");
  $("clock").textContent = now.clock_s === null ? "real time"
    : `virtual time ${now.clock_s.toFixed(3)} s${now.seconds > 0 ? "" : ", stands still"}`;
  showPower(now.off);
  const rows = [];
  for (const link of now.links) {
    state.links.set(link.name, link);
    const how = condition(link);
    const group = document.querySelector(`#map g[data-link="${CSS.escape(link.name)}"]`);
    if (!group) continue;
    for (const each of Object.keys(WORDS)) group.classList.toggle(each, each === how);
    const mbit = link.flows.map((flow) => flow.mbit.toFixed(1)).join(" / ");
    const lost = link.flows.reduce((sum, flow) => sum + flow.dropped + flow.overrun + flow.lost, 0);
    const first = how === "down" ? words(link, how) : `${figure(link.rtt_ms, 5)} ms`;
    const second = `${mbit} Mbit/s${lost ? ` · ${lost} lost` : ""}`;
    group.querySelector(".first").textContent = first;
    group.querySelector(".second").textContent = second;
    group.setAttribute("aria-label", `Link ${link.name}: ${words(link, how)}, round trip ${figure(link.rtt_ms, 5)} ms, ${second}`);
    link.flows.forEach((flow, way) => {
      const row = html("tr");
      row.dataset.link = link.name;
      const cells = [
        [way ? "" : link.name], [`${flow.source} → ${flow.target}`], [words(link, how)], [flow.mbit.toFixed(2)],
        [flow.rate_mbit ? `${Math.round((100 * flow.mbit) / flow.rate_mbit)} %` : "–"], [flow.frames.toFixed(0)],
        [flow.total_dropped], [flow.total_lost], [figure(link.delay_ms[way], 5)], [figure(link.loss_percent[way], 4)],
      ];
      cells.forEach(([text], index) => {
        const cell = html("td", String(text));
        if (index > 2) cell.className = "number";
        if (index === 2 && (how === "down" || how === "losing")) cell.className = "bad";
        row.append(cell);
      });
      rows.push(row);
    });
  }
  $("links").replaceChildren(...rows);
  showControl();
}
function showControl() {
  const link = state.links.get(state.chosen);
  if (!link) return;
  $("cut").textContent = link.up ? "Cut" : "Make whole";
  if (state.sliding) return;
  $("delay").value = Math.max(...link.delay_ms);
  $("loss").value = Math.max(...link.loss_percent);
  $("delay-out").textContent = `${both(link.delay_ms)} ms`;
  $("loss-out").textContent = `${both(link.loss_percent)} %`;
}
for (const [id, field, unit] of [["delay", "delay_ms", "ms"], ["loss", "loss_percent", "%"]]) {
  $(id).addEventListener("input", () => { state.sliding = true; $(`${id}-out`).textContent = `${$(id).value} ${unit}`; });
  $(id).addEventListener("change", async () => {
    try { await ask("/set", { link: state.chosen, [field]: Number($(id).value) }); }
    finally { setTimeout(() => { state.sliding = false; }, 1500); }
  });
}
$("declared").onclick = () => ask("/set", { link: state.chosen, delay_ms: null, loss_percent: null });
$("cut").onclick = () => ask("/cut", { link: state.chosen, up: !state.links.get(state.chosen)?.up });
$("control").onsubmit = (event) => event.preventDefault();

// --- terminals -----------------------------------------------------------------------------------------------------

function open(host) {
  $("none-open").hidden = true;
  let opened = state.terminals.get(host);
  if (!opened) {
    const box = html("div", null, { className: "screen" });
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", `Terminal on ${host}`);
    $("screens").append(box);
    const terminal = new Terminal({ fontSize: 14, cursorBlink: true, screenReaderMode: true, theme: { background: "#101418" } });
    const fit = new FitAddon();
    terminal.loadAddon(fit);
    opened = { box, terminal, fit };
    state.terminals.set(host, opened);
    show(host);
    terminal.open(box);
    fit.fit();
    const line = socket(`/terminal/${encodeURIComponent(host)}`);
    line.binaryType = "arraybuffer";
    const size = () => JSON.stringify({ rows: terminal.rows, columns: terminal.cols });
    line.onopen = () => line.send(size());
    line.onmessage = (event) => terminal.write(new Uint8Array(event.data));
    line.onclose = (event) => {
      terminal.write(`\r\n[${event.reason || "this shell has ended"}; choose ${host} again for a new one]\r\n`);
      opened.ended = true;
    };
    terminal.onData((typed) => { if (line.readyState === WebSocket.OPEN) line.send(new TextEncoder().encode(typed)); });
    terminal.onResize(() => { if (line.readyState === WebSocket.OPEN) line.send(size()); });
  } else if (opened.ended) {
    opened.terminal.dispose();
    opened.box.remove();
    state.terminals.delete(host);
    open(host);
    return;
  } else show(host);
  state.terminals.get(host).terminal.focus();
}
function show(host) {
  for (const [name, each] of state.terminals) each.box.hidden = name !== host;
  for (const button of document.querySelectorAll("[data-host]"))
    button.setAttribute("aria-pressed", String(button.dataset.host === host));
  state.terminals.get(host)?.fit.fit();
}
addEventListener("resize", () => { for (const each of state.terminals.values()) if (!each.box.hidden) each.fit.fit(); });

// --- latency -------------------------------------------------------------------------------------------------------

let measuring = null;
$("ping").onclick = () => {
  if (measuring) { measuring.close(); return; }
  const [from, to, seconds] = [$("source").value, $("target").value, Number($("seconds").value)];
  if (from === to) { $("figures").textContent = "Choose two hosts."; return; }
  const points = [];
  let sent = null;
  const line = socket(`/echoes/${encodeURIComponent(from)}/${encodeURIComponent(to)}?seconds=${seconds}`);
  measuring = line;
  $("ping").textContent = "Stop";
  const draw = () => plot(points, seconds, `${from} to ${to}`, sent);
  line.onmessage = (event) => { 
    const told = JSON.parse(event.data);
    if (told.sent) sent = told.sent;
    else points.push([told.number, told.rtt_ms]);
    draw();
  };
  line.onclose = (event) => {
    measuring = null;
    $("ping").textContent = "Measure";
    draw();
    if (event.reason) $("figures").textContent = event.reason;
    else if (!points.length) $("figures").textContent = `${from} to ${to}: no request was answered`;
  };
  draw();
};
function plot(points, seconds, name, sent) {
  $("plot").removeAttribute("hidden");
  const wide = Math.max(300, Math.min(600, $("plot").clientWidth || 600));
  $("plot").setAttribute("viewBox", `0 0 ${wide} 200`);
  const top = Math.max(1, ...points.map(([, ms]) => ms)) * 1.15, most = seconds * 5;
  const x = (number) => 46 + ((wide - 60) * number) / most, y = (ms) => 175 - (160 * ms) / top;
  const drawn = [svg("path", { d: `M46 15V175H${wide - 10}` })];
  for (const part of [0, 0.5, 1]) {
    drawn.push(svg("text", { x: 40, y: y(part * top / 1.15) + 4, "text-anchor": "end" }, figure((part * top) / 1.15)));
    drawn.push(svg("text", { x: x(most * part), y: 192, "text-anchor": part === 1 ? "end" : "start" }, `${seconds * part} s`));
  }
  drawn.push(svg("text", { x: 52, y: 12 }, "round trip in ms"));
  let d = "", before = null, lost = 0;
  for (const [number, ms] of [...points, ...(sent ? [[sent + 1, null]] : [])]) {
    const gap = before === null ? number - 1 : number - before - 1;
    for (let missing = number - gap; missing < number; missing++)
      drawn.push(svg("path", { d: `M${x(missing)} 168V175`, class: "lost" }));
    lost += gap;
    if (ms === null) break;
    d += `${before === null || gap ? "M" : "L"}${x(number)} ${y(ms)}`;
    drawn.push(svg("circle", { cx: x(number), cy: y(ms), r: 2 }));
    before = number;
  }
  drawn.push(svg("path", { d: d || "M0 0", class: "series" }));
  $("plot").replaceChildren(...drawn);
  if (!points.length) return;
  const sorted = points.map(([, ms]) => ms).sort((a, b) => a - b);
  const text = `${name}: now ${points.at(-1)[1]} ms, least ${sorted[0]}, median ${sorted[sorted.length >> 1]}, most ${sorted.at(-1)}; ${points.length} answered, ${lost} lost`;
  $("figures").textContent = text;
  $("plot").setAttribute("aria-label", `Round trips, ${text}`);
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
  const answer = await fetch(`/lesson/${encodeURIComponent($("lesson-name").value)}`, said);
  $("lesson-text").innerHTML = await answer.text();
}
function showLessons({ names, own }) {
  $("lesson").hidden = !names.length;
  $("lesson-name").replaceChildren(...names.map((name) => html("option", name)));
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
  topology: drawTopology, now: showNow, runs: showRuns, lessons: showLessons, problem: (told) => problem(told.text),
};
function listen() {
  const line = socket("/live");
  line.onmessage = (event) => { const told = JSON.parse(event.data); TOLD[told.kind](told); };
  line.onclose = () => { problem("minigts serve does not answer; this page tries again"); setTimeout(listen, 2000); };
}
if (token) listen();
else problem("the token is missing: open the address that minigts serve has printed");
