// Word vectors for the built-in embedder: weighted by rarity, without the component that all words share.
import { readWords } from './packages.mjs';

export const WORDS = 60000;
export const WORD_DIM = 100;
const ALL_WORDS = 341479; // in the package: the base of the frequencies
const RARITY = 1e-4; // `a` of smooth inverse frequency
const COMPONENTS = 2;

// Only + - * / and square roots: every machine gets the same bits.
const dot = (a, b) => a.reduce((sum, x, i) => sum + x * b[i], 0);
const scaled = (a, by) => a.map((x) => x * by);

/** The direction in which the (centred) vectors differ most, by power iteration on their covariance. */
function principal(covariance) {
  let v = covariance.map((_, i) => 1 + i / covariance.length);
  for (let i = 0; i < 1000; i++) {
    v = covariance.map((row) => dot(row, v));
    v = scaled(v, 1 / Math.sqrt(dot(v, v)));
  }
  return v;
}

function covarianceOf(vectors) {
  const sum = Array.from({ length: WORD_DIM }, () => new Float64Array(WORD_DIM));
  for (const v of vectors)
    for (let i = 0; i < WORD_DIM; i++) for (let j = 0; j < WORD_DIM; j++) sum[i][j] += v[i] * v[j];
  return sum.map((row) => Array.from(row, (x) => x / vectors.length));
}

/** [{ word, weight, vector }], most frequent first. */
export function wordVectors(folder) {
  const words = readWords(folder, WORDS, WORD_DIM);
  const mean = new Float64Array(WORD_DIM);
  for (const [, vector] of words) vector.forEach((x, i) => (mean[i] += x / words.length));
  const vectors = words.map(([, vector]) => vector.map((x, i) => x - mean[i]));
  for (let n = 0; n < COMPONENTS; n++) {
    const component = principal(covarianceOf(vectors));
    for (const v of vectors) {
      const share = dot(v, component);
      for (let i = 0; i < WORD_DIM; i++) v[i] -= share * component[i];
    }
  }
  let harmonic = 0; // Zipf: the word of rank r has the share 1 / (r * harmonic)
  for (let r = 1; r <= ALL_WORDS; r++) harmonic += 1 / r;
  return words.map(([word], i) => ({ word, vector: vectors[i], weight: RARITY / (RARITY + 1 / ((i + 1) * harmonic)) }));
}
