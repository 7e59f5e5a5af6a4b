// Sizes in a chart that depend on its width: rows of the legend, ticks, and panels of time lines.

/** Paper has no buttons, and two charts should fit on a page. */
export const paper = matchMedia("print");

/** Space above a plot, where the buttons are, in pixels. */
export function above() {
  return paper.matches ? 12 : 34;
}

/** Height of the plot of a chart without panels and of its axis, in pixels. */
function plot() {
  return paper.matches ? 280 : 320;
}

/** Sizes of a panel, of its title, and of what is below the last one, in pixels. */
const PANEL = 92;
const PANEL_TITLE = 34;
const BELOW = 48;

/** Lines over time from which on each has a panel of its own, and panels in one column. */
const PANELS_FROM = 3;
const ONE_COLUMN = 8;

/** A chart that is narrower, in pixels, has only one column of panels. */
const WIDE = 700;

/** Space at the right of plots and of legends, as text may be a little wider on paper, in pixels. */
export const RIGHT = 24;

/** Sizes of the legend, in pixels: an entry is its icon, a gap and its name. */
export const ICON = 24;
export const GAP = 10;
const ICON_GAP = 5;
const LINE = 16;

/** Least distances of ticks, in pixels. */
const TICK = 64;

const pen = document.createElement("canvas").getContext("2d");

/** Width of a text in pixels. */
function wide(text, { fontSize, fontFamily }) {
  pen.font = `${fontSize}px ${fontFamily}`;
  return pen.measureText(text).width;
}

/** Whether each line has a panel of its own. */
export function inPanels({ marks, lines }) {
  return marks.peaks && lines.length >= PANELS_FROM;
}

/** A text in lines that are not wider than some pixels, as far as it has parts. */
export function broken(name, room, text, parts) {
  const lines = [];
  for (const part of name.split(parts)) {
    const longer = (lines.at(-1) ?? "") + part;
    if (lines.length === 0 || wide(longer, text) > room) lines.push(part.replace(/^ (· )?/, ""));
    else lines[lines.length - 1] = longer;
  }
  return lines.join("\n");
}

/** A name in lines that fit into the legend: it is broken between its parts. */
export function entry(name, width, text) {
  return broken(name, width - RIGHT - ICON - ICON_GAP, text, /(?= · )/);
}

/** Height of a legend whose entries follow each other in rows, in pixels. */
function legendHeight(names, width, text) {
  let [height, used, row] = [0, 0, 0];
  for (const name of names) {
    const lines = entry(name, width, text).split("\n");
    const pixels = ICON + ICON_GAP + Math.max(...lines.map((line) => wide(line, text))) + 1;
    if (used && used + pixels > width - RIGHT) [height, used, row] = [height + row + GAP, 0, 0];
    used += pixels + GAP;
    row = Math.max(row, LINE * lines.length);
  }
  return height + row;
}

/** Heights of a chart and of its legend, in pixels. */
export function heights(chart, width, text) {
  if (inPanels(chart)) {
    const { rows } = columns(chart, width);
    return { legend: 0, all: above() + rows * (PANEL + PANEL_TITLE) + BELOW };
  }
  const names = [...chart.marks.columns, ...chart.lines].map(({ name }) => name);
  const legend = names.length ? legendHeight(names, width, text) + GAP : 0;
  return { legend, all: above() + plot() + legend };
}

function columns({ lines }, width) {
  const many = lines.length > ONE_COLUMN && width >= WIDE ? 2 : 1;
  return { many, rows: Math.ceil(lines.length / many) };
}

/** Where each panel is, in pixels, and whether it is the last one of its column. */
export function panels(chart, width) {
  const { many, rows } = columns(chart, width);
  const left = 70;
  const each = width / many;
  return chart.lines.map((_, nth) => ({
    left: Math.floor(nth / rows) * each + left,
    top: above() + (nth % rows) * (PANEL + PANEL_TITLE) + PANEL_TITLE,
    width: each - left - RIGHT,
    height: PANEL,
    last: nth % rows === rows - 1 || nth === chart.lines.length - 1,
  }));
}

/** Number of parts between ticks on an axis of this length in pixels. */
export function parts({ log, min, max }, pixels) {
  const most = Math.max(Math.floor(pixels / TICK), 2);
  if (log) return Math.min(decades({ min, max }), most);
  const round = (length) => /^[125](\.0+)?e/.test(length.toExponential(6));
  return [4, 5, 6, 7, 8].filter((count) => count <= most).find((count) => round((max - min) / count)) ?? Math.min(5, most);
}

function decades({ min, max }) {
  return Math.round(Math.log10(max / min));
}

/** Whether the end of a logarithmic axis is one of its ticks, which ECharts puts at multiples of a step. */
export function ticked(end, axis, pixels) {
  const exact = decades(axis) / parts(axis, pixels);
  const [, step] = [[1.5, 1], [2.5, 2], [4, 3], [7, 5], [Infinity, 10]].find(([below]) => exact < below);
  const place = Math.log10(end);
  return !Number.isInteger(place) || place % step === 0;
}

/** Style of labels that are names: broken into lines, or upright where there is no room for that. */
export function named({ named }, pixels, text) {
  const room = pixels / Math.max(named.length, 1) - 6;
  const longest = Math.max(...named.flatMap(([, name]) => name.split(" ")).map((word) => wide(word, text)));
  return longest > room ? { rotate: 90, width: 120, overflow: "truncate" } : { rotate: 0, width: room, overflow: "break" };
}
