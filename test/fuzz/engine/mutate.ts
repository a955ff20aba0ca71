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
  oneIn(repetitions: number): boolean {
    return this.below(repetitions) === 0;
  }

  /** @param list not empty. */
  pick<T>(list: readonly T[]): T {
    const chosen = list[this.below(list.length)];
    if (chosen === undefined) throw new Error('no values to choose from');
    return chosen;
  }

  /** A place in `length` and how much follows it, mostly little. */
  span(length: number): { readonly from: number; readonly until: number } {
    const start = this.below(length + 1);
    const size = this.oneIn(8) ? this.below(length + 1) : this.below(9);
    return { from: start, until: Math.min(length, start + size) };
  }
}

/** Material for mutations. */
export type Material = {
  readonly random: Random;
  /** Pieces that the format is made of. */
  readonly dictionary: readonly Buffer[];
  /** Another input, to be spliced in. */
  readonly other: () => Buffer;
};

const EDGES = [0x00, 0x01, 0x1f, 0x20, 0x22, 0x7f, 0x80, 0x81, 0xbf, 0xc0, 0xfe, 0xff];

function spliceBytes(bytes: Buffer, start: number, end: number, middle: Buffer): Buffer {
  return Buffer.concat([bytes.subarray(0, start), middle, bytes.subarray(end)]);
}

/** One change of bytes that knows nothing of their format. */
export function mutateBytes(bytes: Buffer, { random, dictionary, other: pickOther }: Material): Buffer {
  const { from: start, until: end } = random.span(bytes.length);
  switch (random.below(9)) {
    case 0:
      return withByte(bytes, random, (byte) => byte ^ (1 << random.below(8)));
    case 1:
      return withByte(bytes, random, () => random.pick(EDGES));
    case 2:
      return withByte(bytes, random, (byte) => byte + random.below(9) - 4);
    case 3:
      return spliceBytes(bytes, start, end, Buffer.alloc(0));
    case 4:
      return spliceBytes(bytes, start, start, Buffer.from(Array.from({ length: 1 + random.below(4) }, () => random.below(256))));
    case 5: {
      // Most limits count repetitions.
      const repetitions = random.oneIn(40) ? 1 + random.below(2_000) : 1 + random.below(3);
      return spliceBytes(bytes, start, start, Buffer.concat(Array(repetitions).fill(bytes.subarray(start, end))));
    }
    case 6: {
      const source = pickOther();
      const slice = random.span(source.length);
      return spliceBytes(bytes, start, end, source.subarray(slice.from, slice.until));
    }
    case 7:
      if (dictionary.length === 0) return withByte(bytes, random, () => random.below(256));
      return spliceBytes(bytes, start, random.oneIn(2) ? start : end, random.pick(dictionary));
    default:
      return bytes.subarray(0, random.below(bytes.length + 1));
  }
}

function withByte(bytes: Buffer, random: Random, change: (byte: number) => number): Buffer {
  if (bytes.length === 0) return Buffer.of(random.below(256));
  const copy = Buffer.from(bytes);
  const position = random.below(copy.length);
  copy[position] = change(copy[position] ?? 0) & 0xff;
  return copy;
}

/**
 * Encoded CBOR: heads and contents. It is parsed independently of the service, so that mutations can produce invalid CBOR,
 * too.
 */
export type CborNode = {
  major: number;
  argument: bigint;
  /** Bytes that the argument is written in: 0 for the short form. */
  width: 0 | 1 | 2 | 4 | 8;
  content: Buffer | undefined;
  /** The content of a byte string that is CBOR itself. */
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

function head(major: number, argument: bigint, minWidth: CborNode['width']): Buffer {
  if (minWidth === 0 && argument < 24n) return Buffer.of((major << 5) | Number(argument));
  const width = WIDTHS.find((candidate) => candidate >= minWidth && argument < 1n << BigInt(8 * candidate)) ?? 8;
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
      const position = random.below(node.children.length) & (node.major === 5 ? ~1 : ~0);
      node.children.splice(position, 0, ...node.children.slice(position, position + (node.major === 5 ? 2 : 1)).map(structuredCopy));
      break;
    }
    case 6: {
      const innerNode = structuredCopy(node);
      const tagged = { major: 6, argument: BigInt(random.pick([0, 1, 2, 3, 18, 24, 1004, 55799])), width: 0 as const };
      Object.assign(node, tagged, { content: undefined, inner: undefined, children: [innerNode] });
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
  for (let position = 0; position < bytes.length; ) {
    const tag = bytes[position];
    const firstByte = bytes[position + 1];
    if (tag === undefined || firstByte === undefined || firstByte > 0x83 || firstByte === 0x80 || depth > 30) return undefined;
    const octets = firstByte > 0x80 ? firstByte & 0x7f : 0;
    if (position + 2 + octets > bytes.length) return undefined;
    const length = octets === 0 ? firstByte : bytes.readUIntBE(position + 2, octets);
    const start = position + 2 + octets;
    if (start + length > bytes.length) return undefined;
    const content = bytes.subarray(start, start + length);
    // Keys and extensions stand within strings of bits and octets.
    const isConstructed = (tag & 0x20) !== 0 || (tag === 4 && content[0] === 0x30);
    nodes.push({ tag, content, children: isConstructed ? readDerTree(content, depth + 1) : undefined });
    position = start + length;
  }
  return nodes;
}

export function writeDerTree(nodes: readonly DerNode[]): Buffer {
  return Buffer.concat(
    nodes.map(({ tag, content, children }) => {
      const innerNode = children === undefined ? content : writeDerTree(children);
      return Buffer.concat([Buffer.of(tag), encodeLength(innerNode.length), innerNode]);
    }),
  );
}

function encodeLength(length: number): Buffer {
  if (length < 0x80) return Buffer.of(length);
  const bytes = Buffer.from(length.toString(16).padStart(length > 0xffff ? 6 : length > 0xff ? 4 : 2, '0'), 'hex');
  return Buffer.concat([Buffer.of(0x80 + bytes.length), bytes]);
}

const TAGS = [1, 2, 3, 4, 5, 6, 0x0c, 0x13, 0x16, 0x17, 0x18, 0x1e, 0x30, 0x31, 0x80, 0xa0, 0xa3];

/** One change of one element; lengths follow it. */
export function mutateDerTree(root: DerNode[], random: Random, leaf: (content: Buffer) => Buffer): Buffer {
  const allNodes: DerNode[] = [];
  const visit = (node: DerNode) => {
    allNodes.push(node);
    node.children?.forEach(visit);
  };
  root.forEach(visit);
  const node = random.pick(allNodes);
  const { children } = node;
  switch (random.below(7)) {
    case 0:
      node.tag = random.pick(TAGS);
      break;
    case 1:
      Object.assign(node, structuredClone(random.pick(allNodes)));
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
      const leaves = allNodes.filter((candidate) => candidate.children === undefined);
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

type JsonLocation = { readonly holder: Record<string, unknown> | unknown[]; readonly key: string | number };

/** One change of a value inside a document. @param leaf changes a text, which may be an encoding of something. */
export function mutateJson(document: unknown, random: Random, dictionaryTexts: readonly string[], leaf: (text: string) => string): unknown {
  const root = [structuredClone(document)];
  const locations: JsonLocation[] = [];
  collect(root, locations, 0);
  const { holder, key } = random.pick(locations);
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
      const source = random.pick(locations);
      at[key] = structuredClone((source.holder as Record<string | number, unknown>)[source.key]);
      break;
    }
    case 4:
      at[key] = random.oneIn(2) ? [value] : { [dictionaryTexts.length === 0 ? 'a' : random.pick(dictionaryTexts)]: value };
      break;
    case 5:
      if (Array.isArray(value)) value.push(structuredClone(value.length > 0 ? random.pick(value) : random.pick(ODD)));
      else if (typeof value === 'object' && value !== null) {
        Object.assign(value, { [dictionaryTexts.length === 0 ? 'a' : random.pick(dictionaryTexts)]: structuredClone(random.pick(ODD)) });
      } else at[key] = random.pick(ODD);
      break;
    case 6:
      if (dictionaryTexts.length > 0) at[key] = random.pick(dictionaryTexts);
      break;
    case 7:
      if (typeof value === 'number') at[key] = random.pick([value + 1, value - 1, -value, value * 2, value / 3, 1e300]);
      else if (Array.isArray(value) && value.length > 0) value.push(...Array(random.below(random.oneIn(10) ? 4_000 : 120)).fill(value[0]));
      break;
    default: {
      const texts = locations.filter((location) => typeof readLocation(location) === 'string');
      if (texts.length === 0) break;
      const text = random.pick(texts);
      (text.holder as Record<string | number, unknown>)[text.key] = leaf(String(readLocation(text)));
    }
  }
  return root[0];
}

function readLocation({ holder, key }: JsonLocation): unknown {
  return (holder as Record<string | number, unknown>)[key];
}

function collect(holder: JsonLocation['holder'], locations: JsonLocation[], depth: number): void {
  if (depth > 40) return;
  for (const key of Object.keys(holder)) {
    if (key === '__proto__') continue;
    const location = { holder, key: Array.isArray(holder) ? Number(key) : key };
    locations.push(location);
    const value = readLocation(location);
    if (typeof value === 'object' && value !== null) collect(value as JsonLocation['holder'], locations, depth + 1);
  }
}

/** Maximum nesting of encodings: a certificate in JSON in a JWS in JSON. */
const MAX_LAYERS = 5;
/** Pieces that may be an encoding of something. */
const PIECES = /[A-Za-z0-9_+/=-]{8,}/g;
const LAST = 'ABCEQRSTghijwxyz0189-_=';
const PRINTABLE = /^[\t\n\r\x20-\x7e\u0080-\u{10ffff}]+$/u;

/**
 * Mutates an input at any of its layers: base64, JSON, CBOR and DER are decoded, changed inside, and encoded again, so that
 * the change reaches the inner parser.
 */
export function mutate(input: Buffer, material: Material, layer = 0): Buffer {
  const { random } = material;
  // Mutations of the outermost encoding are rejected first, and so reveal least.
  if (layer > MAX_LAYERS || random.oneIn(layer === 0 ? 5 : 8)) return mutateBytes(input, material);
  const deeper = (inner: Buffer) => mutate(inner, material, layer + 1);
  const text = toText(input);
  if (text !== undefined) return mutateText(text, material, deeper) ?? mutateBytes(input, material);
  if (input[0] === 0x30) {
    const der = readDerTree(input);
    if (der !== undefined && der.length > 0) return mutateDerTree(der, random, deeper);
  }
  const cbor = readTree(input);
  return cbor === undefined ? mutateBytes(input, material) : mutateTree(cbor, random, deeper);
}

function toText(input: Buffer): string | undefined {
  const text = input.toString('utf8');
  return PRINTABLE.test(text) && Buffer.byteLength(text) === input.length ? text : undefined;
}

function mutateText(text: string, material: Material, deeper: (inner: Buffer) => Buffer): Buffer | undefined {
  const { random, dictionary } = material;
  if (/^\s*[[{"]/.test(text)) {
    const document = parsed(text);
    if (document !== undefined) {
      const dictionaryTexts = dictionary.map((entry) => entry.toString('utf8'));
      const leaf = (inner: string) => deeper(Buffer.from(inner)).toString('utf8');
      const mutatedText = JSON.stringify(mutateJson(document, random, dictionaryTexts, leaf));
      return Buffer.from(mutatedText ?? 'null');
    }
  }
  const tokens = [...text.matchAll(PIECES)];
  if (tokens.length === 0) return undefined;
  const slice = random.pick(tokens);
  const [encoded] = slice;
  const form = /[+/=]/.test(encoded) ? 'base64' : 'base64url';
  // One value has one spelling: the bits behind the last byte count.
  if (random.oneIn(12)) return Buffer.from(replaceToken(text, slice, encoded.slice(0, -1) + random.pick([...LAST])));
  const inner = Buffer.from(encoded, form);
  const mutatedInner = deeper(inner);
  return Buffer.from(replaceToken(text, slice, mutatedInner.toString(form)));
}

function replaceToken(text: string, { 0: slice, index }: RegExpMatchArray, replacement: string): string {
  return text.slice(0, index) + replacement + text.slice((index ?? 0) + slice.length);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
