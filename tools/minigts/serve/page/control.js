// The settings of the chosen link: each has a slider and a field for an exact figure.
import { $, both, clamped, figure } from "/page/dom.js";
import { ask } from "/page/connection.js";

const linear = { at: (value) => value, value: (at) => at };
/** A slider whose steps are equal ratios: `least` at 0, ten times as much each `STEPS`. Figures have two digits. */
const STEPS = 20;
const ratios = (least) => ({
  at: (value) => Math.round(STEPS * Math.log10(value / least)),
  value: (at) => Number((least * 10 ** (at / STEPS)).toPrecision(2)),
});
/** By the slider's id: the server's field, its unit, how many of the field's own unit one is, and the scale. */
const SETTINGS = {
  delay: { field: "delay_ms", unit: "ms", per: 1, scale: linear },
  loss: { field: "loss_percent", unit: "%", per: 1, scale: linear },
  rate: { field: "rate_mbit", unit: "Mbit/s", per: 1, scale: ratios(0.1), without: "none" },
  queue: { field: "queue_bytes", unit: "kB", per: 1000, scale: ratios(1), without: "none" },
};
const shown = { link: null, busy: null };
const unlimited = (link) => link.rate_mbit.every((rate) => rate === null);
/** A rate's slider has a last step, NO_LIMIT, where the topology declares no rate. */
const FASTEST = 100, NO_LIMIT = 101;
const isTop = (id) => id === "rate" && Number($("rate").value) === NO_LIMIT;

/** Show what is set for a link now, but for the setting that the user is changing. */
export function showControl(link) {
  const other = shown.link?.name !== link.name;
  shown.link = link;
  $("chosen").textContent = `Link ${link.name}`;
  $("rate").max = link.declares_rate ? FASTEST : NO_LIMIT;
  $("down").hidden = !link.up;
  $("cut").textContent = link.up ? "Cut" : "Make whole";
  for (const [id, setting] of Object.entries(SETTINGS)) {
    const [slider, exact] = [$(id), $(`${id}-exact`)];
    if (!other && (shown.busy === id || document.activeElement === exact)) continue;
    const values = link[setting.field].map((value) => (value === null ? null : value / setting.per));
    const known = values.filter((value) => value !== null);
    slider.disabled = exact.disabled = id === "queue" && unlimited(link);
    slider.value = known.length ? setting.scale.at(Math.max(...known)) : slider.max;
    const same = known.length === values.length && new Set(known).size === 1;
    exact.value = same ? figure(known[0], 5) : "";
    exact.placeholder = known.length ? both(known) : setting.without ?? "";
    slider.setAttribute("aria-valuetext", known.length ? `${both(known)} ${setting.unit}` : setting.without);
  }
}
async function set(id, value) {
  shown.busy = id;
  const done = await ask("/set", { link: shown.link.name, [SETTINGS[id].field]: value });
  // The next reading of the lab has what is set now; a refused figure gives way at once.
  setTimeout(() => { if (shown.busy === id) shown.busy = null; }, done ? 1500 : 0);
}
for (const [id, { scale, per, without }] of Object.entries(SETTINGS)) {
  const slider = $(id), exact = $(`${id}-exact`);
  slider.addEventListener("input", () => {
    shown.busy = id;
    exact.value = isTop(id) ? "" : figure(scale.value(Number(slider.value)), 6);
    if (isTop(id)) exact.placeholder = without;
  });
  slider.addEventListener("change", () => set(id, isTop(id) ? null : scale.value(Number(slider.value)) * per));
  exact.addEventListener("change", () => {
    if (!exact.reportValidity()) return;
    const value = exact.value === "" ? null : Number(exact.value);
    if (value !== null) slider.value = clamped(scale.at(value), Number(slider.min), Number(slider.max));
    set(id, value === null ? null : Math.round(value * per * 1e6) / 1e6);
    exact.blur();
  });
}
$("declared").onclick = () => {
  shown.busy = null;
  ask("/set", { link: shown.link.name, ...Object.fromEntries(Object.values(SETTINGS).map(({ field }) => [field, null])) });
};
$("cut").onclick = () => ask("/cut", { link: shown.link.name, up: !shown.link.up });
$("down").onclick = () => ask("/cut", { link: shown.link.name, up: false, silent: false });
$("control").onsubmit = (event) => event.preventDefault();
