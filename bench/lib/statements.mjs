// Records the statements, parameters and session settings that the service sends to PostgreSQL, so that all contenders run the same.
import { mkdirSync, readFileSync } from 'node:fs';
import net from 'node:net';
import { dirname, join } from 'node:path';
import { until } from '../../tests/lib/processes.mjs';
import { ready, startDaybook } from './stage.mjs';

const PROTOCOL_3 = 196608;

/** The statement name and the values, all text, of a Bind message. */
function readBind(message) {
  const name = message.indexOf(0, 5) + 1; // after the portal name
  const formats = message.indexOf(0, name) + 1;
  let at = formats + 2 + 2 * message.readUInt16BE(formats);
  const values = Array.from({ length: message.readUInt16BE(at) });
  at += 2;
  for (let i = 0; i < values.length; i++) {
    const length = message.readInt32BE(at);
    values[i] = length < 0 ? null : message.toString('utf8', at + 4, at + 4 + length);
    at += 4 + Math.max(length, 0);
  }
  return [message.toString('utf8', name, formats - 1), values];
}

/** The session settings that a query makes, as options for another session. */
const settingsOf = (sql) =>
  [...sql.matchAll(/set_config\('([^']+)','([^']*)',false\)/g)].map(([, name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`).join(' ');

/**
 * Parses what a client sends. `onQuery` gets the text of each simple query, `onPrepare` the name and text of each statement, `onBind` the
 * name and values of each execution.
 */
function recorder(onQuery, onPrepare, onBind) {
  let held = Buffer.alloc(0);
  let started = false;
  return (data) => {
    held = Buffer.concat([held, data]);
    for (;;) {
      const head = started ? 1 : 0; // the first message has no type
      if (held.length < head + 4 || held.length < head + held.readUInt32BE(head)) return;
      const end = head + held.readUInt32BE(head);
      const texts = held.toString('utf8', started ? 5 : 8, end).split('\0');
      if (!started && held.readUInt32BE(4) === PROTOCOL_3) {
        started = true;
      } else if (started && held[0] === 'Q'.charCodeAt(0)) {
        onQuery(texts[0]);
      } else if (started && held[0] === 'P'.charCodeAt(0)) {
        onPrepare(texts[0], texts[1]);
      } else if (started && held[0] === 'B'.charCodeAt(0)) {
        onBind(...readBind(held.subarray(0, end)));
      }
      held = held.subarray(end);
    }
  };
}

/** {name: {sql, params}} of all statements, from the C file that the build generates from db/*.sql. */
function knownStatements(daybookd) {
  const generated = readFileSync(join(dirname(daybookd), 'gen/statements.gen.c'), 'utf8');
  const found = generated.matchAll(/const (\w+)_params\[\] = \{ (.*) \};\n[^}]*?\.sql =\n((?: *".*"\n)+)/g);
  const text = (lines) => lines.trimEnd().split('\n').map((line) => JSON.parse(line)).join('');
  return new Map([...found].map(([, name, params, lines]) => [name, { sql: text(lines).trimEnd(), params: params === 'NULL' ? [] : JSON.parse(`[${params}]`) }]));
}

/**
 * Records statements: {sql, options, params, sent} by name. Starts a service behind a recording proxy; `act` may send requests to it, and
 * `sent` has the values of every execution.
 */
export async function recordStatements(stage, names, act = () => {}) {
  const known = knownStatements(stage.daybookd);
  const nameOf = new Map([...known].map(([name, { sql }]) => [sql, name]));
  const recorded = new Map();
  const folder = stage.file('between');
  mkdirSync(folder, { recursive: true });
  const between = net.createServer((client) => {
    const server = net.connect(join(stage.database.host, `.s.PGSQL.${stage.database.port}`));
    let options = '';
    let unnamed; // slow statements are unnamed, so that they are planned for their values
    const onPrepare = (given, text) => {
      const sql = text.trimEnd();
      const name = given || nameOf.get(sql);
      if (!given) unnamed = name;
      recorded.set(name, { sql, options, sent: recorded.get(name)?.sent ?? [] });
    };
    client.on(
      'data',
      recorder((sql) => (options ||= settingsOf(sql)), onPrepare, (name, values) => recorded.get(name || unnamed)?.sent.push(values)),
    );
    client.pipe(server).pipe(client);
    for (const socket of [client, server]) socket.on('error', () => socket.destroy());
  });
  await new Promise((resolve) => between.listen(join(folder, `.s.PGSQL.${stage.database.port}`), resolve));
  const url = stage.url.replace(encodeURIComponent(stage.database.host), encodeURIComponent(folder));
  const service = await startDaybook(stage.daybookd, ['--database-url', url], 'ignore');
  try {
    await ready(service);
    await act(service.base); // slow statements are prepared on demand
    await until(() => names.every((name) => recorded.has(name)), `the service prepares ${names.join(', ')}`);
  } finally {
    await service.stop();
    between.close();
  }
  return Object.fromEntries(names.map((name) => [name, { ...recorded.get(name), params: known.get(name).params }]));
}
