import { type Cbor, decodeCbor, Tagged } from '../../../../wallet/src/core/formats/cbor.ts';
import { hexOf } from './bytes.ts';

/** A data item as it is written in diagnostic notation (RFC 8949 section 8). */
export type Item =
  | Plain
  | { readonly kind: 'array'; readonly items: readonly Item[] }
  | { readonly kind: 'map'; readonly entries: readonly (readonly [Item, Item])[] }
  | { readonly kind: 'tag'; readonly tag: number; readonly item: Item }
  | { readonly kind: 'embedded'; readonly item: Item };

type Plain = { readonly kind: 'plain'; readonly text: string; readonly string?: string };

const MAX_DEPTH = 40;
const MAX_ITEMS = 50_000;

/** @throws Error where the bytes are not one item of definite lengths, or are deeper or more than this shows. */
export function readCbor(bytes: Uint8Array): Item {
  let count = 0;
  const itemOf = (value: Cbor, depth: number): Item => {
    if (depth > MAX_DEPTH || ++count > MAX_ITEMS) throw new Error('deeper or more than is shown here');
    if (typeof value === 'string') return { ...plain(JSON.stringify(value)), string: value };
    if (value instanceof Uint8Array) return plain(`h'${hexOf(value)}'`);
    if (value instanceof Map) {
      const entries = [...value].map(([key, entry]) => [itemOf(key, depth + 1), itemOf(entry, depth + 1)] as const);
      return { kind: 'map', entries };
    }
    if (value instanceof Tagged) {
      const { tag, value: content } = value;
      // Tag 24 is CBOR within a byte string, which is what one wants to see of an mdoc.
      const isEmbedded = tag === 24 && content instanceof Uint8Array;
      const item: Item = isEmbedded
        ? { kind: 'embedded', item: itemOf(decodeCbor(content), depth + 1) }
        : itemOf(content as Cbor, depth + 1);
      return { kind: 'tag', tag, item };
    }
    if (Array.isArray(value)) return { kind: 'array', items: value.map((element: Cbor) => itemOf(element, depth + 1)) };
    return plain(String(value));
  };
  return itemOf(decodeCbor(bytes), 0);
}

function plain(text: string): Plain {
  return { kind: 'plain', text };
}

export function diagnose(item: Item, indent = ''): string {
  if (item.kind === 'plain') return item.text;
  if (item.kind === 'tag') return `${item.tag}(${diagnose(item.item, indent)})`;
  if (item.kind === 'embedded') return `<<${diagnose(item.item, indent)}>>`;
  const inner = `${indent}  `;
  const lines =
    item.kind === 'array'
      ? item.items.map((element) => diagnose(element, inner))
      : item.entries.map(([key, value]) => `${diagnose(key, inner)}: ${diagnose(value, inner)}`);
  const [open, close] = item.kind === 'array' ? '[]' : '{}';
  if (lines.length === 0) return `${open}${close}`;
  return `${open}\n${lines.map((line) => inner + line).join(',\n')}\n${indent}${close}`;
}

/** Text keys of a map. */
export function keysOf(item: Item): readonly string[] {
  if (item.kind !== 'map') return [];
  return item.entries.flatMap(([key]) => (key.kind === 'plain' && key.string !== undefined ? [key.string] : []));
}
