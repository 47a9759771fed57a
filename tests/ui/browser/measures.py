"""What is measured inside the page: expressions that come to a list of what is wrong."""

CONTRASTS = """(() => {
    // Text whose contrast with what lies behind it is under 4.5 to 1 (3 to 1 where it is large).
    const parse = (colour) => {
        const found = colour.match(/[\\d.]+/g).map(Number);
        return found.length > 3 ? found : [...found, 1];
    };
    const light = (colour) => {
        const [r, g, b] = colour.map((c) => {
            const v = c / 255;
            return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
        for (let e = element; e; e = e.parentElement) {
            const colour = parse(getComputedStyle(e).backgroundColor);
            if (colour[3] > 0.99) return colour;
        }
        return [255, 255, 255, 1];
    };
    const wrong = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
        const element = walker.currentNode.parentElement;
        if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
        if (element.closest("canvas, .sr, .skip, option, :disabled")) continue;
        const style = getComputedStyle(element);
        const [a, b] = [light(parse(style.color)), light(behind(element))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        const large = parseFloat(style.fontSize) >= 24;
        if (ratio < (large ? 3 : 4.5)) {
            wrong.push(`${ratio.toFixed(2)} ${walker.currentNode.data.trim().slice(0, 30)}`);
        }
    }
    return wrong;
})()"""

NAMELESS = """[...document.querySelectorAll("a, button, input, select, canvas, [role], summary")]
    .filter((e) => e.checkVisibility())
    .filter((e) => !(e.ariaLabel || e.getAttribute("aria-labelledby") || e.textContent.trim()
                     || e.labels?.length || ["status"].includes(e.getAttribute("role"))))
    .map((e) => e.outerHTML.slice(0, 80))"""

REPEATED_IDS = """[...document.querySelectorAll("[id]")].map((e) => e.id)
    .filter((id, i, all) => all.indexOf(id) !== i)"""

OUT_OF_ORDER = """[...document.querySelectorAll("[tabindex]")]
    .filter((e) => e.tabIndex > 0).map((e) => e.outerHTML.slice(0, 80))"""
