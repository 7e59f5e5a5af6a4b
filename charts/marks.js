// Marks behind the lines of a chart: shaded areas, and bars on the x axis. format/svg/marks.rs draws
// the same for SVG files.

import { graphic } from "echarts/core";

/** Greatest height of all bars together and of one bar, in pixels. */
const ALL_BARS = 30;
const ONE_BAR = 6;

/** Height of all bars, by which the labels of the x axis are moved down, in pixels. */
export function barsHeight({ marks: { bars } }) {
  return bars.length * pitch(bars);
}

/** Distance between bars. None may cover another, as calls may be equally long. */
function pitch(bars) {
  return Math.min(ONE_BAR, ALL_BARS / Math.max(bars.length, 1));
}

/** Marks of a chart, as series without tooltips. */
export function marks({ marks: { bars, areas, shade } }) {
  return [
    ...series(areas, true, (area, params, api) => shaded(area, params, api, shade)),
    ...series(bars, false, (bar, params, api) => thick(bar, params, api, pitch(bars))),
  ];
}

/** `clip`: whether parts outside of the chart, after zooming, are cut off. */
function series(items, clip, render) {
  if (items.length === 0) return [];
  const renderItem = (params, api) => render(items[params.dataIndex], params, api);
  // The positions come from the items; the data only gives their number.
  const data = items.map(() => [0, 0]);
  return [{ type: "custom", silent: true, tooltip: { show: false }, z: 1, clip, data, renderItem }];
}

function shaded({ from, to, colour, name, bar }, { coordSys }, api, shade) {
  const ground = coordSys.y + coordSys.height;
  const [a, b] = [api.coord(from), api.coord(to)];
  const points = [[a[0], ground], a, b, [b[0], ground]];
  const label = {
    type: "text",
    // A letter is about 7 pixels wide. A name that does not fit is left to the table.
    ignore: name.length * 7 > b[0] - a[0] - 8,
    style: { text: name, x: a[0] + 5, y: ground - 24 - 15 * (bar % 8), fill: colour, font: "12px system-ui, sans-serif" },
  };
  const area = { type: "polygon", shape: { points }, style: { fill: colour, opacity: shade } };
  return { type: "group", children: [area, label] };
}

function thick({ end, colour }, { coordSys, dataIndex }, api, pitch) {
  const [left] = api.coord([0, 0]);
  const [right] = api.coord([end, 0]);
  const y = coordSys.y + coordSys.height + 1 + dataIndex * pitch;
  const height = Math.max(pitch - 1, 1);
  const shape = { x: left, y, width: right - left, height };
  // The bar is below the axis, so only its sides are cut off.
  const seen = graphic.clipRectByRect(shape, { ...coordSys, y, height });
  return seen && { type: "rect", shape: seen, style: { fill: colour } };
}
