// Writes the weights of the built-in embedder as core/embed/embed_file.h lays them out.
import { writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { compositions, pieceForms, wordForms } from './characters.mjs';
import { encoderParts, readSentences, withPackages } from './packages.mjs';
import { WORDS, WORD_DIM, wordVectors } from './words.mjs';

const TO = process.argv[2] ?? fileURLToPath(new URL('../../core/embed/weights.bin', import.meta.url));
const RESERVED = 6; // pieces that occur in no text
const PANEL = 16;
const ALIGN = 64;

const bytesOf = (typed) => Buffer.from(typed.buffer, typed.byteOffset, typed.byteLength);
const u32 = (values) => bytesOf(Uint32Array.from(values));
const f32 = (values) => bytesOf(Float32Array.from(values));

const clamped = (x) => Math.max(-127, Math.min(127, Math.round(x)));

/** Quantizes a row to int8 with the scale of least error, which may clip the largest values. */
function quantise(row) {
  const most = row.reduce((m, x) => Math.max(m, Math.abs(x)), 0);
  let best = { scale: 1, error: Infinity };
  for (let share = 80; most > 0 && share >= 40; share--) {
    const scale = Math.fround((most / 127) * (share / 80));
    const error = row.reduce((sum, x) => sum + (x - clamped(x / scale) * scale) ** 2, 0);
    if (error < best.error) best = { scale, error };
  }
  return { scale: best.scale, values: row.map((x) => clamped(x / best.scale)) };
}

function quantiseRows(data, rows, width) {
  const all = Array.from({ length: rows }, (_, r) => quantise(Array.from(data.subarray(r * width, (r + 1) * width))));
  return [f32(all.map((row) => row.scale)), bytesOf(Int8Array.from(all.flatMap((row) => row.values)))];
}

/** Panels of 16 outputs; in a panel, for each input, the 16 weights side by side. Also returns the rounding error of each weight. */
function panelsOf({ weights, bias, inputs, outputs }) {
  const scales = [];
  const left = new Float64Array(inputs * outputs);
  const panels = new Int8Array(inputs * outputs);
  for (let o = 0; o < outputs; o++) {
    const column = Array.from({ length: inputs }, (_, i) => weights[i * outputs + o]);
    const { scale, values } = quantise(column);
    const panel = Math.floor(o / PANEL) * PANEL * inputs;
    values.forEach((value, i) => {
      panels[panel + i * PANEL + (o % PANEL)] = value;
      left[i * outputs + o] = column[i] - value * scale;
    });
    scales.push(scale);
  }
  return { left, sections: [bytesOf(panels), f32(scales), f32(bias)] };
}

const dense = (layer) => panelsOf(layer).sections;

/** Layers that see single pieces: rounding errors do not average out in short texts, so the errors are stored too. */
function fine(layer) {
  const { left, sections } = panelsOf(layer);
  return [...sections, ...dense({ ...layer, weights: left, bias: layer.bias.map(() => 0) })];
}

const norm = ({ scale, bias }) => [f32(scale), f32(bias)];

/** The pieces as a trie, breadth first, so that the children of a node are adjacent. */
function trie(vocabulary, symbolOf) {
  const root = { children: new Map(), piece: 0 };
  vocabulary.forEach(([piece], id) => {
    if (id < RESERVED) return;
    let node = root;
    for (const c of piece) {
      const symbol = symbolOf.get(c);
      if (!node.children.has(symbol)) node.children.set(symbol, { symbol, children: new Map(), piece: 0 });
      node = node.children.get(symbol);
    }
    node.piece = id; // the last of two equal pieces counts
  });
  const nodes = [root];
  const rows = [];
  for (const node of nodes) {
    const children = [...node.children.values()].sort((a, b) => a.symbol - b.symbol);
    rows.push([nodes.length, children.length, node.piece, node.symbol ?? 0]);
    nodes.push(...children);
  }
  const out = Buffer.alloc(rows.length * 12);
  rows.forEach(([first, count, piece, symbol], i) => {
    out.writeUInt32LE(first, i * 12);
    out.writeUInt32LE(symbol, i * 12 + 4);
    out.writeUInt16LE(count, i * 12 + 8);
    out.writeUInt16LE(piece, i * 12 + 10);
  });
  return out;
}

/** Characters and their mappings: offset in the pool, and length. */
function forms(list) {
  const pool = [];
  const rows = list.flatMap(([code, to]) => {
    pool.push(...to);
    return [code, ((pool.length - to.length) << 8) | to.length];
  });
  return [u32(rows), u32(pool)];
}

function words(list) {
  const sorted = list.map((w) => ({ ...w, bytes: Buffer.from(w.word) })).sort((a, b) => Buffer.compare(a.bytes, b.bytes));
  const ends = [0];
  for (const { bytes } of sorted) ends.push(ends.at(-1) + bytes.length);
  const rows = sorted.map(({ vector }) => quantise(vector));
  const scales = rows.map(({ scale }, i) => scale * sorted[i].weight);
  const values = new Int8Array(WORDS * WORD_DIM);
  rows.forEach((row, i) => values.set(row.values, i * WORD_DIM));
  return [u32(ends), Buffer.concat(sorted.map((w) => w.bytes)), f32(scales), bytesOf(values)];
}

function allSections(folder) {
  const { vocabulary, weights } = readSentences(folder);
  const parts = encoderParts(weights);
  const alphabet = new Set(vocabulary.slice(RESERVED).flatMap(([piece]) => Array.from(piece)));
  const symbols = [...alphabet].map((c) => c.codePointAt(0)).sort((a, b) => a - b);
  const symbolOf = new Map(symbols.map((code, i) => [String.fromCodePoint(code), i + 1]));
  return [
    u32(symbols),
    trie(vocabulary, symbolOf),
    bytesOf(Float64Array.from(vocabulary, ([, score]) => score)),
    ...forms(pieceForms(alphabet)),
    u32(compositions().flat()),
    ...forms(wordForms()),
    ...words(wordVectors(folder)),
    ...quantiseRows(parts.pieces, parts.pieces.length / 256, 256),
    f32(parts.timescales),
    ...fine(parts.widen),
    ...parts.layers.flatMap((l, n) => [
      ...norm(l.norm), ...(n === 0 ? fine : dense)(l.qkv), ...dense(l.out), ...norm(l.ffnNorm), ...dense(l.ffn1), ...dense(l.ffn2),
    ]),
    ...dense(parts.last),
  ];
}

/** hash_bytes of core/base/hash.c. */
function checksum(bytes) {
  const mask = (1n << 64n) - 1n;
  const whole = bytes.length - (bytes.length % 8);
  let seed = 0n;
  for (let i = 0; i < whole; i += 8) {
    const product = (seed ^ bytes.readBigUInt64LE(i)) * 0x9e3779b97f4a7c15n;
    seed = (product & mask) ^ (product >> 64n);
  }
  for (let i = whole; i < bytes.length; i++) seed = ((seed ^ BigInt(bytes[i])) * 0x100000001b3n) & mask;
  return seed;
}

function file(list) {
  const padded = (n) => Math.ceil(n / ALIGN) * ALIGN;
  const head = 32;
  let at = padded(head + list.length * 8);
  const table = list.flatMap((section) => {
    const start = at;
    at += padded(section.length);
    return [start, section.length];
  });
  const out = Buffer.alloc(at);
  out.write('DAYEMBED', 0, 'latin1');
  out.writeUInt32LE(1, 8); // the version of the layout
  out.writeUInt32LE(list.length, 12);
  out.writeBigUInt64LE(BigInt(at), 16);
  u32(table).copy(out, head);
  list.forEach((section, i) => section.copy(out, table[2 * i]));
  out.writeBigUInt64LE(checksum(out.subarray(head)), 24);
  return out;
}

const out = withPackages((folder) => file(allSections(folder)));
writeFileSync(TO, out);
console.log(`${TO}: ${out.length} bytes`);
