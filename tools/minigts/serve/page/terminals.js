// Terminals: a shell on a host each, in one box.
import { Terminal, FitAddon } from "/xterm/index.js";
import { $, html } from "/page/dom.js";
import { socket } from "/page/connection.js";

/** Letters get smaller, down to a least size, until a line has COLUMNS. In a box that is too narrow even then, as on a
 * phone, they are of a size that can be read. */
const COLUMNS = 80, LETTERS_PX = [14, 13, 12, 11], NARROW_PX = 12;
/** Rows are higher than the letters: at 1, a browser cuts off the underscore below them. */
const LINE_HEIGHT = 1.2;
const terminals = new Map();

function fit({ terminal, fitting }) {
  for (const size of LETTERS_PX) {
    terminal.options.fontSize = size;
    if ((fitting.proposeDimensions()?.cols ?? 0) >= COLUMNS) break;
    if (size === LETTERS_PX.at(-1)) terminal.options.fontSize = NARROW_PX;
  }
  fitting.fit();
}
export function open(host) {
  $("none-open").hidden = true;
  const before = terminals.get(host);
  if (before?.ended) {
    before.terminal.dispose();
    before.box.remove();
    terminals.delete(host);
  }
  if (!terminals.has(host)) begin(host);
  show(host);
  terminals.get(host).terminal.focus();
}
function begin(host) {
  const box = html("div", null, { className: "screen" });
  box.setAttribute("role", "group");
  box.setAttribute("aria-label", `Terminal on ${host}`);
  $("screens").append(box);
  const terminal = new Terminal({
    fontSize: LETTERS_PX[0], lineHeight: LINE_HEIGHT, cursorBlink: true, screenReaderMode: true, theme: { background: "#101418" },
  });
  const fitting = new FitAddon();
  terminal.loadAddon(fitting);
  const opened = { box, terminal, fitting, ended: false };
  terminals.set(host, opened);
  show(host);
  terminal.open(box);
  fit(opened);
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
}
function show(host) {
  for (const [name, each] of terminals) each.box.hidden = name !== host;
  for (const button of document.querySelectorAll("[data-host]"))
    button.setAttribute("aria-pressed", String(button.dataset.host === host));
  if (terminals.get(host)?.terminal.element) fit(terminals.get(host));
}
addEventListener("resize", () => { for (const each of terminals.values()) if (!each.box.hidden) fit(each); });
