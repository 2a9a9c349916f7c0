// What is wrong with the page as it is laid out now: content past the right edge, text over text, pictures that did not load.
(() => {
  const wrong = [];
  const edge = document.documentElement.clientWidth + 1;
  if (document.documentElement.scrollWidth > edge) wrong.push(`the page is ${document.documentElement.scrollWidth} pixels wide`);

  const article = document.querySelector("article") || document.body;
  const name = (node) => {
    const element = node.nodeType === Node.TEXT_NODE ? node.parentElement : node;
    const words = (node.textContent || "").trim().replace(/\s+/g, " ").slice(0, 50);
    return `<${element.localName}${element.className && element.className.baseVal === undefined ? "." + [...element.classList].join(".") : ""}> ${words}`;
  };

  // Where a box that scrolls cuts off what is in it.
  const scrolls = (element) => {
    for (let at = element; at && at !== article; at = at.parentElement) {
      if (/auto|scroll/.test(getComputedStyle(at).overflowX)) return at;
    }
    return null;
  };
  const scrolling = new Set();
  const lines = [];
  const walker = document.createTreeWalker(article, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode;
    if (!node.data.trim()) continue;
    const element = node.parentElement;
    if (element.closest("script, style, .headerlink, .sphx-glr-download, .visually-hidden, .sd-card-text.hidden")) continue;
    const style = getComputedStyle(element);
    if (style.visibility === "hidden" || style.opacity === "0" || element.closest("details:not([open])")) continue;
    const formula = element.closest("math");
    const box = scrolls(element);
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const rectangle of range.getClientRects()) {
      if (rectangle.width < 1 || rectangle.height < 1) continue;
      if (rectangle.right > edge && !box) wrong.push(`past the edge: ${name(node)}`);
      if (box && box.scrollWidth > box.clientWidth + 1) scrolling.add(box);
      if (!formula) lines.push({ rectangle, node, box });
    }
  }
  for (const formula of article.querySelectorAll("math")) {
    lines.push({ rectangle: formula.getBoundingClientRect(), node: formula, box: scrolls(formula) });
  }

  // Two pieces of text share more than a quarter of a line's height: one is printed over the other.
  const seen = (line) => {
    let { left, right, top, bottom } = line.rectangle;
    if (line.box) {
      const frame = line.box.getBoundingClientRect();
      [left, right, top, bottom] = [Math.max(left, frame.left), Math.min(right, frame.right), Math.max(top, frame.top), Math.min(bottom, frame.bottom)];
    }
    return { left, right, top, bottom };
  };
  const drawn = lines.map((line) => ({ ...seen(line), node: line.node })).filter((at) => at.right > at.left && at.bottom > at.top);
  drawn.sort((a, b) => a.top - b.top);
  for (let i = 0; i < drawn.length; i++) {
    for (let j = i + 1; j < drawn.length && drawn[j].top < drawn[i].bottom; j++) {
      const [a, b] = [drawn[i], drawn[j]];
      if (a.node === b.node || a.node.contains(b.node) || b.node.contains(a.node)) continue;
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 3 && high > 0.3 * Math.min(a.bottom - a.top, b.bottom - b.top)) wrong.push(`overprint: ${name(a.node)} | ${name(b.node)}`);
    }
  }

  for (const picture of document.images) {
    if (picture.complete && picture.naturalWidth === 0) wrong.push(`no picture: ${picture.getAttribute("src")}`);
    if (picture.getBoundingClientRect().right > edge && !scrolls(picture)) wrong.push(`past the edge: ${picture.getAttribute("src")}`);
  }
  return { wrong: [...new Set(wrong)], scrolling: [...scrolling].map((box) => `${name(box)}: ${box.scrollWidth - box.clientWidth}`) };
})()
