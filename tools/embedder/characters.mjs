// Character mappings: NFKC and case folding for the characters that can occur in a vocabulary.

// Ranges with every such character; fixed, so that a newer Unicode version changes nothing.
const RANGES = [
  [0xa0, 0x24f], [0x2b0, 0x52f], [0x1d2c, 0x1dbf], [0x1e00, 0x22ff], [0x2460, 0x24ff], [0x3000, 0x33ff],
  [0xfb00, 0xfb06], [0xff00, 0xffef], [0x1d400, 0x1d7ff],
];

function* characters() {
  for (const [first, last] of RANGES) for (let code = first; code <= last; code++) yield String.fromCodePoint(code);
}

const codes = (text) => Array.from(text, (c) => c.codePointAt(0));

/** [code, codes[]]: NFKC of single characters, where the result has a character of the alphabet or a space. */
export function pieceForms(alphabet) {
  const forms = [];
  for (const c of characters()) {
    const to = c.normalize('NFKC');
    if (to !== c && Array.from(to).some((x) => x === ' ' || alphabet.has(x))) forms.push([c.codePointAt(0), codes(to)]);
  }
  return forms;
}

/** [base, mark, composed]: the NFKC composition of a letter and a following mark. */
export function compositions() {
  const pairs = [];
  for (const c of characters()) {
    const [base, mark, ...more] = Array.from(c.normalize('NFD'));
    if (!mark || c.normalize('NFC') !== c) continue;
    const marks = [mark, ...more];
    const last = marks.pop();
    pairs.push([(base + marks.join('')).normalize('NFC'), last, c]);
  }
  return pairs
    .filter(([base]) => Array.from(base).length === 1)
    .map((pair) => pair.map((c) => c.codePointAt(0)))
    .sort((a, b) => a[0] - b[0] || a[1] - b[1]);
}

// Not compatibility forms, but common substitutes.
const TYPED = new Map([['\u2018', "'"], ['\u2019', "'"], ['\u2010', '-'], ['\u2011', '-'], ['\u2212', '-']]);

/** [code, codes[]]: characters as in the word vectors, lower-case ASCII without marks; a single mark maps to nothing. A character
 * that is not in the list separates words. */
export function wordForms() {
  const forms = [];
  for (const c of characters()) {
    const to = TYPED.get(c) ?? c.normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
    if (to === '' || /[a-z0-9&.'-]/.test(to)) forms.push([c.codePointAt(0), codes(to.replace(/[^\x20-\x7e]/g, ' '))]);
  }
  return forms;
}
