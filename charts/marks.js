// What stands behind the lines of a chart: shaded areas, and bars on the x axis. The SVG files
// have the same (format/svg/marks.rs).

import { graphic } from "echarts/core";

/** The most pixels that all bars together take below the axis, and that one does. */
const ALL_BARS = 30;
const ONE_BAR = 6;

/** How far the bars of a chart push the labels of its x axis down. */
export function barsHeight({ marks: { bars } }) {
  return bars.length * pitch(bars);
}

/** From one bar to the next: all have their own place, as kernels may take equally long. */
function pitch(bars) {
  return Math.min(ONE_BAR, ALL_BARS / Math.max(bars.length, 1));
}

/** The marks of a chart, as series that nobody can point at. */
export function marks({ marks: { bars, areas, shade } }) {
  return [
    ...series(areas, true, (area, params, api) => shaded(area, params, api, shade)),
    ...series(bars, false, (bar, params, api) => thick(bar, params, api, pitch(bars))),
  ];
}

/** `clip`: whether what is outside of the picture, after zooming, is cut off. */
function series(items, clip, render) {
  if (items.length === 0) return [];
  const renderItem = (params, api) => render(items[params.dataIndex], params, api);
  // The places come from the items; the data only says how many there are.
  const data = items.map(() => [0, 0]);
  return [{ type: "custom", silent: true, tooltip: { show: false }, z: 1, clip, data, renderItem }];
}

function shaded({ from, to, colour, name, bar }, { coordSys }, api, shade) {
  const ground = coordSys.y + coordSys.height;
  const [a, b] = [api.coord(from), api.coord(to)];
  const points = [[a[0], ground], a, b, [b[0], ground]];
  const label = {
    type: "text",
    // A letter is some 7 pixels wide; a name that does not fit stands in the table.
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
  // Below the axis, so that its sides are all there is to cut off.
  const seen = graphic.clipRectByRect(shape, { ...coordSys, y, height });
  return seen && { type: "rect", shape: seen, style: { fill: colour } };
}
