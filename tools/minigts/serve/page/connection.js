// The token, requests to the server and its websockets, and the line for errors.
import { $ } from "/page/dom.js";

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
export const token = sessionStorage.getItem(KEPT) ?? "";
addEventListener("hashchange", () => { if (takeToken()) location.reload(); });
export const said = { headers: { Authorization: `Bearer ${token}` } };
export const socket = (path) => new WebSocket(`ws://${location.host}${path}`, ["minigts", `minigts.token.${token}`]);
export const SILENT = "minigts serve does not answer; this page tries again";

// What is wrong with the lab goes when the lab is read again; why a request was refused stays until the next request.
const problems = { lab: "", request: "" };
export function problem(text, of = "lab") {
  problems[of] = text;
  $("problem").textContent = Object.values(problems).filter(Boolean).join("\n");
  $("problem").hidden = !$("problem").textContent;
}
/** Send a request. Return whether the server has done it; if not, the page says why. */
export async function ask(path, body) {
  try {
    const answer = await fetch(path, { ...said, method: "POST", body: JSON.stringify(body) });
    problem(answer.ok ? "" : await answer.text(), "request");
    return answer.ok;
  } catch {
    problem("the request was not answered", "request");
    return false;
  }
}
