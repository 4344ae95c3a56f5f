// The drawing of the network, and the table of its links.
import { $, acts, both, clamped, figure, html, svg } from "/page/dom.js";
import { LINE, box, curve, laid, placed } from "/page/layout.js";

const WORDS = { down: "cut", losing: "drops or loses", full: "full", busy: "carries", idle: "idle" };
const LONGEST_NAME = 15;
const drawn = { topology: null, width: 0, laid: null, taken: [], links: new Map(), chosen: null, off: new Set(), now: null, placedFor: null, rows: new Map() };
let openTerminal = () => {}, chooseLink = () => {};

/** What a click on a machine and on a link does. */
export function onActs(machine, link) {
  openTerminal = machine;
  chooseLink = link;
}
export function draw(topology) {
  drawn.topology = topology;
  drawn.chosen = null;
  $("network").classList.toggle("broad", Math.max(...topology.machines.map((each) => each.x)) > 2.9);
  redraw();
}
new ResizeObserver(() => { if (drawn.topology && Math.abs($("drawing").clientWidth - drawn.width) > 1) redraw(); }).observe($("drawing"));

function redraw() {
  const { topology } = drawn;
  const map = $("map");
  drawn.width = $("drawing").clientWidth;
  drawn.links.clear();
  drawn.placedFor = null;
  const side = clamped(5 + 4 * Math.max(...topology.machines.map((each) => shortened(each.name).length)), 40, 70);
  const lies = laid(topology.machines, drawn.width, side);
  drawn.laid = lies;
  map.setAttribute("width", lies.width);
  map.setAttribute("height", lies.height);
  map.replaceChildren();
  $("scrolls").hidden = lies.width <= drawn.width + 1;
  const beside = new Map();
  for (const link of topology.links) {
    const pair = [...link.ends].sort().join(" ");
    const number = beside.get(pair) ?? 0;
    beside.set(pair, number + 1);
    const line = curve(lies.at.get(link.ends[0]), lies.at.get(link.ends[1]), number);
    const group = svg("g", { role: "button", tabindex: "0", "data-link": link.name, "aria-pressed": "false" });
    const [first, second] = ["first", "second"].map((name) => svg("text", { class: `${name} words` }));
    group.append(svg("path", { d: line.path, class: "hit", fill: "none" }), svg("path", { d: line.path, class: "line" }), first, second);
    acts(group, () => chooseLink(link.name));
    map.append(group);
    drawn.links.set(link.name, { group, curve: line, words: [first, second], widths: [0, 0] });
  }
  const inside = topology.machines.every((machine) => lengthOf(map, machine.name) <= 2 * lies.radius - 6);
  drawn.taken = topology.machines.flatMap((machine) => drawMachine(map, machine, lies, inside));
  if (drawn.chosen) mark(drawn.chosen);
  if (drawn.now) showNow(drawn.now);
}
const shortened = (text) => (text.length > LONGEST_NAME ? `${text.slice(0, LONGEST_NAME - 1)}…` : text);

function lengthOf(map, name) {
  const words = svg("text", { class: "name" }, shortened(name));
  map.append(words);
  const length = words.getComputedTextLength();
  words.remove();
  return length;
}

/** Draw a machine, and return the boxes that it takes. All names are inside, or, where one is too long, all below. */
function drawMachine(map, machine, { at, radius, width }, inside) {
  const [x, y] = at.get(machine.name);
  const group = svg("g", machine.switch ? {} : { role: "button", tabindex: "0", "aria-label": `Terminal on ${machine.name}` });
  group.append(
    svg("title", {}, machine.location ? `${machine.name}, ${machine.location}` : machine.name),
    machine.switch
      ? svg("rect", { x: x - radius, y: y - radius, width: 2 * radius, height: 2 * radius, class: "node" })
      : svg("circle", { cx: x, cy: y, r: radius, class: "node" }),
  );
  group.dataset.machine = machine.name;
  map.append(group);
  const taken = [box(x, y, 2 * radius, 2 * radius)];
  let below = y + radius + 14;
  const write = (text, name, atY) => {
    const words = svg("text", { x, y: atY, class: name }, shortened(text));
    group.append(words);
    const half = words.getComputedTextLength() / 2;
    words.setAttribute("x", clamped(x, half + 2, Math.max(half + 2, width - half - 2)));
    return words;
  };
  const beneath = (text, name) => {
    const words = write(text, name, below);
    taken.push(box(Number(words.getAttribute("x")), below - 5, words.getComputedTextLength(), LINE));
    below += LINE;
  };
  if (inside) write(machine.name, "name inside", y + 5);
  else beneath(machine.name, "name");
  const where = machine.location;
  if (where && where.toLowerCase() !== machine.name.toLowerCase()) beneath(where, "small");
  group.append(svg("text", { x, y: y - radius - 6, class: "power" }));
  if (!machine.switch) acts(group, () => openTerminal(machine.name));
  return taken;
}

/** Show which link is chosen. Its words are the first to have room. */
export function mark(name) {
  if (name !== drawn.chosen) $("chosen-now").textContent = "";
  drawn.chosen = name;
  for (const [each, { group }] of drawn.links) {
    group.classList.toggle("chosen", each === name);
    group.setAttribute("aria-pressed", String(each === name));
  }
  if (drawn.now && !$("chosen-now").textContent) showNow(drawn.now);
  else placeWords();
}
function placeWords() {
  if (!drawn.now) return;
  const links = [...drawn.links].sort(([one], [other]) => (other === drawn.chosen) - (one === drawn.chosen)).map(([, link]) => link);
  for (const link of links)
    link.widths = link.words.map((words, index) => Math.max(link.widths[index], words.getComputedTextLength() + 4));
  const same = JSON.stringify([drawn.chosen, [...drawn.off], links.map((link) => link.widths)]);
  if (same === drawn.placedFor) return;
  drawn.placedFor = same;
  const { at, radius } = drawn.laid;
  const off = [...drawn.off].map((name) => box(at.get(name)[0], at.get(name)[1] - radius - 11, 30, LINE));
  const spots = placed(links, [...drawn.taken, ...off], drawn.laid.width, drawn.laid.height);
  links.forEach((link, index) => {
    link.words.forEach((words, line) => {
      const middle = spots[index]?.middles[line];
      words.classList.toggle("without-room", !middle);
      if (!middle) return;
      words.setAttribute("x", middle[0]);
      words.setAttribute("y", middle[1] + 5);
    });
  });
  $("crowded").hidden = spots.every((spot) => spot?.count === 2);
}

const ends = (link) => drawn.topology.links.find((each) => each.name === link.name)?.ends ?? [];
const offAt = (link) => ends(link).filter((end) => drawn.off.has(end));
const lostOf = (link) => link.flows.reduce((sum, flow) => sum + flow.dropped + flow.overrun + flow.lost, 0);
function condition(link) {
  if (!link.up || offAt(link).length) return "down";
  if (lostOf(link)) return "losing";
  if (link.flows.some((flow) => flow.rate_mbit && flow.mbit > 0.9 * flow.rate_mbit)) return "full";
  return link.flows.some((flow) => flow.frames > 0) ? "busy" : "idle";
}
const words = (link, how) => (how !== "down" ? WORDS[how] : link.up ? `${offAt(link).join(" and ")} off` : link.outage);
/** What a link takes: its round trip, or its delays where a lesson's round trips are still to be predicted. */
const takes = (link, hidden) => (hidden ? `${both(link.delay_ms, 5)} ms one way` : `${figure(link.rtt_ms, 5)} ms`);

function showPower(off) {
  drawn.off = new Set(off);
  for (const group of document.querySelectorAll("#map g[data-machine]")) {
    const isOff = drawn.off.has(group.dataset.machine);
    group.classList.toggle("off", isOff);
    group.querySelector(".power").textContent = isOff ? "off" : "";
    const button = document.querySelector(`[data-host=${CSS.escape(group.dataset.machine)}]`);
    if (button) button.textContent = group.dataset.machine + (isOff ? " (off)" : "");
  }
}
export function showNow(now) {
  drawn.now = now;
  showPower(now.off);
  const rows = new Map();
  for (const link of now.links) {
    const shown = drawn.links.get(link.name);
    if (!shown) continue;
    const how = condition(link), lost = lostOf(link);
    for (const each of Object.keys(WORDS)) shown.group.classList.toggle(each, each === how);
    const first = how === "down" ? words(link, how) : takes(link, now.hidden);
    const second = `${link.flows.map((flow) => flow.mbit.toFixed(flow.mbit < 100 ? 1 : 0)).join(" / ")} Mbit/s${lost ? ` · ${lost} lost` : ""}`;
    if (link.name === drawn.chosen) $("chosen-now").textContent = `${first}, ${second}`;
    shown.words[0].textContent = first;
    shown.words[1].textContent = second;
    shown.group.setAttribute("aria-label", `Link ${link.name}: ${words(link, how)}, ${now.hidden ? "" : "round trip "}${takes(link, now.hidden)}, ${second}`);
    link.flows.forEach((flow, way) => {
      const key = `${link.name} ${way}`, row = drawn.rows.get(key) ?? newRow(link.name);
      fill(row, cellsOf(link, flow, way, how));
      rows.set(key, row);
    });
  }
  // A row stays the same element while it is shown, so that its text can be selected.
  if ([...rows.keys()].join() !== [...drawn.rows.keys()].join()) $("links").replaceChildren(...rows.values());
  drawn.rows = rows;
  placeWords();
}
/** The texts of a row of the table, by the classes of their columns: a narrow page leaves some columns out. */
function cellsOf(link, flow, way, how) {
  const rate = link.rate_mbit[way], queue = link.queue_bytes[way];
  return {
    link: way ? "" : link.name,
    direction: `${flow.source} → ${flow.target}`,
    [how === "down" || how === "losing" ? "state bad" : "state"]: words(link, how),
    "number mbit": flow.mbit.toFixed(2),
    "number share": flow.rate_mbit ? `${Math.round((100 * flow.mbit) / flow.rate_mbit)} %` : "–",
    "number frames": flow.frames.toFixed(0),
    "number dropped": flow.total_dropped ?? "–",
    "number lost": flow.total_lost,
    "number delay": figure(link.delay_ms[way], 5),
    "number loss": figure(link.loss_percent[way], 4),
    "number rate": rate === null ? "–" : figure(rate, 5),
    "number queue": queue === null ? "–" : figure(queue / 1000, 5),
  };
}
function newRow(name) {
  const made = html("tr", null, { onclick: () => chooseLink(name) });
  made.dataset.link = name;
  return made;
}
function fill(row, cells) {
  Object.entries(cells).forEach(([name, text], index) => {
    const cell = row.cells[index] ?? row.appendChild(html("td"));
    if (cell.className !== name) cell.className = name;
    if (cell.textContent !== String(text)) cell.textContent = text;
  });
}
