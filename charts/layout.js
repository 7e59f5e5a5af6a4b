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

/** Height of a line of text in pixels. */
export const LINE = 16;

/** Sizes of a panel, of the space around its title, and of what is below the last one, in pixels. */
const PANEL = 92;
const AROUND_TITLE = 18;
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

/** Least distances of ticks, in pixels. */
const TICK = 64;

/** Between the parts of a name. */
const BETWEEN = /(?<= · )/;

/** How much wider bold text is. */
const BOLD = 1.15;

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

/** The begin of an icon: invisible specks make it as high as its entry in the legend. */
export function specks(height) {
  return `path://M0,0h.1v.1h-.1zM${ICON - 0.1},${height - 0.1}h.1v.1h-.1z`;
}

/** A text in lines that are not wider than some pixels, as far as `between` divides it. */
export function broken(text, room, style, between) {
  const lines = [];
  for (const part of text.split(between)) {
    const longer = (lines.at(-1) ?? "") + part;
    if (lines.length === 0 || wide(longer.trimEnd(), style) > room) lines.push(part);
    else lines[lines.length - 1] = longer;
  }
  return lines.map((line) => line.trimEnd()).join("\n");
}

/** Names of all columns and lines of a chart. */
export function namesOf(chart) {
  return [...chart.marks.columns, ...chart.lines].map(({ name }) => name);
}

/** A name as it is in the legend: broken between its parts if it is wider than the chart. */
export function entry(name, width, style) {
  return broken(name, width - RIGHT - ICON - ICON_GAP, style, BETWEEN);
}

/** Lines of the longest name in the legend. */
export function entryLines(names, width, style) {
  return Math.max(1, ...names.map((name) => entry(name, width, style).split("\n").length));
}

/** Height of a legend whose entries follow each other in rows, in pixels. */
function legendHeight(names, width, style) {
  let [rows, used] = [1, 0];
  for (const name of names) {
    const pixels = ICON + ICON_GAP + Math.max(...entry(name, width, style).split("\n").map((line) => wide(line, style))) + 1;
    if (used && used + pixels > width - RIGHT) [rows, used] = [rows + 1, 0];
    used += pixels + GAP;
  }
  return rows * (LINE * entryLines(names, width, style) + GAP);
}

/** Heights of a chart and of its legend, in pixels. */
export function heights(chart, width, text) {
  if (inPanels(chart)) {
    const { rows, pitch } = columns(chart, width, text);
    return { legend: 0, all: above() + rows * pitch + BELOW };
  }
  const legend = legendHeight(namesOf(chart), width, text);
  return { legend, all: above() + plot() + legend };
}

/** Columns and rows of panels: the width of a column, the distance of rows, and the titles. */
function columns({ lines }, width, text) {
  const many = lines.length > ONE_COLUMN && width >= WIDE ? 2 : 1;
  const each = width / many;
  const titles = lines.map(({ name }) => broken(name, (each - RIGHT) / BOLD, text, BETWEEN));
  const title = LINE * Math.max(...titles.map((title) => title.split("\n").length));
  return { each, titles, rows: Math.ceil(lines.length / many), pitch: PANEL + title + AROUND_TITLE };
}

/** Where each panel and its title are, in pixels, and whether it is the last one of its column. */
export function panels(chart, width, text) {
  const { each, titles, rows, pitch } = columns(chart, width, text);
  const left = 70;
  return chart.lines.map((_, nth) => {
    const [x, y] = [Math.floor(nth / rows) * each, above() + (nth % rows) * pitch];
    return {
      left: x + left,
      top: y + pitch - PANEL,
      width: each - left - RIGHT,
      height: PANEL,
      last: nth % rows === rows - 1 || nth === chart.lines.length - 1,
      title: { text: titles[nth], left: x, top: y + AROUND_TITLE / 2 },
    };
  });
}

/** Number of parts between ticks on an axis of this length in pixels. */
export function parts({ log, min, max }, pixels) {
  const most = Math.max(Math.floor(pixels / TICK), 2);
  if (log) return Math.min(decades({ min, max }), most);
  const round = (length) => /^[125](\.0+)?e/.test(length.toExponential(6));
  return [4, 5, 6, 7, 8].filter((count) => count <= most).find((count) => round((max - min) / count)) ?? Math.min(5, most);
}

/** Powers of ten between the ends of an axis, at least one. */
function decades({ min, max }) {
  return Math.max(Math.round(Math.log10(max / min)), 1);
}

/** Whether the end of a logarithmic axis is one of its ticks, which ECharts puts at multiples of a step. */
export function ticked(end, axis, pixels) {
  const exact = decades(axis) / parts(axis, pixels);
  const [, step] = [[1.5, 1], [2.5, 2], [4, 3], [7, 5], [Infinity, 10]].find(([below]) => exact < below);
  const place = Math.log10(end);
  return !Number.isInteger(place) || place % step === 0;
}

/** Labels that are names: broken into lines, or upright where there is no room for that. */
export function named({ named }, pixels, style) {
  const room = pixels / named.length - 6;
  const lines = (name) => broken(name, room, style, /(?<=[ -])/);
  const fits = named.every(([, name]) => lines(name).split("\n").every((line) => wide(line, style) <= room));
  const text = (place) => named.find(([at]) => at === place)?.[1] ?? "";
  return fits ? { rotate: 0, formatter: (place) => lines(text(place)) } : { rotate: 90, formatter: text };
}
