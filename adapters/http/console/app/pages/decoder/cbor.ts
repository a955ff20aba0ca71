import { hexOf, textOf } from './bytes.ts';

/** A data item as it is written in diagnostic notation (RFC 8949 section 8). */
export type Item =
  | { readonly kind: 'plain'; readonly text: string; readonly string?: string }
  | { readonly kind: 'array'; readonly items: readonly Item[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [Item, Item])[] }
  | { readonly kind: 'tag'; readonly tag: bigint; readonly item: Item }
  | { readonly kind: 'embedded'; readonly item: Item };

const MAX_DEPTH = 40;
const MAX_ITEMS = 50_000;
const SIMPLE: Readonly<Record<number, string>> = { 20: 'false', 21: 'true', 22: 'null', 23: 'undefined' };

/** @throws Error where the bytes are not one item, or are deeper or more than this shows. */
export function readCbor(bytes: Uint8Array): Item {
  const reader = new Reader(bytes);
  const item = reader.item(0);
  if (reader.at !== bytes.length) throw new Error('more follows behind the first item');
  return item;
}

class Reader {
  at = 0;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  #items = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  }

  item(depth: number): Item {
    if (depth > MAX_DEPTH || ++this.#items > MAX_ITEMS) throw new Error('deeper or more than is shown here');
    const first = this.#take(1)[0] ?? 0;
    const [major, short] = [first >> 5, first & 31];
    if (major === 7) return this.#simple(short);
    const argument = this.#argument(short);
    if (major === 0) return plain(String(argument));
    if (major === 1) return plain(String(-1n - argument));
    if (major === 2) return plain(`h'${hexOf(this.#take(Number(argument)))}'`);
    if (major === 3) {
      const string = textOf(this.#take(Number(argument)));
      return { kind: 'plain', text: JSON.stringify(string), string };
    }
    if (major === 6) return this.#tagged(argument, depth);
    // Each item has at least one byte.
    if (argument > BigInt(this.#bytes.length)) throw new Error('it ends too early');
    const count = Number(argument);
    if (major === 4)
      return { kind: 'array', items: Array.from({ length: count }, () => this.item(depth + 1)) };
    const entries = Array.from(
      { length: count },
      () => [this.item(depth + 1), this.item(depth + 1)] as const,
    );
    return { kind: 'map', entries };
  }

  /** Tag 24 is CBOR within a byte string, which is what one wants to see of an mdoc. */
  #tagged(tag: bigint, depth: number): Item {
    if (tag !== 24n) return { kind: 'tag', tag, item: this.item(depth + 1) };
    const before = this.at;
    const first = this.#take(1)[0] ?? 0;
    if (first >> 5 !== 2) {
      this.at = before;
      return { kind: 'tag', tag, item: this.item(depth + 1) };
    }
    const end = Number(this.#argument(first & 31)) + this.at;
    const item = this.item(depth + 1);
    if (this.at !== end) throw new Error('an embedded item is not as long as it says');
    return { kind: 'tag', tag, item: { kind: 'embedded', item } };
  }

  #simple(short: number): Item {
    if (short === 25) return plain(String(half(this.#number(2, 'getUint16'))));
    if (short === 26) return plain(String(this.#number(4, 'getFloat32')));
    if (short === 27) return plain(String(this.#number(8, 'getFloat64')));
    if (short > 24) throw new Error('items of no stated length are not shown here');
    const value = short === 24 ? (this.#take(1)[0] ?? 0) : short;
    return plain(SIMPLE[value] ?? `simple(${value})`);
  }

  #argument(short: number): bigint {
    if (short < 24) return BigInt(short);
    const length = [1, 2, 4, 8][short - 24];
    if (length === undefined) throw new Error('items of no stated length are not shown here');
    return BigInt(`0x${hexOf(this.#take(length))}`);
  }

  #number(length: number, read: 'getUint16' | 'getFloat32' | 'getFloat64'): number {
    this.#take(length);
    return this.#view[read](this.at - length);
  }

  #take(length: number): Uint8Array {
    if (this.at + length > this.#bytes.length) throw new Error('it ends too early');
    this.at += length;
    return this.#bytes.subarray(this.at - length, this.at);
  }
}

function plain(text: string): Item {
  return { kind: 'plain', text };
}

function half(bits: number): number {
  const [exponent, fraction] = [(bits >> 10) & 31, bits & 1023];
  const sign = bits & 0x8000 ? -1 : 1;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
}

export function diagnose(item: Item, indent = ''): string {
  if (item.kind === 'plain') return item.text;
  if (item.kind === 'tag') return `${item.tag}(${diagnose(item.item, indent)})`;
  if (item.kind === 'embedded') return `<<${diagnose(item.item, indent)}>>`;
  const inner = `${indent}  `;
  const lines =
    item.kind === 'array'
      ? item.items.map((each) => diagnose(each, inner))
      : item.entries.map(([key, value]) => `${diagnose(key, inner)}: ${diagnose(value, inner)}`);
  const [open, close] = item.kind === 'array' ? '[]' : '{}';
  if (lines.length === 0) return `${open}${close}`;
  return `${open}\n${lines.map((line) => inner + line).join(',\n')}\n${indent}${close}`;
}

/** Text keys of a map. */
export function keysOf(item: Item): readonly string[] {
  if (item.kind !== 'map') return [];
  return item.entries.flatMap(([key]) =>
    key.kind === 'plain' && key.string !== undefined ? [key.string] : [],
  );
}
