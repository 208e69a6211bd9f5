// Generates reference.tsv: the vectors that the built-in embedder must produce, computed without optimizations from the packages' fp32
// weights. It shares no code and no quantization with core/embed. Usage: node tests/data/embed/make.mjs
import { readFileSync, writeFileSync } from 'node:fs';
import { encoderParts, readSentences, withPackages } from '../../../tools/embedder/packages.mjs';
import { wordVectors } from '../../../tools/embedder/words.mjs';

const here = (name) => new URL(name, import.meta.url);
const MOST_PIECES = 128;
const MOST_WORDS = 1000;

const length = (v) => Math.sqrt(v.reduce((sum, x) => sum + x * x, 0));
const unit = (v) => (length(v) ? v.map((x) => x / length(v)) : v);
const plus = (a, b) => a.map((x, i) => x + b[i]);

// ---- pieces ----

function pieceIds(text, vocabulary) {
  const plain = text.normalize('NFKC').replace(/[\s\u0085]+/g, ' ').trim();
  const symbols = Array.from('\u2581' + plain.replaceAll(' ', '\u2581'));
  const index = new Map(vocabulary.map(([piece, score], id) => [piece, { id, score, size: Array.from(piece).length }]).slice(6));
  const best = [{ score: 0, from: -1, id: -1 }];
  for (let end = 1; end <= symbols.length; end++)
    for (let start = Math.max(0, end - 16); start < end; start++) {
      const piece = index.get(symbols.slice(start, end).join(''));
      const known = piece ?? (end - start === 1 ? { id: 0, score: 0 } : undefined);
      if (!known) continue;
      const score = best[start].score + known.score;
      if (!best[end] || score >= best[end].score) best[end] = { score, from: start, id: known.id };
    }
  const ids = [];
  for (let at = symbols.length; at > 0; at = best[at].from) ids.unshift(best[at].id);
  return ids.filter((id, i) => id !== 0 || ids[i - 1] !== 0).slice(0, MOST_PIECES);
}

// ---- the encoder ----

const apply = ({ weights, bias, inputs, outputs }, rows) =>
  rows.map((x) => {
    const y = Array.from(bias);
    for (let i = 0; i < inputs; i++) for (let o = 0; o < outputs; o++) y[o] += x[i] * weights[i * outputs + o];
    return y;
  });

function layerNorm({ scale, bias }, rows) {
  return rows.map((x) => {
    const mean = x.reduce((a, b) => a + b, 0) / x.length;
    const variance = x.reduce((a, b) => a + (b - mean) ** 2, 0) / x.length;
    return x.map((v, i) => ((v - mean) / Math.sqrt(variance + 1e-6)) * scale[i] + bias[i]);
  });
}

function attention(layer, rows) {
  const width = layer.qkv.outputs / 3;
  const head = width / 4;
  const qkv = apply(layer.qkv, rows);
  const part = (row, which, h) => row.slice(which * width + h * head, which * width + (h + 1) * head);
  const mixed = qkv.map((row) => {
    const out = [];
    for (let h = 0; h < 4; h++) {
      const q = part(row, 0, h);
      const scores = qkv.map((other) => part(other, 1, h).reduce((sum, k, i) => sum + k * q[i], 0) / Math.sqrt(head));
      const top = Math.max(...scores);
      const shares = scores.map((s) => Math.exp(s - top));
      const total = shares.reduce((a, b) => a + b, 0);
      const mix = new Array(head).fill(0);
      qkv.forEach((other, t) => part(other, 2, h).forEach((v, i) => (mix[i] += (shares[t] / total) * v)));
      out.push(...mix);
    }
    return out;
  });
  return apply(layer.out, mixed);
}

const feedForward = (layer, rows) =>
  apply(layer.ffn2, apply(layer.ffn1, layerNorm(layer.ffnNorm, rows)).map((row) => row.map((x) => Math.max(0, x))));

export function sentenceVector(text, { vocabulary, parts }) {
  const ids = pieceIds(text, vocabulary);
  const x = ids.map((id, at) =>
    Array.from({ length: 256 }, (_, i) => {
      const angle = Math.fround(at * parts.timescales[i % 128]);
      return 2 * parts.pieces[id * 256 + i] + (i < 128 ? Math.sin(angle) : Math.cos(angle));
    }),
  );
  const [first, second] = parts.layers;
  const added = (rows, more) => rows.map((row, t) => plus(row, more[t]));
  let h = added(apply(parts.widen, x), attention(first, layerNorm(first.norm, x)));
  h = added(h, feedForward(first, h));
  h = added(h, attention(second, layerNorm(second.norm, h)));
  h = added(h, feedForward(second, h));
  const mean = h.reduce(plus).map((v) => v / h.length);
  return unit(apply(parts.last, [mean])[0].map(Math.tanh));
}

// ---- words ----

const WORD = /[a-z0-9]+(?:[&.'-][a-z0-9]+)*/g;

function wordsVector(text, words) {
  const plain = text.replace(/[\u2018\u2019]/g, "'").replace(/[\u2010\u2011\u2212]/g, '-').normalize('NFKD').replace(/\p{M}/gu, '').toLowerCase();
  const sum = new Array(100).fill(0);
  let count = 0;
  for (const [whole] of plain.matchAll(WORD)) {
    if (count++ === MOST_WORDS) break;
    for (const word of words.has(whole) ? [whole] : whole.split(/[&.'-]/)) {
      const known = words.get(word);
      if (known) known.vector.forEach((v, i) => (sum[i] += known.weight * v));
    }
  }
  return unit(sum);
}

export function referenceModel(folder) {
  const { vocabulary, weights } = readSentences(folder);
  const words = new Map(wordVectors(folder).map((w) => [w.word, w]));
  const model = { vocabulary, parts: encoderParts(weights) };
  return (text) => unit([...sentenceVector(text, model), ...wordsVector(text, words).map((x) => 0.8 * x)]);
}

// ---- the file ----

const escaped = (text) => text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('\t', '\\t');

if (process.argv[1] === here('make.mjs').pathname) {
  const texts = JSON.parse(readFileSync(here('texts.json'), 'utf8'));
  const lines = withPackages((folder) => {
    const embed = referenceModel(folder);
    return texts.map((text) => `${escaped(text)}\t${embed(text).map((x) => Math.round(x * 1e5)).join(' ')}`);
  });
  writeFileSync(here('reference.tsv'), `# text, and its vector in units of 1e-5; made by make.mjs\n${lines.join('\n')}\n`);
}
