// Draws the charts of a report: ECharts does the work, this says what it looks like.
//
// The page brings its data as JSON in #charts: what each chart holds is decided in Rust
// (format/picture.rs), so that the page and the SVG files show the same numbers.

import * as echarts from "echarts/core";
import { LineChart } from "echarts/charts";
import {
  AriaComponent,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  ToolboxComponent,
  TooltipComponent,
} from "echarts/components";
import { SVGRenderer } from "echarts/renderers";

echarts.use([
  AriaComponent,
  DataZoomComponent,
  GridComponent,
  LegendComponent,
  LineChart,
  SVGRenderer,
  ToolboxComponent,
  TooltipComponent,
]);

/** What stands before a name in the legend; the specks make it as high as a line of text. */
const SPECKS = "path://M0,0h.1v.1h-.1zM0,16h.1v.1h-.1z";
const DASH = `${SPECKS}M0,7h24v2h-24z`;
const DASHES = `${SPECKS}M0,7h6v2h-6zM9,7h6v2h-6zM18,7h6v2h-6z`;

// Paper is never dark: the query changes when printing begins, too.
const dark = matchMedia("screen and (prefers-color-scheme: dark)");
const drawn = JSON.parse(document.getElementById("charts").textContent).map(draw);
dark.addEventListener("change", () => drawn.forEach((redraw) => redraw()));
addEventListener("beforeprint", () => svgs().forEach(scalable));
addEventListener("afterprint", () => svgs().forEach((svg) => svg.removeAttribute("viewBox")));
document.documentElement.dataset.drawn = String(drawn.length);

/** Draws one chart into the element of its name; what it returns draws it again. */
function draw(chart) {
  for (const line of chart.lines) {
    line.points = line.points.map(([x, y]) => [placed(x, chart.x), placed(y, chart.y)]);
  }
  const place = document.getElementById(chart.name);
  place.textContent = "";
  const view = echarts.init(place, null, { renderer: "svg" });
  const redraw = () => {
    view.setOption(options(chart, view));
    view.getZr().flush();
  };
  redraw();
  new ResizeObserver(() => view.resize()).observe(place);
  return redraw;
}

function svgs() {
  return document.querySelectorAll(".chart svg");
}

/** Lets the style sheet fit a drawing to the width of the paper. */
function scalable(svg) {
  const { width, height } = svg;
  svg.setAttribute("viewBox", `0 0 ${width.baseVal.value} ${height.baseVal.value}`);
}

/** Everything ECharts is told, in the colours that the page has now. */
function options(chart, view) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(`--${name}`).trim();
  const text = { color: colour("text"), fontFamily: "system-ui, sans-serif", fontSize: 12 };
  return {
    animation: false,
    aria: { enabled: true, label: { description: `${chart.title}. ${chart.about}` } },
    grid: { left: 0, right: 24, top: 46, bottom: 0, outerBoundsMode: "same" },
    legend: {
      type: "scroll",
      left: 0,
      right: 0,
      top: 4,
      itemHeight: 16,
      itemWidth: 24,
      data: chart.lines.map(({ name, dashed }) => ({ name, icon: dashed ? DASHES : DASH })),
      textStyle: text,
      pageTextStyle: text,
      pageIconColor: colour("text"),
      pageIconInactiveColor: colour("line"),
    },
    toolbox: {
      right: 0,
      bottom: 0,
      padding: 0,
      itemSize: 13,
      iconStyle: { borderColor: colour("muted") },
      feature: {
        dataZoom: { filterMode: "none", title: { zoom: "zoom into a part", back: "one zoom back" } },
        restore: { title: "show all" },
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
    xAxis: axis(chart.x, text, colour, { nameGap: 30 }),
    yAxis: axis(chart.y, text, colour, { nameGap: 52 }),
    series: chart.lines.map((line) => ({
      type: "line",
      name: line.name,
      data: line.points,
      step: chart.step,
      symbol: line.points.length === 1 ? "circle" : "none",
      color: line.colour,
      lineStyle: { width: 1.5, type: line.dashed ? "dashed" : "solid" },
    })),
  };
}

// ECharts zooms and moves a logarithmic axis as if it were linear, where a decade at its lower end
// is less than a pixel. So here it is a linear one of exponents, with labels that undo it.

function placed(value, axis) {
  return axis.log ? Math.log10(value) : value;
}

function valueAt(place, axis) {
  return axis.log ? 10 ** place : place;
}

function axis(axis, text, colour, more) {
  const rule = { lineStyle: { color: colour("line") } };
  return {
    type: "value",
    min: placed(axis.min, axis),
    max: placed(axis.max, axis),
    splitNumber: axis.log ? Math.round(Math.log10(axis.max / axis.min)) : 5,
    name: axis.label,
    nameLocation: "middle",
    nameTextStyle: { ...text, color: colour("muted") },
    axisLine: { show: true, ...rule },
    axisTick: { show: true, ...rule },
    axisLabel: {
      ...text,
      color: colour("muted"),
      hideOverlap: true,
      // The end of a run is rarely a round number, and would stand on the last one that is.
      showMaxLabel: axis.log,
      formatter: (place) => shown(place, axis),
    },
    splitLine: { show: true, ...rule },
    ...more,
  };
}

/** What every visible line says about `x`, the largest first; a crowd is cut to its top. */
function tooltip(chart, view, x) {
  const selected = view.getOption().legend[0].selected;
  const rows = chart.lines
    .filter((line) => selected[line.name] !== false)
    .map((line) => ({ line, point: at(line.points, x, chart.step) }))
    .filter((row) => row.point)
    .sort((a, b) => b.point[1] - a.point[1]);
  const box = document.createElement("div");
  box.append(strong(`${chart.step === "end" ? "from " : ""}${shown(x, chart.x)}`));
  for (const { line, point } of rows.slice(0, 12)) {
    const row = document.createElement("div");
    const mark = document.createElement("span");
    mark.textContent = line.dashed ? "╌ " : "━ ";
    mark.style.color = line.colour;
    row.append(mark, `${line.name}  `, strong(shown(point[1], chart.y)));
    box.append(row);
  }
  if (rows.length > 12) box.append(`and ${rows.length - 12} more`);
  return box;
}

/** The point that holds at `x`: a step that starts at its point lasts from the one before. */
function at(points, x, step) {
  return step === "start" ? points.find((p) => p[0] >= x) : points.findLast((p) => p[0] <= x);
}

function strong(text) {
  const element = document.createElement("strong");
  element.textContent = text;
  return element;
}

/** What a place on an axis means, in the words of its unit and with four significant digits. */
function shown(place, axis) {
  const { unit } = axis;
  const value = valueAt(place, axis);
  if (unit === "count") return value < 1 ? "0" : grouped(value);
  if (unit === "share") return value < 1e-4 ? `1 in ${grouped(1 / value)}` : `${brief(value * 100)} %`;
  if (unit === "second") return `${brief(value)} s`;
  if (value < 1e3) return `${brief(value)} ns`;
  if (value < 1e6) return `${brief(value / 1e3)} µs`;
  if (value < 1e9) return `${brief(value / 1e6)} ms`;
  return `${brief(value / 1e9)} s`;
}

function brief(value) {
  return String(Number(value.toPrecision(4)));
}

/** A count with its digits in groups of three, apart by a narrow space that does not break. */
function grouped(value) {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");
}
