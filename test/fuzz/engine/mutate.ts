import { seededRandom } from '../../support/mutations.ts';

/** Choices that are the same for the same seed. */
export class Random {
  readonly #next: () => number;

  constructor(seed: number) {
    this.#next = seededRandom(seed);
  }

  /** A whole number from 0 to below `limit`. */
  below(limit: number): number {
    return Math.floor(this.#next() * limit);
  }

  /** True once in `times`. */
  once(times: number): boolean {
    return this.below(times) === 0;
  }

  /** @param list not empty. */
  pick<T>(list: readonly T[]): T {
    const chosen = list[this.below(list.length)];
    if (chosen === undefined) throw new Error('nothing to choose from');
    return chosen;
  }

  /** A place in `length` and how much follows it, mostly little. */
  span(length: number): { readonly from: number; readonly until: number } {
    const from = this.below(length + 1);
    const size = this.once(8) ? this.below(length + 1) : this.below(9);
    return { from, until: Math.min(length, from + size) };
  }
}

/** What a mutation may draw on. */
export type Material = {
  readonly random: Random;
  /** Pieces that the format is made of. */
  readonly dictionary: readonly Buffer[];
  /** Another input, to be spliced in. */
  readonly other: () => Buffer;
};

const EDGES = [0x00, 0x01, 0x1f, 0x20, 0x22, 0x7f, 0x80, 0x81, 0xbf, 0xc0, 0xfe, 0xff];

function spliced(bytes: Buffer, from: number, until: number, middle: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, from), middle, bytes.subarray(until)]);
}

/** One change of bytes that knows nothing of their format. */
export function mutateBytes(bytes: Buffer, { random, dictionary, other }: Material): Buffer {
  const { from, until } = random.span(bytes.length);
  switch (random.below(9)) {
    case 0:
      return withByte(bytes, random, (byte) => byte ^ (1 << random.below(8)));
    case 1:
      return withByte(bytes, random, () => random.pick(EDGES));
    case 2:
      return withByte(bytes, random, (byte) => byte + random.below(9) - 4);
    case 3:
      return spliced(bytes, from, until, Buffer.alloc(0));
    case 4:
      return spliced(bytes, from, from, Buffer.from(Array.from({ length: 1 + random.below(4) }, () => random.below(256))));
    case 5: {
      // Most limits count repetitions.
      const times = random.once(40) ? 1 + random.below(2_000) : 1 + random.below(3);
      return spliced(bytes, from, from, Buffer.concat(Array(times).fill(bytes.subarray(from, until))));
    }
    case 6: {
      const source = other();
      const piece = random.span(source.length);
      return spliced(bytes, from, until, source.subarray(piece.from, piece.until));
    }
    case 7:
      if (dictionary.length === 0) return withByte(bytes, random, () => random.below(256));
      return spliced(bytes, from, random.once(2) ? from : until, random.pick(dictionary));
    default:
      return bytes.subarray(0, random.below(bytes.length + 1));
  }
}

function withByte(bytes: Buffer, random: Random, change: (byte: number) => number): Buffer {
  if (bytes.length === 0) return Buffer.of(random.below(256));
  const copy = Buffer.from(bytes);
  const at = random.below(copy.length);
  copy[at] = change(copy[at] ?? 0) & 0xff;
  return copy;
}

/**
 * CBOR as it is written: heads and what follows them. It is read and written here without the service's own reader, so
 * that whatever that one refuses can be made, too.
 */
export type CborNode = {
  major: number;
  argument: bigint;
  /** Bytes that the argument is written in: 0 for the short form. */
  width: 0 | 1 | 2 | 4 | 8;
  content: Buffer | undefined;
  /** What a byte string holds when it is CBOR itself. */
  inner: CborNode | undefined;
  children: CborNode[];
};

const WIDTHS = [1, 2, 4, 8] as const;

/** @returns undefined for what is no item, or is of indefinite length. */
export function readTree(bytes: Buffer): CborNode | undefined {
  const cursor = { at: 0, left: 2_000 };
  const node = readNode(bytes, cursor, 0);
  return node !== undefined && cursor.at === bytes.length ? node : undefined;
}

function readNode(bytes: Buffer, cursor: { at: number; left: number }, depth: number): CborNode | undefined {
  const head = bytes[cursor.at++];
  if (head === undefined || depth > 40 || cursor.left-- === 0) return undefined;
  const info = head & 31;
  const width = info < 24 ? 0 : WIDTHS[info - 24];
  if (width === undefined || cursor.at + width > bytes.length) return undefined;
  const argument = width === 0 ? BigInt(info) : BigInt(`0x${bytes.toString('hex', cursor.at, cursor.at + width)}`);
  cursor.at += width;
  const major = head >> 5;
  const node: CborNode = { major, argument, width, content: undefined, inner: undefined, children: [] };
  if (major === 2 || major === 3) {
    const end = cursor.at + Number(argument);
    if (end > bytes.length) return undefined;
    node.content = bytes.subarray(cursor.at, end);
    if (major === 2 && node.content.length > 1) node.inner = readTree(node.content);
    cursor.at = end;
    return node;
  }
  const counts = [1n, argument, argument * 2n];
  const count = major === 6 ? counts[0] : major === 4 ? counts[1] : major === 5 ? counts[2] : 0n;
  for (let index = 0n; index < (count ?? 0n); index++) {
    const child = readNode(bytes, cursor, depth + 1);
    if (child === undefined) return undefined;
    node.children.push(child);
  }
  return node;
}

export function writeTree(node: CborNode): Buffer {
  const content = node.inner === undefined ? node.content : writeTree(node.inner);
  const { major, children } = node;
  const argument =
    content !== undefined
      ? BigInt(content.length)
      : major === 4 || major === 5
        ? BigInt(Math.floor(children.length / (major === 5 ? 2 : 1)))
        : node.argument;
  const even = major === 5 && children.length % 2 === 1 ? children.slice(1) : children;
  return Buffer.concat([head(major, argument, node.width), content ?? Buffer.alloc(0), ...even.map(writeTree)]);
}

function head(major: number, argument: bigint, wanted: CborNode['width']): Buffer {
  if (wanted === 0 && argument < 24n) return Buffer.of((major << 5) | Number(argument));
  const width = WIDTHS.find((one) => one >= wanted && argument < 1n << BigInt(8 * one)) ?? 8;
  const hex = BigInt.asUintN(64, argument)
    .toString(16)
    .padStart(2 * width, '0');
  return Buffer.concat([Buffer.of((major << 5) | (24 + WIDTHS.indexOf(width))), Buffer.from(hex, 'hex')]);
}

const ARGUMENTS = [0n, 1n, 23n, 24n, 255n, 256n, 65535n, 65536n, 2n ** 31n, 2n ** 32n, 2n ** 53n, 2n ** 64n - 1n];

/** One change of one item; lengths and counts follow it. @param leaf changes the content of a text or byte string. */
export function mutateTree(root: CborNode, random: Random, leaf: (content: Buffer) => Buffer): Buffer {
  const nodes: CborNode[] = [];
  const visit = (node: CborNode) => {
    nodes.push(node);
    if (node.inner !== undefined) visit(node.inner);
    node.children.forEach(visit);
  };
  visit(root);
  const node = random.pick(nodes);
  switch (random.below(9)) {
    case 0:
      node.argument = random.pick(ARGUMENTS);
      break;
    case 1:
      node.width = random.pick([0, 1, 2, 4, 8]);
      break;
    case 2:
      node.major = random.below(8);
      break;
    case 3:
      Object.assign(node, structuredCopy(random.pick(nodes)));
      break;
    case 4:
      if (node.children.length > 0) node.children.splice(random.below(node.children.length), node.major === 5 ? 2 : 1);
      break;
    case 5: {
      if (node.children.length === 0) break;
      const at = random.below(node.children.length) & (node.major === 5 ? ~1 : ~0);
      node.children.splice(at, 0, ...node.children.slice(at, at + (node.major === 5 ? 2 : 1)).map(structuredCopy));
      break;
    }
    case 6: {
      const inside = structuredCopy(node);
      const tagged = { major: 6, argument: BigInt(random.pick([0, 1, 2, 3, 18, 24, 1004, 55799])), width: 0 as const };
      Object.assign(node, tagged, { content: undefined, inner: undefined, children: [inside] });
      break;
    }
    default: {
      const strings = nodes.filter(({ content, inner }) => content !== undefined && inner === undefined);
      if (strings.length === 0) break;
      const string = random.pick(strings);
      string.content = leaf(string.content ?? Buffer.alloc(0));
    }
  }
  return writeTree(root);
}

function structuredCopy(node: CborNode): CborNode {
  const { inner, children } = node;
  return { ...node, inner: inner && structuredCopy(inner), children: children.map(structuredCopy) };
}

/** DER as it is written, read without the service's own reader. */
export type DerNode = { tag: number; content: Buffer; children: DerNode[] | undefined };

/** @returns undefined for what is no sequence of elements. */
export function readDerTree(bytes: Buffer, depth = 0): DerNode[] | undefined {
  const nodes: DerNode[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes[at];
    const first = bytes[at + 1];
    if (tag === undefined || first === undefined || first > 0x83 || first === 0x80 || depth > 30) return undefined;
    const octets = first > 0x80 ? first & 0x7f : 0;
    if (at + 2 + octets > bytes.length) return undefined;
    const length = octets === 0 ? first : bytes.readUIntBE(at + 2, octets);
    const start = at + 2 + octets;
    if (start + length > bytes.length) return undefined;
    const content = bytes.subarray(start, start + length);
    // Keys and extensions stand within strings of bits and octets.
    const isConstructed = (tag & 0x20) !== 0 || (tag === 4 && content[0] === 0x30);
    nodes.push({ tag, content, children: isConstructed ? readDerTree(content, depth + 1) : undefined });
    at = start + length;
  }
  return nodes;
}

export function writeDerTree(nodes: readonly DerNode[]): Buffer {
  return Buffer.concat(
    nodes.map(({ tag, content, children }) => {
      const inside = children === undefined ? content : writeDerTree(children);
      return Buffer.concat([Buffer.of(tag), lengthOf(inside.length), inside]);
    }),
  );
}

function lengthOf(length: number): Buffer {
  if (length < 0x80) return Buffer.of(length);
  const bytes = Buffer.from(length.toString(16).padStart(length > 0xffff ? 6 : length > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.of(0x80 + bytes.length), bytes]);
}

const TAGS = [1, 2, 3, 4, 5, 6, 0x0c, 0x13, 0x16, 0x17, 0x18, 0x1e, 0x30, 0x31, 0x80, 0xa0, 0xa3];

/** One change of one element; lengths follow it. */
export function mutateDerTree(root: DerNode[], random: Random, leaf: (content: Buffer) => Buffer): Buffer {
  const all: DerNode[] = [];
  const visit = (node: DerNode) => {
    all.push(node);
    node.children?.forEach(visit);
  };
  root.forEach(visit);
  const node = random.pick(all);
  const { children } = node;
  switch (random.below(7)) {
    case 0:
      node.tag = random.pick(TAGS);
      break;
    case 1:
      Object.assign(node, structuredClone(random.pick(all)));
      break;
    case 2:
      if (children !== undefined && children.length > 0) children.splice(random.below(children.length), 1);
      break;
    case 3:
      if (children !== undefined && children.length > 0) children.push(structuredClone(random.pick(children)));
      break;
    case 4:
      node.children = undefined;
      node.content = Buffer.alloc(random.below(3));
      break;
    default: {
      const leaves = all.filter((one) => one.children === undefined);
      if (leaves.length === 0) break;
      const chosen = random.pick(leaves);
      // A copy of the tree has plain bytes.
      chosen.content = leaf(Buffer.from(chosen.content));
    }
  }
  return writeDerTree(root);
}

/** Values that readers tend to forget. */
const ODD: readonly unknown[] = [
  ...[null, true, false, 0, -1, 1, 0.5, 1e21, -0, 2 ** 31, 2 ** 32, 2 ** 53, 2 ** 53 - 1, 1e308, 8.64e15],
  ...['', ' ', 'x', '\0', '\ud800', '__proto__', 'constructor', '...', '_sd', '_sd_alg', '%', '\u{1f600}'],
  ...['1', '-1', '1e9', '2020-02-30', '99999999999999999999', 'https://a.example', 'A'.repeat(300)],
  ...[[], {}, [[]], [{}], [null], { a: 1 }, [0, 0], ['a', 'a']],
];

type Place = { readonly holder: Record<string, unknown> | unknown[]; readonly key: string | number };

/** One change of a value inside a document. @param leaf changes a text, which may be an encoding of something. */
export function mutateJson(document: unknown, random: Random, words: readonly string[], leaf: (text: string) => string): unknown {
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
      if (Array.isArray(value)) value.push(structuredClone(value.length > 0 ? random.pick(value) : random.pick(ODD)));
      else if (typeof value === 'object' && value !== null) {
        Object.assign(value, { [words.length === 0 ? 'a' : random.pick(words)]: structuredClone(random.pick(ODD)) });
      } else at[key] = random.pick(ODD);
      break;
    case 6:
      if (words.length > 0) at[key] = random.pick(words);
      break;
    case 7:
      if (typeof value === 'number') at[key] = random.pick([value + 1, value - 1, -value, value * 2, value / 3, 1e300]);
      else if (Array.isArray(value) && value.length > 0) value.push(...Array(random.below(random.once(10) ? 4_000 : 120)).fill(value[0]));
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
  if (random.once(12)) return Buffer.from(replaced(text, piece, encoded.slice(0, -1) + random.pick([...LAST])));
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
