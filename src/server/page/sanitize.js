// SPDX-License-Identifier: Apache-2.0
// The one way from markup to nodes: DOMPurify with a list of what answers need. No styles, images, forms or frames.

const HTML = ["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em",
  "strong", "s", "a", "table", "thead", "tbody", "tr", "th", "td", "div", "span"];
const MATH = ["math", "semantics", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "msub", "msup", "msubsup", "munder",
  "mover", "munderover", "mmultiscripts", "mprescripts", "mfrac", "msqrt", "mroot", "mtable", "mtr", "mtd", "mstyle",
  "menclose", "mpadded", "mphantom", "merror"];
const SAFE = ["class", "title", "target", "rel", "start", "display", "mathvariant", "mathcolor", "mathbackground",
  "stretchy", "fence", "separator", "accent", "accentunder", "lspace", "rspace", "minsize", "maxsize", "symmetric",
  "largeop", "movablelimits", "linethickness", "columnalign", "columnspacing", "columnlines", "rowspacing", "rowlines",
  "scriptlevel", "displaystyle", "width", "height", "depth", "voffset", "notation"];
const OPTIONS = {
  ALLOWED_TAGS: [...HTML, ...MATH], ALLOWED_ATTR: ["href", ...SAFE], ADD_URI_SAFE_ATTR: SAFE,
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i, ALLOW_DATA_ATTR: false, ALLOW_ARIA_ATTR: false,
  RETURN_DOM_FRAGMENT: true,
};

// Whether an address may become a link.
export const isLink = (address) => OPTIONS.ALLOWED_URI_REGEXP.test(address);

export const toNodes = (markup) => window.DOMPurify.sanitize(markup, OPTIONS);
