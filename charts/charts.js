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
  ToolboxComponent,
  TooltipComponent,
} from "echarts/components";
import { SVGRenderer } from "echarts/renderers";
import { columns, columnsAt, LOOKS } from "./columns.js";
import { barsHeight, marks } from "./marks.js";

echarts.use([
  AriaComponent,
  CustomChart,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  LineChart,
  SVGRenderer,
  ToolboxComponent,
  TooltipComponent,
]);

/** Icons of the legend; the invisible specks make them as high as a line of text. */
const SPECKS = "path://M0,0h.1v.1h-.1zM0,16h.1v.1h-.1z";
const DASH = `${SPECKS}M0,7h24v2h-24z`;
const DASHES = `${SPECKS}M0,7h6v2h-6zM9,7h6v2h-6zM18,7h6v2h-6z`;
const DOTS = `${SPECKS}M0,7h2v2h-2zM5,7h2v2h-2zM10,7h2v2h-2zM15,7h2v2h-2zM20,7h2v2h-2z`;
const HAIR = `${SPECKS}M0,7.6h24v.8h-24z`;

/** Style of a line in the chart, the legend and the tooltip. */
const STROKES = {
  solid: { icon: DASH, mark: "━", style: { width: 1.5, type: "solid" } },
  thin: { icon: HAIR, mark: "─", style: { width: 1, type: "solid", opacity: 0.6 } },
  dashed: { icon: DASHES, mark: "╌", style: { width: 1.5, type: "dashed" } },
  dotted: { icon: DOTS, mark: "┈", style: { width: 1.5, type: "dotted" } },
};

/** Height of a row of the legend in pixels, and the most rows that leave space for the chart. */
const ROW = 26;
const MOST_ROWS = 6;

/** A line without steps has a mark at each point if it has at most this many points. */
const FEW = 16;

// Paper is light and has no buttons. The queries also change when printing begins.
const dark = matchMedia("screen and (prefers-color-scheme: dark)");
const paper = matchMedia("print");
const drawn = JSON.parse(document.getElementById("charts").textContent).map(draw);
for (const query of [dark, paper]) query.addEventListener("change", () => drawn.forEach((redraw) => redraw()));
addEventListener("beforeprint", () => svgs().forEach(scalable));
addEventListener("afterprint", () => svgs().forEach((svg) => svg.removeAttribute("viewBox")));
document.documentElement.dataset.drawn = String(drawn.length);

/** Draws a chart into the element of its name. Returns a function that redraws it. */
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
  const redraw = () => {
    view.setOption(options(chart, view));
    view.getZr().flush();
  };
  redraw();
  // Flushed at once, so that a page captured in this frame, as for printing, is complete.
  const fit = () => {
    view.resize();
    // A narrower legend may need more rows.
    if (paper.matches) view.setOption(options(chart, view));
    view.getZr().flush();
  };
  new ResizeObserver(fit).observe(place);
  return redraw;
}

function svgs() {
  return document.querySelectorAll(".chart svg");
}

/** Lets the style sheet scale a drawing to the width of the paper. */
function scalable(svg) {
  const { width, height } = svg;
  svg.setAttribute("viewBox", `0 0 ${width.baseVal.value} ${height.baseVal.value}`);
}

/** Options for ECharts, in the current colours of the page. */
function options(chart, view) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const text = { color: colour("text"), fontFamily: "system-ui, sans-serif", fontSize: 12 };
  const names = [...chart.marks.columns, ...chart.lines].map(({ name }) => name);
  // A legend can't be scrolled on paper.
  const rows = paper.matches ? legendRows(names, view.getWidth()) : 1;
  const whole = rows <= MOST_ROWS;
  return {
    animation: false,
    aria: { enabled: true, label: { description: `${chart.title}. ${chart.about}` } },
    grid: { left: 0, right: 24, top: 46 + (whole ? (rows - 1) * ROW : 0), bottom: 0, outerBoundsMode: "same" },
    legend: {
      type: paper.matches && whole ? "plain" : "scroll",
      selected: view.getOption()?.legend[0].selected,
      left: 0,
      right: 0,
      top: 4,
      itemHeight: 16,
      itemWidth: 24,
      data: [
        ...chart.marks.columns.map(({ name, look }) => ({ name, icon: LOOKS[look].icon, itemStyle: legendStyle(look, colour("text")) })),
        ...chart.lines.map(({ name, stroke }) => ({ name, icon: STROKES[stroke].icon })),
      ],
      textStyle: text,
      pageTextStyle: text,
      pageIconColor: colour("text"),
      pageIconInactiveColor: colour("line"),
    },
    toolbox: {
      show: !paper.matches,
      right: 0,
      bottom: 0,
      padding: 0,
      itemSize: 13,
      iconStyle: { borderColor: colour("muted") },
      feature: {
        dataZoom: { filterMode: "none", title: { zoom: "zoom", back: "undo zoom" } },
        restore: { title: "reset zoom" },
        saveAsImage: { name: chart.name, title: "save as SVG", backgroundColor: colour("page") },
      },
    },
    dataZoom: [
      { type: "inside", xAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: "ctrl" },
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
    xAxis: axis(chart.x, text, colour, { nameGap: 30, room: barsHeight(chart), end: false }),
    yAxis: axis(chart.y, text, colour, { nameGap: 52, room: 0, end: true }),
    series: [...marks(chart), ...columns(chart, colour("text")), ...chart.lines.map((line) => series(line, chart))],
  };
}

/** Estimates the number of rows of a legend on paper, where no name is shortened. */
function legendRows(names, width) {
  let rows = 1;
  let used = 0;
  for (const name of names) {
    const entry = 36 + 6.5 * name.length;
    if (used && used + entry > width) [rows, used] = [rows + 1, 0];
    used += entry;
  }
  return rows;
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
 * `room`: pixels between the axis and its labels. `end`: whether the end of the axis is a round number,
 * as it is on logarithmic axes.
 */
function axis(axis, text, colour, { nameGap, room, end }) {
  const rule = { lineStyle: { color: colour("line") } };
  return {
    type: "value",
    min: placed(axis.min, axis),
    max: placed(axis.max, axis),
    splitNumber: axis.log ? Math.round(Math.log10(axis.max / axis.min)) : parts(axis),
    name: axis.label,
    nameLocation: "middle",
    nameGap: nameGap + room,
    nameTextStyle: { ...text, color: colour("muted") },
    axisLine: { show: true, onZero: false, ...rule },
    axisTick: { show: true, ...rule, ...custom(axis) },
    axisLabel: {
      ...custom(axis),
      ...text,
      color: colour("muted"),
      hideOverlap: true,
      margin: 8 + room,
      // The end of a run is rarely a round number, and its label would cover the last one that is.
      showMinLabel: axis.named.length > 0 || axis.log || axis.min === 0,
      showMaxLabel: axis.named.length > 0 || axis.log || end,
      formatter: (place) => shown(place, axis),
    },
    splitLine: { show: axis.named.length === 0, ...rule },
  };
}

/** Positions of labels that are not numbers. */
function custom({ named }) {
  return named.length > 0 ? { customValues: named.map(([place]) => place) } : {};
}

/** Number of equal parts of a round length, 5 if there is none. */
function parts({ min, max }) {
  const round = (length) => /^[125](\.0+)?e/.test(length.toExponential(6));
  return [4, 5, 6, 7, 8].find((count) => round((max - min) / count)) ?? 5;
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

/** Formats a position on an axis in its unit, with four significant digits. */
function shown(place, axis) {
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
  if (value < 1e3) return `${brief(value)} ns`;
  if (value < 1e6) return `${brief(value / 1e3)} µs`;
  if (value < 1e9) return `${brief(value / 1e6)} ms`;
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
