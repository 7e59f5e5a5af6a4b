// Columns of a chart: one series for each name. format/svg/columns.rs draws the same for SVG files.

import { graphic } from "echarts/core";
import { specks } from "./layout.js";

/** Icons of the legend for an entry of some height. */
const SQUARE = (height) => `${specks(height)}M5,${height / 2 - 7}h14v14h-14z`;
const FRAME = (height) => `${SQUARE(height)}m2,2v10h10v-10z`;

/** Style of columns in the chart, the legend and the tooltip. */
export const LOOKS = {
  full: { icon: SQUARE, mark: "■", style: (colour) => ({ fill: colour }) },
  faint: { icon: SQUARE, mark: "▒", style: (colour) => ({ fill: colour, opacity: 0.4 }) },
  hollow: { icon: FRAME, mark: "□", style: (_, ink) => ({ fill: "none", stroke: ink, lineWidth: 1.5 }) },
};

/** Columns of a chart as series that the legend can hide. `ink`: colour of text. */
export function columns({ marks: { columns } }, ink) {
  return columns.map(({ name, colour, look, blocks }) => ({
    type: "custom",
    name,
    color: colour,
    z: look === "hollow" ? 3 : 2,
    clip: true,
    data: blocks.map(({ x, y }) => [(x[0] + x[1]) / 2, y[1]]),
    renderItem: ({ coordSys, dataIndex }, api) => block(blocks[dataIndex], coordSys, api, LOOKS[look].style(colour, ink)),
  }));
}

function block({ x, y }, coordSys, api, style) {
  const [left, top] = api.coord([x[0], y[1]]);
  const [right, bottom] = api.coord([x[1], y[0]]);
  // A column is at least one pixel high.
  const height = Math.max(bottom - top, 1);
  const shape = { x: left, y: bottom - height, width: Math.max(right - left - 1, 1), height };
  const seen = graphic.clipRectByRect(shape, coordSys);
  return seen && { type: "rect", shape: seen, style };
}

/** The visible blocks that are nearest to a position on the x axis. */
export function columnsAt({ marks: { columns } }, x, selected) {
  const around = ({ x: [from, to] }) => Math.abs((from + to) / 2 - x) < 0.5;
  return columns
    .filter(({ name }) => selected[name] !== false)
    .flatMap((one) => one.blocks.filter(around).map((block) => ({ one, block })));
}
