import { type Material, mutateBytes } from './bytes.ts';
import { mutateTree, readTree } from './cbor-trees.ts';
import { mutateDerTree, readDerTree } from './der-trees.ts';
import { mutateJson } from './json-trees.ts';

/** How far encodings are followed into each other: a certificate in JSON in a JWS in JSON. */
const MAX_LAYERS = 5;
/** Pieces that may be an encoding of something. */
const PIECES = /[A-Za-z0-9_+/=-]{8,}/g;
const LAST = 'ABCEQRSTghijwxyz0189-_=';
const PRINTABLE = /^[\t\n\r\x20-\x7e\u0080-\u{10ffff}]+$/u;

/**
 * One change of an input, at any of its layers: what is base64, JSON, CBOR or DER is decoded, changed inside, and
 * encoded again, so that the change arrives where somebody reads it.
 */
export function mutate(input: Buffer, material: Material, layer = 0): Buffer {
  const { random } = material;
  // What breaks the outermost form is refused at once, and so teaches least.
  if (layer > MAX_LAYERS || random.once(layer === 0 ? 5 : 8)) return mutateBytes(input, material);
  const deeper = (inner: Buffer) => mutate(inner, material, layer + 1);
  const text = asText(input);
  if (text !== undefined) return mutateText(text, material, deeper) ?? mutateBytes(input, material);
  if (input[0] === 0x30) {
    const der = readDerTree(input);
    if (der !== undefined && der.length > 0) return mutateDerTree(der, random, deeper);
  }
  const cbor = readTree(input);
  return cbor === undefined ? mutateBytes(input, material) : mutateTree(cbor, random, deeper);
}

function asText(input: Buffer): string | undefined {
  const text = input.toString('utf8');
  return PRINTABLE.test(text) && Buffer.byteLength(text) === input.length ? text : undefined;
}

function mutateText(text: string, material: Material, deeper: (inner: Buffer) => Buffer): Buffer | undefined {
  const { random, dictionary } = material;
  if (/^\s*[[{"]/.test(text)) {
    const document = parsed(text);
    if (document !== undefined) {
      const words = dictionary.map((word) => word.toString('utf8'));
      const leaf = (inner: string) => deeper(Buffer.from(inner)).toString('utf8');
      const made = JSON.stringify(mutateJson(document, random, words, leaf));
      return Buffer.from(made ?? 'null');
    }
  }
  const pieces = [...text.matchAll(PIECES)];
  if (pieces.length === 0) return undefined;
  const piece = random.pick(pieces);
  const [encoded] = piece;
  const form = /[+/=]/.test(encoded) ? 'base64' : 'base64url';
  // One value has one spelling: the bits behind the last byte count.
  if (random.once(12))
    return Buffer.from(replaced(text, piece, encoded.slice(0, -1) + random.pick([...LAST])));
  const inner = Buffer.from(encoded, form);
  const changed = deeper(inner);
  return Buffer.from(replaced(text, piece, changed.toString(form)));
}

function replaced(text: string, { 0: piece, index }: RegExpMatchArray, by: string): string {
  return text.slice(0, index) + by + text.slice((index ?? 0) + piece.length);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
