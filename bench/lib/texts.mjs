// Random lessons: a few thousand made-up words, the common ones more often than the rare ones.
const SYLLABLES =
  'ba be bi bo ca ce co cu da de di do fa fe fi ga ge go ha he hi la le li lo ma me mi mo na ne ni no pa pe po ra re ri ro sa se si so ta te ti to va ve vi wa we'.split(
    ' ',
  );
const WORDS = 4000;

/** Small, fast and the same on every machine (mulberry32). */
export function randomFrom(seed) {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

function makeWords() {
  const random = randomFrom(1);
  const words = new Set();
  while (words.size < WORDS) {
    const syllables = 2 + Math.floor(random() * 3);
    words.add(Array.from({ length: syllables }, () => SYLLABLES[Math.floor(random() * SYLLABLES.length)]).join(''));
  }
  return [...words];
}

export const words = makeWords();

function randomTexts(seed) {
  const random = randomFrom(seed);
  const between = (least, most) => least + Math.floor(random() * (most - least + 1));
  const text = (least, most) =>
    Array.from({ length: between(least, most) }, () => words[Math.floor(WORDS * random() ** 2)]).join(' ');
  return { between, text };
}

/** Makes bodies of POST /v1/lessons; wrk/create.lua makes the same kind. */
export function lessonMaker(seed) {
  const { between, text } = randomTexts(seed);
  return () => ({
    takeaway: text(8, 14),
    context: text(15, 35),
    outcome: text(10, 25),
    tags: [`topic-${between(1, 50)}`, `market-${between(1, 20)}`],
    evidence: [`decision-${between(1, 100_000)}`, `episode-${between(1, 100_000)}`],
  });
}

/** Makes bodies of POST /v1/memories; wrk/memory.lua makes the same kind. */
export function memoryMaker(seed) {
  const { between, text } = randomTexts(seed);
  return () => ({
    kind: ['note', 'proposal', 'risk_note'][between(0, 2)],
    text: text(20, 40),
    symbol: `S${between(1, 50)}`,
    tags: [`topic-${between(1, 50)}`, `market-${between(1, 20)}`],
    evidence: [`figure-${between(1, 100_000)}`],
    agent_name: 'bench',
  });
}
