// Where the drawing's machines lie, in pixels, and where a link's words have room. No element is touched here.
import { clamped } from "/page/dom.js";

export const LINE = 16;
const ROOMY = 150, MOST = 210, LEAST = 48, LEAST_DOWN = 90, HEIGHT = 480;
const TOP = 54, BOTTOM = 66;
const BETWEEN = 3;

/**
 * Positions by name for neighbours that are 1 apart, in a box of this width. A drawing that is broader than high is
 * turned where its links would be too short for their words. The distance between neighbours has a least value, below
 * which the drawing is wider than the box.
 */
export function laid(machines, width, side) {
  const span = (key) => Math.max(...machines.map((each) => each[key]));
  const turned = span("x") > span("y") && (width - 2 * side) / span("x") < ROOMY;
  const [across, down] = turned ? ["y", "x"] : ["x", "y"];
  const room = (width - 2 * side) / (span(across) || 1);
  const xScale = clamped(room, LEAST, MOST);
  const yScale = Math.max(Math.min(LEAST_DOWN, (1.5 * HEIGHT) / (span(down) || 1)), Math.min(xScale, HEIGHT / (span(down) || 1)));
  const total = Math.max(width, span(across) * xScale + 2 * side);
  const left = (total - span(across) * xScale) / 2;
  const at = new Map(machines.map((each) => [each.name, [left + xScale * each[across], TOP + yScale * each[down]]]));
  let closest = MOST;
  const points = [...at.values()];
  points.forEach(([x, y], index) => {
    for (const [otherX, otherY] of points.slice(index + 1)) closest = Math.min(closest, Math.hypot(x - otherX, y - otherY));
  });
  return { at, width: total, height: TOP + span(down) * yScale + BOTTOM, radius: clamped(0.3 * closest, 6, 26) };
}

/** A link's curve from one end to the other; `number` links between the two have been drawn already. */
export function curve([ax, ay], [bx, by], number) {
  const length = Math.hypot(bx - ax, by - ay) || 1;
  const bend = number ? (number % 2 ? 1 : -1) * 26 * Math.ceil(number / 2) : 0;
  const mx = (ax + bx) / 2 - (bend * 2 * (by - ay)) / length, my = (ay + by) / 2 + (bend * 2 * (bx - ax)) / length;
  const along = (part, a, m, b) => (1 - part) ** 2 * a + 2 * part * (1 - part) * m + part ** 2 * b;
  return {
    path: `M${ax} ${ay}Q${mx} ${my} ${bx} ${by}`,
    point: (part) => [along(part, ax, mx, bx), along(part, ay, my, by)],
    level: Math.abs(by - ay) < 0.3 * Math.abs(bx - ax),
    steep: Math.abs(bx - ax) < 0.3 * Math.abs(by - ay),
  };
}

export const box = (x, y, width, height) => ({ left: x - width / 2, right: x + width / 2, top: y - height / 2, bottom: y + height / 2 });
const meet = (one, other) =>
  one.left < other.right + BETWEEN && other.left < one.right + BETWEEN && one.top < other.bottom + BETWEEN && other.top < one.bottom + BETWEEN;

/**
 * Places for the words of links so that no two of them meet, nor a machine. `wanted` is in order of importance: a
 * link's curve, and the widths of its two lines. Best is a place through which no other link's line runs, even if it is
 * for the first line of words only. Each gets its lines' middles; null for a link without room.
 */
export function placed(wanted, taken, width, height) {
  const filled = [...taken];
  const lines = wanted.map(({ curve }) => Array.from({ length: 24 }, (_, index) => curve.point((index + 0.5) / 24)));
  const isFree = (boxes) => boxes.every((each) =>
    each.left >= 0 && each.right <= width && each.top >= 0 && each.bottom <= height && !filled.some((other) => meet(each, other)));
  const isClear = (boxes, own) => !lines.some((points, index) =>
    index !== own && points.some(([x, y]) => boxes.some((each) => x > each.left && x < each.right && y > each.top && y < each.bottom)));
  return wanted.map(({ curve, widths }, own) => {
    const free = [2, 1].flatMap((count) => [...spotsOf(curve, widths, count)]).filter((spot) => isFree(boxesOf(spot, widths)));
    const spot = free.find((each) => isClear(boxesOf(each, widths), own)) ?? free[0] ?? null;
    if (spot) filled.push(...boxesOf(spot, widths));
    return spot;
  });
}
const boxesOf = (spot, widths) => spot.middles.map(([x, y], index) => box(x, y, widths[index], LINE));

function* spotsOf(curve, widths, count) {
  const reach = (Math.max(...widths.slice(0, count)) + 14) / 2, far = 12 + LINE * (count - 1);
  for (const part of [0.5, 0.4, 0.6, 0.3, 0.7, 0.2, 0.8]) {
    const [x, y] = curve.point(part);
    const stacked = (x, y) => (count === 1 ? [[x, y]] : [[x, y - LINE / 2], [x, y + LINE / 2]]);
    const beside = [[reach, 0], [-reach, 0]], over = [[0, -far], [0, far]];
    const corners = [[reach, -far], [reach, far], [-reach, far], [-reach, -far]];
    const offsets = curve.level ? [...over, ...corners] : curve.steep ? [...beside, ...corners] : [[0, 0], ...beside, ...over, ...corners];
    const across = offsets.map(([dx, dy]) => stacked(x + dx, y + dy));
    if (curve.level) across.unshift(count === 1 ? [[x, y - 14]] : [[x, y - 14], [x, y + 15]]);
    for (const middles of across) yield { count, middles };
  }
}
