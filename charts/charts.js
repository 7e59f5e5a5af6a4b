// Draws the charts of a report with ECharts.
//
// The data is JSON in #charts, made by format/picture.rs, so that the page and the SVG files show the
// same numbers.

import * as echarts from "echarts/core";
import { CustomChart, LineChart } from "echarts/charts";
import {
  AriaComponent,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  MarkPointComponent,
  TitleComponent,
  ToolboxComponent,
  TooltipComponent,
} from "echarts/components";
import { SVGRenderer } from "echarts/renderers";
import { columns, columnsAt, LOOKS } from "./columns.js";
import { above, broken, entry, entryLines, GAP, heights, ICON, inPanels, LINE, named, namesOf, panels, paper, parts, RIGHT, specks, ticked } from "./layout.js";
import { barsHeight, marks } from "./marks.js";

echarts.use([
  AriaComponent,
  CustomChart,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  LineChart,
  MarkPointComponent,
  SVGRenderer,
  TitleComponent,
  ToolboxComponent,
  TooltipComponent,
]);

/** Icons of the legend for an entry of some height. */
const DASH = (height) => `${specks(height)}M0,${height / 2 - 1}h24v2h-24z`;
const HAIR = (height) => `${specks(height)}M0,${height / 2 - 0.4}h24v.8h-24z`;
const DASHES = (height) => specks(height) + pieces([0, 9, 18], 6, height);
const DOTS = (height) => specks(height) + pieces([0, 5, 10, 15, 20], 2, height);

function pieces(places, length, height) {
  return places.map((x) => `M${x},${height / 2 - 1}h${length}v2h-${length}z`).join("");
}

/** Style of a line in the chart, the legend and the tooltip. */
const STROKES = {
  solid: { icon: DASH, mark: "━", style: { width: 1.5, type: "solid" } },
  thin: { icon: HAIR, mark: "─", style: { width: 1, type: "solid", opacity: 0.6 } },
  dashed: { icon: DASHES, mark: "╌", style: { width: 1.5, type: "dashed" } },
  dotted: { icon: DOTS, mark: "┈", style: { width: 1.5, type: "dotted" } },
};

/** Width of a chart on paper in pixels: that of the text on A4 or Letter. */
const PAPER = 700;

/** A line without steps has a mark at each point if it has at most this many points. */
const FEW = 16;

// Paper is light. The queries also change when printing begins.
const dark = matchMedia("screen and (prefers-color-scheme: dark)");
const drawn = JSON.parse(document.getElementById("charts").textContent).map(draw);
for (const query of [dark, paper]) query.addEventListener("change", () => drawn.forEach((redraw) => redraw()));
addEventListener("beforeprint", () => drawn.forEach((redraw) => redraw(PAPER)));
addEventListener("afterprint", () => drawn.forEach((redraw) => redraw()));
document.documentElement.dataset.drawn = String(drawn.length);

/** Draws a chart into the element of its name. Returns a function that redraws it, as wide as told. */
function draw(chart) {
  for (const line of chart.lines) {
    line.points = line.points.map(([x, y]) => [placed(x, chart.x), placed(y, chart.y)]);
  }
  for (const block of chart.marks.columns.flatMap(({ blocks }) => blocks)) {
    block.y = block.y.map((y) => placed(y, chart.y));
  }
  const place = document.getElementById(chart.name);
  place.textContent = "";
  const view = echarts.init(place, null, { renderer: "svg" });
  // Flushed at once, so that a page captured in this frame, as for printing, is complete.
  const redraw = (width = place.clientWidth) => {
    const height = heights(chart, width, lettering()).all;
    place.style.height = `${height}px`;
    view.resize({ width, height });
    view.setOption(options(chart, view));
    view.getZr().flush();
    // With it, the style sheet can scale the drawing to the width of the paper.
    place.querySelector("svg").setAttribute("viewBox", `0 0 ${width} ${height}`);
  };
  redraw();
  new ResizeObserver(() => place.clientWidth !== view.getWidth() && redraw()).observe(place);
  return redraw;
}

/** Style of text. */
function lettering() {
  return { color: colour("text"), fontFamily: "system-ui, sans-serif", fontSize: 12, lineHeight: LINE };
}

/** A colour of the page. */
function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

/** Options for ECharts, in the current colours of the page. */
function options(chart, view) {
  const text = lettering();
  const split = inPanels(chart);
  return {
    animation: false,
    aria: { enabled: true, label: { description: `${chart.title}. ${chart.about}` } },
    legend: { ...legend(chart, view, text), show: !split },
    toolbox: {
      show: !paper.matches,
      right: 0,
      top: 0,
      padding: 0,
      itemSize: 13,
      iconStyle: { borderColor: colour("muted") },
      feature: {
        dataZoom: { filterMode: "none", title: { zoom: "zoom", back: "undo zoom" }, yAxisIndex: split ? "none" : undefined },
        restore: { title: "reset zoom" },
        saveAsImage: { name: chart.name, title: "save as SVG", backgroundColor: colour("page") },
      },
    },
    dataZoom: [
      { type: "inside", xAxisIndex: split ? chart.lines.map((_, nth) => nth) : 0, filterMode: "none", zoomOnMouseWheel: "ctrl" },
    ],
    tooltip: {
      trigger: "axis",
      confine: true,
      axisPointer: { type: "line", lineStyle: { color: colour("muted") }, label: { show: false } },
      backgroundColor: colour("page"),
      borderColor: colour("line"),
      textStyle: text,
      formatter: ([first]) => tooltip(chart, view, first.value[0]),
    },
    ...(split ? inPanel(chart, view, text) : inOne(chart, view, text)),
  };
}

/** The legend, below the chart. Its names are all visible, as nothing can be scrolled on paper. */
function legend(chart, view, text) {
  // All entries are equally high, as ECharts centres their texts.
  const height = LINE * entryLines(namesOf(chart), view.getWidth(), text);
  return {
    type: "plain",
    selected: view.getOption()?.legend[0].selected,
    left: 0,
    right: RIGHT,
    bottom: 0,
    padding: 0,
    itemGap: GAP,
    itemHeight: height,
    itemWidth: ICON,
    align: "left",
    data: [
      ...chart.marks.columns.map(({ name, look }) => ({ name, icon: LOOKS[look].icon(height), itemStyle: legendStyle(look, colour("text")) })),
      ...chart.lines.map(({ name, stroke }) => ({ name, icon: STROKES[stroke].icon(height) })),
    ],
    formatter: (name) => entry(name, view.getWidth(), text),
    textStyle: text,
  };
}

/** All lines in one plot. */
function inOne(chart, view, text) {
  const width = view.getWidth();
  const bottom = heights(chart, width, text).legend;
  return {
    grid: { left: 0, right: RIGHT, top: above(), bottom, outerBoundsMode: "same" },
    xAxis: axis(chart.x, text, width - 90, { nameGap: 30, room: barsHeight(chart), end: false }),
    yAxis: axis(chart.y, text, 500, { nameGap: 52, room: 0, end: true }),
    series: [...marks(chart), ...columns(chart, colour("text")), ...chart.lines.map((line, nth) => ({ ...series(line, chart), ...peak(line, chart, nth > 0 && highest(chart.lines[0])) }))],
  };
}

/** Small multiples: a panel for each line, on the same axes. */
function inPanel(chart, view, text) {
  const places = panels(chart, view.getWidth(), text);
  const x = ({ width, last }) => axis(chart.x, text, width, { nameGap: 30, room: 0, end: false, labelled: last });
  return {
    axisPointer: { link: [{ xAxisIndex: "all" }] },
    title: places.map(({ title }) => ({ ...title, padding: 0, textStyle: { ...text, fontWeight: 600 } })),
    grid: places.map(({ left, top, width, height }) => ({ left, top, width, height, outerBoundsMode: "none" })),
    xAxis: places.map((place, gridIndex) => ({ ...x(place), gridIndex })),
    yAxis: places.map(({ height }, gridIndex) => ({ ...axis(chart.y, text, height * 3, { nameGap: 0, room: 0, end: true }), name: "", gridIndex })),
    series: chart.lines.map((line, nth) => ({ ...series(line, chart), ...peak(line, chart), xAxisIndex: nth, yAxisIndex: nth })),
  };
}

/** The highest point of a line, if it has points. */
function highest({ points }) {
  return points.reduce((best, point) => (best && best[1] >= point[1] ? best : point), undefined);
}

/** The label of the highest point of a line over time. `other`: a point whose label it must not hide. */
function peak(line, chart, other) {
  if (!chart.marks.peaks || line.points.length === 0) return {};
  const [at, value] = highest(line);
  const share = (x) => (x - chart.x.min) / (chart.x.max - chart.x.min);
  const near = other && Math.abs(share(at) - share(other[0])) < 0.2;
  const beside = share(at) > 0.5 ? "left" : "right";
  const position = near || Math.abs(share(at) - 0.5) > 0.48 ? beside : "top";
  const label = { position, formatter: shown(value, chart.y), color: colour("text"), fontSize: 12 };
  return { markPoint: { silent: true, symbol: "circle", symbolSize: 6, data: [{ coord: [at, value], label: { show: true, ...label } }] } };
}

/** Style of the icon of columns in the legend. */
function legendStyle(look, ink) {
  if (look === "hollow") return { color: ink };
  return { opacity: look === "faint" ? 0.4 : 1 };
}

function series(line, chart) {
  return {
    type: "line",
    name: line.name,
    data: line.points,
    step: chart.step === "none" ? false : chart.step,
    symbol: line.points.length === 1 || (chart.step === "none" && line.points.length <= FEW) ? "circle" : "none",
    symbolSize: 6,
    color: line.colour,
    lineStyle: STROKES[line.stroke].style,
  };
}

// ECharts zooms and moves a logarithmic axis as if it were linear, where a decade at its lower end is
// less than a pixel. Therefore a logarithmic axis is a linear axis of exponents with labels of values.

function placed(value, axis) {
  return axis.log ? Math.log10(value) : value;
}

function valueAt(place, axis) {
  return axis.log ? 10 ** place : place;
}

/**
 * `pixels`: about its length. `room`: pixels between the axis and its labels. `end`: whether the end of
 * the axis is a round number, as it is on logarithmic axes. `labelled`: whether it has labels.
 */
function axis(axis, text, pixels, { nameGap, room, end, labelled = true }) {
  const rule = { lineStyle: { color: colour("line") } };
  return {
    type: "value",
    min: placed(axis.min, axis),
    max: placed(axis.max, axis),
    splitNumber: parts(axis, pixels),
    name: labelled ? broken(axis.label, pixels, text, /(?<= )/) : "",
    nameLocation: "middle",
    nameGap: nameGap + room,
    nameTextStyle: { ...text, color: colour("muted") },
    axisLine: { show: true, onZero: false, ...rule },
    axisTick: { show: true, ...rule, ...custom(axis) },
    axisLabel: {
      ...custom(axis),
      ...text,
      show: labelled,
      color: colour("muted"),
      hideOverlap: axis.named.length === 0,
      margin: 8 + room,
      // The end of a run is rarely a round number, and its label would cover the last one that is.
      showMinLabel: axis.named.length > 0 || (axis.log ? ticked(axis.min, axis, pixels) : axis.min === 0),
      showMaxLabel: axis.named.length > 0 || (axis.log ? ticked(axis.max, axis, pixels) : end),
      formatter: (place) => shown(place, axis, axis.log ? undefined : axis.max),
      ...(axis.named.length > 0 && named(axis, pixels, text)),
    },
    splitLine: { show: axis.named.length === 0, ...rule },
  };
}

/** Positions of labels that are not numbers. */
function custom({ named }) {
  return named.length > 0 ? { customValues: named.map(([place]) => place) } : {};
}

/** Values of the visible lines at `x`, in descending order, at most 12. */
function tooltip(chart, view, x) {
  const selected = view.getOption().legend[0].selected;
  const rows = chart.lines
    .filter((line) => selected[line.name] !== false)
    .map((line) => ({ line, point: at(line.points, x, chart.step) }))
    .filter((row) => row.point)
    .sort((a, b) => b.point[1] - a.point[1]);
  const box = document.createElement("div");
  const near = nearest(x, chart.x);
  box.append(strong(`${chart.step === "end" ? "from " : ""}${shown(near, chart.x)}`));
  for (const { one, block } of columnsAt(chart, near, selected).slice(0, 24)) {
    const row = document.createElement("div");
    const mark = document.createElement("span");
    mark.textContent = `${LOOKS[one.look].mark} `;
    mark.style.color = one.colour;
    row.append(mark, `${one.name}  `, strong(shown(placed(height(block, chart.y), chart.y), chart.y)));
    box.append(row);
  }
  for (const { line, point } of rows.slice(0, 12)) {
    const row = document.createElement("div");
    const mark = document.createElement("span");
    mark.textContent = `${STROKES[line.stroke].mark} `;
    mark.style.color = line.colour;
    row.append(mark, `${line.name}  `, strong(shown(point[1], chart.y)));
    box.append(row);
  }
  if (rows.length > 12) box.append(`and ${rows.length - 12} more`);
  const areas = chart.marks.areas.filter(({ from, to, name }) => name && from[0] <= x && x < to[0]);
  for (const { name, colour } of areas.slice(0, 12)) {
    const row = document.createElement("div");
    row.style.color = colour;
    row.append(`in ${name}`);
    box.append(row);
  }
  return box;
}

/** The nearest named position, or `x` on an axis without names. */
function nearest(x, { named }) {
  const places = named.map(([place]) => place);
  return places.length > 0 ? places.reduce((best, place) => (Math.abs(place - x) < Math.abs(best - x) ? place : best)) : x;
}

/** Value of a block, which may be stacked on others. */
function height({ y: [from, to] }, axis) {
  return axis.log ? valueAt(to, axis) : to - from;
}

/** The point whose value holds at `x`: with "start" steps the next one, otherwise the last one. */
function at(points, x, step) {
  if (step === "none") return between(points, x);
  return step === "start" ? points.find((p) => p[0] >= x) : points.findLast((p) => p[0] <= x);
}

/** The interpolated point of a line without steps at `x`, if there is one. */
function between(points, x) {
  const next = points.findIndex((p) => p[0] >= x);
  if (next < 0 || points[next][0] === x) return points[next];
  if (next === 0) return undefined;
  const [[left, from], [right, to]] = [points[next - 1], points[next]];
  return [x, from + ((to - from) * (x - left)) / (right - left)];
}

function strong(text) {
  const element = document.createElement("strong");
  element.textContent = text;
  return element;
}

/**
 * Formats a position on an axis in its unit, with four significant digits. `scale`: the value whose unit of
 * time is used; all labels of a linear axis have the unit of its end.
 */
function shown(place, axis, scale = valueAt(place, axis)) {
  const { unit, named } = axis;
  const name = named.find(([at]) => at === place);
  if (name) return name[1];
  const value = valueAt(place, axis);
  if (unit === "count") return value < 1 ? "0" : grouped(value);
  if (unit === "number") return value < 1e4 ? brief(value) : grouped(value);
  if (unit === "share") return value > 0 && value < 1e-4 ? `1 in ${grouped(1 / value)}` : `${brief(value * 100)} %`;
  if (unit === "micros") return `${micros(value)} µs`;
  if (unit === "second") return `${brief(value)} s`;
  if (value === 0) return "0";
  if (scale < 1e3) return `${brief(value)} ns`;
  if (scale < 1e6) return `${brief(value / 1e3)} µs`;
  if (scale < 1e9) return `${brief(value / 1e6)} ms`;
  return `${brief(value / 1e9)} s`;
}

/** Formats microseconds to the nanosecond. */
function micros(value) {
  const [whole, rest = ""] = Math.abs(value).toFixed(3).replace(/\.?0+$/, "").split(".");
  return `${value < 0 ? "−" : ""}${grouped(Number(whole))}${rest && `.${rest}`}`;
}

function brief(value) {
  return String(Number(value.toPrecision(4)));
}

/** Formats a count in groups of three digits, separated by narrow no-break spaces. */
function grouped(value) {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
}
