// A stub language model and embedding endpoint: one local server that speaks Anthropic Messages, OpenAI chat and OpenAI embeddings, follows a
// script of good and bad responses, and records its requests.
//
//   const models = await startModelServer();                       // on a free port; {dimension: 64, key, synonyms: {autos: 'cars'}}
//   const s = suite({ env: { ...models.modelEnv('anthropic'), ...models.embeddingEnv() } });   // settings of the service; 'openai' for chat
//   after(() => models.close());
//   models.model.next(say('{"answer": …}'), status(429, { retryAfter: 1 }), hang());   // the next responses, in this order
//   models.model.always(status(500));                              // every other response; by default say('ok') and embed()
//   models.embeddings.next(closeEarly(), embed());                 // the same for embedding requests
//   models.model.requests                                          // [{path, headers, body (parsed), text, aborted}], oldest first
//   await models.model.asked(3)                                    // waits until there are three
//   models.model.hanging                                           // requests now held by hang(); release() responds to them with the given behaviour
//   models.model.reset()                                           // clears requests, queue and `always`
//   await models.stop(); await models.start()                      // refuses connections; listens again on the same port
//
// Behaviours: say(text, {tokensIn, tokensOut, truncated, model}), embed({dimension, shuffle, longest}) (400 for a text over `longest` bytes), vectors([[…], …]), status(code, {retryAfter, type}), hang(),
// closeEarly() (before any byte), closeMidway() (inside the body), garbage() (not HTTP), invalidJson(), emptyText(), emptyBody(), tooLong(bytes), redirect(to).
// A request that violates the wire protocol gets 400 (401 without the key) whatever the script says, like the real services.
import http from 'node:http';
import { until } from './processes.mjs';

const json = (response, code, document, headers = {}) => {
  const text = JSON.stringify(document);
  response.writeHead(code, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text), ...headers }).end(text);
};

// ---- behaviours: functions of (request, response, server) ----

/** The model answers with this text. */
export const say =
  (text, { tokensIn = 11, tokensOut = 7, truncated = false, model } = {}) =>
  (request, response) =>
    request.wire.answer(response, { text, tokensIn, tokensOut, truncated, model: model ?? request.body.model });

/** The vectors of embedText, in order or shuffled, in the server's dimension or another. */
export const embed =
  ({ dimension, shuffle = false, longest = Infinity } = {}) =>
  (request, response, server) => {
    const texts = [request.body.input].flat();
    if (texts.some((text) => Buffer.byteLength(text) > longest)) return status(400, { type: 'invalid_request_error' })(request, response);
    const list = texts.map((text) => embedText(text, dimension ?? request.body.dimensions ?? server.dimension, server.synonyms));
    vectors(list, { shuffle })(request, response);
  };

/** Exactly these vectors; an item may be any JSON value. */
export const vectors =
  (list, { shuffle = false } = {}) =>
  (request, response) => {
    const data = list.map((embedding, index) => ({ object: 'embedding', index, embedding }));
    if (shuffle) data.reverse();
    json(response, 200, { object: 'list', data, model: request.body.model, usage: { prompt_tokens: 5, total_tokens: 5 } });
  };

/** An error status in the format of the wire protocol. */
export const status =
  (code, { retryAfter, type = code === 429 ? 'rate_limit_error' : 'api_error', message = 'as planned' } = {}) =>
  (request, response) =>
    json(response, code, request.wire.error(type, message), retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) });

/** No response until release() or close(). */
export const hang = () => (request, response, server) => void request.side.waiting.add({ request, response, server });

/** Closes the connection before any byte of a response. */
export const closeEarly = () => (request, response) => void response.socket.destroy();

/** Closes the connection in the middle of the response. */
export const closeMidway = () => (request, response) => {
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': 1000 });
  response.write('{"half":', () => response.socket.destroy());
};

/** Bytes that are not HTTP. */
export const garbage = () => (request, response) => void response.socket.end('\x00\xff\x17 this is not HTTP\r\n\r\n');

/** 200 with a body that is not JSON, or truncated JSON. */
export const invalidJson =
  (text = '{"content": [') =>
  (request, response) =>
    void response.writeHead(200, { 'content-type': 'application/json' }).end(text);

export const emptyBody = () => invalidJson('');

/** A valid response with empty text. */
export const emptyText = () => say('');

/** A response of that many bytes. */
export const tooLong = (bytes) => say('x'.repeat(bytes));

export const redirect = (to) => (request, response) => void response.writeHead(307, { location: to, 'content-length': 0 }).end();

// ---- wire protocols ----

const isText = (x) => typeof x === 'string' && x.length > 0;
const isMessages = (x) => Array.isArray(x) && x.length > 0 && x.every((m) => ['system', 'user', 'assistant'].includes(m.role) && isText(m.content));

const openAiError = (type, message) => ({ error: { message, type, param: null, code: null } });
const bearer = (headers) => headers.authorization?.match(/^Bearer (\S+)$/)?.[1];

const wires = {
  '/v1/messages': {
    side: 'model',
    key: (headers) => headers['x-api-key'],
    error: (type, message) => ({ type: 'error', error: { type, message } }),
    fault: ({ model, max_tokens, messages, system }, headers) =>
      (!isText(headers['anthropic-version']) && 'anthropic-version') ||
      (!isText(model) && 'model') ||
      (!Number.isInteger(max_tokens) && 'max_tokens') ||
      ((!isMessages(messages) || messages.some((m) => m.role === 'system')) && 'messages') ||
      (system !== undefined && !(Array.isArray(system) && system.every((b) => b.type === 'text' && isText(b.text))) && 'system'),
    answer: (response, { text, tokensIn, tokensOut, truncated, model }) =>
      json(response, 200, {
        id: 'msg_01',
        type: 'message',
        role: 'assistant',
        model,
        content: [{ type: 'text', text }],
        stop_reason: truncated ? 'max_tokens' : 'end_turn',
        stop_sequence: null,
        usage: { input_tokens: tokensIn, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: tokensOut },
      }),
  },
  '/v1/chat/completions': {
    side: 'model',
    key: bearer,
    error: openAiError,
    fault: ({ model, messages }) => (!isText(model) && 'model') || (!isMessages(messages) && 'messages'),
    answer: (response, { text, tokensIn, tokensOut, truncated, model }) =>
      json(response, 200, {
        id: 'chatcmpl-1',
        object: 'chat.completion',
        created: 1780000000,
        model,
        choices: [{ index: 0, message: { role: 'assistant', content: text, refusal: null }, logprobs: null, finish_reason: truncated ? 'length' : 'stop' }],
        usage: { prompt_tokens: tokensIn, completion_tokens: tokensOut, total_tokens: tokensIn + tokensOut },
      }),
  },
  '/v1/embeddings': {
    side: 'embeddings',
    key: bearer,
    error: openAiError,
    fault: ({ model, input }) => (!isText(model) && 'model') || (![input].flat().every(isText) && 'input'),
  },
};

// ---- deterministic embeddings ----

const hash = (text) => {
  let h = 0x811c9dc5;
  for (const byte of Buffer.from(text)) h = Math.imul(h ^ byte, 0x01000193) >>> 0;
  h = Math.imul(h ^ (h >>> 15), 0x2c1b3c6d) >>> 0;
  return (h ^ (h >>> 12)) >>> 0;
};

/** A bag of words hashed into `dimension` numbers: the same text has the same vector, shared words (or synonyms) yield near ones. Not normalized. */
export function embedText(text, dimension = 64, synonyms = {}) {
  const vector = new Array(dimension).fill(0.001);
  for (const word of text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []) vector[hash(synonyms[word] ?? word) % dimension] += 1;
  return vector;
}

// ---- the server ----

/** The script and the recorded requests of one endpoint: the model or the embeddings. */
function makeSide(fallback) {
  const side = {
    requests: [],
    waiting: new Set(),
    plan: [],
    fallback,
    next: (...behaviours) => void side.plan.push(...behaviours),
    always: (behaviour) => void (side.fallback = behaviour),
    asked: (n) => until(() => side.requests.length >= n, `the ${n}th request has come`),
    get hanging() {
      return side.waiting.size;
    },
    release(behaviour = fallback) {
      const all = [...side.waiting];
      side.waiting.clear();
      for (const { request, response, server } of all) behaviour(request, response, server);
    },
    reset() {
      side.requests.length = side.plan.length = 0;
      side.fallback = fallback;
    },
  };
  return side;
}

export async function startModelServer({ dimension = 64, key = 'sk-test-secret', synonyms = {} } = {}) {
  const server = { dimension, key, synonyms, model: makeSide(say('ok')), embeddings: makeSide(embed()) };

  const take = (request, response, text) => {
    const wire = wires[request.url];
    if (!wire || request.method !== 'POST') return json(response, 404, openAiError('not_found_error', 'no such path'));
    const side = server[wire.side];
    let body;
    try {
      body = JSON.parse(text);
    } catch {
      return json(response, 400, wire.error('invalid_request_error', 'not JSON'));
    }
    const asked = { path: request.url, headers: request.headers, text, body, wire, side, aborted: false };
    side.requests.push(asked);
    response.on('close', () => {
      asked.aborted = !response.writableFinished;
      for (const waits of side.waiting) if (waits.response === response) side.waiting.delete(waits);
    });
    if (wire.key(request.headers) !== key) return json(response, 401, wire.error('authentication_error', 'wrong key'));
    const fault = wire.fault(body, request.headers);
    if (fault) return json(response, 400, wire.error('invalid_request_error', fault));
    (side.plan.shift() ?? side.fallback)(asked, response, server);
  };

  const listener = http.createServer((request, response) => {
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => take(request, response, Buffer.concat(chunks).toString('utf8')));
    request.on('error', () => {}); // the client has disconnected
  });
  listener.keepAliveTimeout = 60_000;
  await new Promise((resolve, reject) => listener.on('error', reject).listen(0, '127.0.0.1', 1024, resolve));
  server.url = `http://127.0.0.1:${listener.address().port}`;

  /** Settings for the service as environment variables: the key is never on a command line. */
  server.modelEnv = (api = 'anthropic', more = {}) => ({
    DAYBOOK_MODEL_API: api,
    DAYBOOK_MODEL_URL: server.url,
    DAYBOOK_MODEL_KEY: key,
    DAYBOOK_MODEL_NAME: 'test-model',
    ...more,
  });
  server.embeddingEnv = (more = {}) => ({
    DAYBOOK_EMBEDDING_URL: server.url,
    DAYBOOK_EMBEDDING_KEY: key,
    DAYBOOK_EMBEDDING_MODEL: 'test-embedding',
    DAYBOOK_EMBEDDING_DIMENSION: String(dimension),
    ...more,
  });

  /** Stops listening: connections are refused. start() listens again on the same port. */
  const { port } = listener.address();
  server.stop = () => {
    listener.closeAllConnections();
    return new Promise((resolve) => listener.close(resolve));
  };
  server.start = () => new Promise((resolve, reject) => listener.once('error', reject).listen(port, '127.0.0.1', 1024, resolve));
  server.close = server.stop;
  return server;
}
