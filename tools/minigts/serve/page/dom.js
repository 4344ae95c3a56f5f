// Elements of the page, and how its figures are written.
export const $ = (id) => document.getElementById(id);

export function svg(name, attributes = {}, text = null) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}
export function html(name, text = null, properties = {}) {
  const made = Object.assign(document.createElement(name), properties);
  if (text !== null) made.textContent = text;
  return made;
}
export function acts(element, act) {
  element.addEventListener("click", act);
  element.addEventListener("keydown", (event) => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(); }
  });
}
/** A number with so many significant digits, and without an exponent. */
export const figure = (value, digits = 3) =>
  value.toLocaleString("en", { maximumSignificantDigits: digits, useGrouping: false });
/** The figures of a link's two directions: one if they are the same. */
export const both = (values, digits = 4) => [...new Set(values)].map((each) => figure(each, digits)).join(" / ");
export const clamped = (value, least, most) => Math.min(Math.max(value, least), most);
