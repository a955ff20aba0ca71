import type { Random } from './random.ts';

/** Values that readers tend to forget. */
const ODD: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1, 0.5, 1e21, -0, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 53 - 1, 1e308, 8.64e15],
  ...['', ' ', 'x', '\0', '\ud800', '__proto__', 'constructor', '...', '_sd', '_sd_alg', '%', '\u{1f600}'],
  ...['1', '-1', '1e9', '2020-02-30', '99999999999999999999', 'https://a.example', 'A'.repeat(300)],
  ...[[], {}, [[]], [{}], [null], { a: 1 }, [0, 0], ['a', 'a']],
];

type Place = { readonly holder: Record<string, unknown> | unknown[]; readonly key: string | number };

/** One change of a value inside a document. @param leaf changes a text, which may be an encoding of something. */
export function mutateJson(
  document: unknown,
  random: Random,
  words: readonly string[],
  leaf: (text: string) => string,
): unknown {
  const root = [structuredClone(document)];
  const places: Place[] = [];
  collect(root, places, 0);
  const { holder, key } = random.pick(places);
  const at = holder as Record<string | number, unknown>;
  const value = at[key];
  switch (random.below(10)) {
    case 0:
    case 1:
      at[key] = structuredClone(random.pick(ODD));
      break;
    case 2:
      if (Array.isArray(holder)) holder.splice(Number(key), holder === root ? 0 : 1);
      else delete at[key];
      break;
    case 3: {
      const source = random.pick(places);
      at[key] = structuredClone((source.holder as Record<string | number, unknown>)[source.key]);
      break;
    }
    case 4:
      at[key] = random.once(2) ? [value] : { [words.length === 0 ? 'a' : random.pick(words)]: value };
      break;
    case 5:
      if (Array.isArray(value))
        value.push(structuredClone(value.length > 0 ? random.pick(value) : random.pick(ODD)));
      else if (typeof value === 'object' && value !== null) {
        Object.assign(value, {
          [words.length === 0 ? 'a' : random.pick(words)]: structuredClone(random.pick(ODD)),
        });
      } else at[key] = random.pick(ODD);
      break;
    case 6:
      if (words.length > 0) at[key] = random.pick(words);
      break;
    case 7:
      if (typeof value === 'number')
        at[key] = random.pick([value + 1, value - 1, -value, value * 2, value / 3, 1e300]);
      else if (Array.isArray(value) && value.length > 0)
        value.push(...Array(random.below(random.once(10) ? 4_000 : 120)).fill(value[0]));
      break;
    default: {
      const texts = places.filter((place) => typeof valueIn(place) === 'string');
      if (texts.length === 0) break;
      const text = random.pick(texts);
      (text.holder as Record<string | number, unknown>)[text.key] = leaf(String(valueIn(text)));
    }
  }
  return root[0];
}

function valueIn({ holder, key }: Place): unknown {
  return (holder as Record<string | number, unknown>)[key];
}

function collect(holder: Place['holder'], places: Place[], depth: number): void {
  if (depth > 40) return;
  for (const key of Object.keys(holder)) {
    if (key === '__proto__') continue;
    const place = { holder, key: Array.isArray(holder) ? Number(key) : key };
    places.push(place);
    const value = valueIn(place);
    if (typeof value === 'object' && value !== null) collect(value as Place['holder'], places, depth + 1);
  }
}
