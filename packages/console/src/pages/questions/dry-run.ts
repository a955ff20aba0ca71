import { jsonOfBase64 } from '../../../../wallet/src/core/formats/base64.ts';
import { at, isRecord } from '../../parts/json-paths.ts';
import { askedOf, type RequestedCredential } from './question.ts';

export type Outcome = {
  readonly type: string;
  readonly disclosed: readonly string[];
  readonly answers: readonly { readonly id: string; readonly shown: readonly string[]; readonly missing: readonly string[] }[];
};

/** `POST /verifier/config/{id}/try` accepts no more. */
export const MAX_LENGTH = 2_400_000;

/** @throws Error for what is no SD-JWT VC. */
export async function dryRun(pasted: string, draft: unknown): Promise<Outcome> {
  const text = pasted.trim();
  const [jwt = '', ...rest] = text.split('~');
  const [, payload] = jwt.split('.');
  if (payload === undefined) throw new Error('This is no SD-JWT VC. Mdocs are read once the question is saved.');
  const claims = jsonOf(payload);
  if (!isRecord(claims)) throw new Error('What it carries is no object.');
  const disclosures = new Map<string, unknown>();
  for (const disclosure of rest.filter((part) => part !== '' && !part.includes('.'))) {
    disclosures.set(await digestOf(disclosure), jsonOf(disclosure));
  }
  const whole = reveal(claims, disclosures);
  const type = String(at(whole, 'vct') ?? '');
  return {
    type,
    disclosed: [...disclosures.values()].flatMap((disclosure) =>
      Array.isArray(disclosure) && disclosure.length === 3 ? [String(disclosure[1])] : [],
    ),
    answers: askedOf(draft)
      .filter(({ format, types }) => format === 'dc+sd-jwt' && types.includes(type))
      .map((asked) => answerOf(asked, whole)),
  };
}

function answerOf({ id, paths = [] }: RequestedCredential, claims: unknown) {
  const named = paths.map((path) => ({ name: path.join(' › '), isThere: selects(claims, path) }));
  return {
    id,
    shown: named.filter(({ isThere }) => isThere).map(({ name }) => name),
    missing: named.filter(({ isThere }) => !isThere).map(({ name }) => name),
  };
}

/** @param path `*` is any entry of an array. */
function selects(value: unknown, path: readonly string[]): boolean {
  const [step, ...rest] = path;
  if (step === undefined) return value !== undefined;
  if (step === '*') return Array.isArray(value) && value.some((entry) => selects(entry, rest));
  return selects(at(value, step), rest);
}

const MAX_DEPTH = 20;

/** Puts disclosed values where their digests are (SD-JWT, RFC 9901 section 7.1). */
function reveal(value: unknown, disclosures: ReadonlyMap<string, unknown>, depth = 0): unknown {
  if (depth > MAX_DEPTH) throw new Error('It is nested too deeply.');
  if (Array.isArray(value)) {
    return value.flatMap((entry) => {
      const digest = at(entry, '...');
      if (typeof digest !== 'string') return [reveal(entry, disclosures, depth + 1)];
      const found = disclosures.get(digest);
      return Array.isArray(found) ? [reveal(found[1], disclosures, depth + 1)] : [];
    });
  }
  if (!isRecord(value)) return value;
  const digests = Array.isArray(value['_sd']) ? value['_sd'] : [];
  const hidden = digests.flatMap((digest) => {
    const found = disclosures.get(String(digest));
    return Array.isArray(found) && found.length === 3 ? [[String(found[1]), found[2]] as const] : [];
  });
  return Object.fromEntries(
    [...Object.entries(value).filter(([name]) => name !== '_sd'), ...hidden].map(([name, inner]) => [
      name,
      reveal(inner, disclosures, depth + 1),
    ]),
  );
}

function jsonOf(encoded: string): unknown {
  try {
    return jsonOfBase64(encoded);
  } catch {
    throw new Error('This cannot be decoded: it is no SD-JWT VC, or not the whole of one.');
  }
}

async function digestOf(disclosure: string): Promise<string> {
  if (crypto.subtle === undefined) throw new Error('Browsers compute digests on https and localhost only; open the console there.');
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(disclosure));
  const binary = String.fromCharCode(...new Uint8Array(digest));
  return btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');
}
