// Decompresses the drawing code and runs it. An old browser shows an error instead of empty frames.
(async () => {
  const packed = Uint8Array.from(atob(document.getElementById("code").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const script = document.createElement("script");
  script.textContent = await new Response(stream).text();
  document.body.append(script);
})().catch((error) => {
  for (const place of document.querySelectorAll(".chart")) {
    place.textContent = `This browser can't draw the chart: ${error.message}`;
  }
});
