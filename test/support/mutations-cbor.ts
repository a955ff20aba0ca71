import { encodeCbor } from '../../domain/formats/cbor/encode.ts';
import { type Cbor, EncodedCbor, isArray, isBytes, isMap, Tagged } from '../../domain/formats/cbor/values.ts';

/** One item written in another way. */
export type Rewriting = { readonly kind: string; readonly what: string; readonly bytes: Buffer };

type Way = readonly [string, Buffer];
/** Writes a member that is somewhere in an item, or leaves it to the rule. */
type Hook = (path: string, value: Cbor) => Buffer | undefined;

const BREAK = Buffer.of(0xff);

/** A head of the length that `bytes` says, shortest unless told (RFC 8949 section 3). */
export function head(major: number, argument: number, bytes?: 0 | 1 | 2 | 4): Buffer {
  const size = bytes ?? (argument < 24 ? 0 : argument < 256 ? 1 : argument < 65_536 ? 2 : 4);
  if (size === 0) return Buffer.of((major << 5) | argument);
  const buffer = Buffer.alloc(1 + size);
  buffer.writeUInt8((major << 5) | (size === 1 ? 24 : size === 2 ? 25 : 26));
  buffer.writeUIntBE(argument, 1, size);
  return buffer;
}

/** The item as it is, but for what `hook` writes. Items in byte strings are left alone. */
function write(value: Cbor, path: string, hook: Hook): Buffer {
  const own = hook(path, value);
  if (own !== undefined) return own;
  if (isArray(value)) {
    return Buffer.concat([
      head(4, value.length),
      ...value.map((one, at) => write(one, `${path}/${at}`, hook)),
    ]);
  }
  if (isMap(value)) {
    const entries = [...value].flatMap(([key, one]) => [encodeCbor(key), write(one, `${path}/${key}`, hook)]);
    return Buffer.concat([head(5, value.size), ...entries]);
  }
  if (value instanceof Tagged)
    return Buffer.concat([head(6, Number(value.tag)), write(value.value, `${path}!`, hook)]);
  return encodeCbor(value);
}

function nodesOf(root: Cbor): readonly (readonly [string, Cbor])[] {
  const nodes: [string, Cbor][] = [];
  write(root, '', (path, value) => {
    nodes.push([path, value]);
    return undefined;
  });
  return nodes;
}

/** Every item in `root`, written in every way that this file knows: legal, illegal and something else. */
export function rewritings(root: Cbor): readonly Rewriting[] {
  return nodesOf(root).flatMap(([path, value]) =>
    waysOf(value).map(([kind, bytes]) => ({
      kind,
      what: path === '' ? 'the whole' : path,
      bytes: write(root, '', (at) => (at === path ? bytes : undefined)),
    })),
  );
}

function waysOf(value: Cbor): readonly Way[] {
  const own = encodeCbor(value);
  return [
    ['a tag in front', Buffer.concat([head(6, 1000), own])],
    ['null instead', encodeCbor(null)],
    ['zero instead', encodeCbor(0)],
    ['text instead', encodeCbor('x')],
    ['an empty map instead', encodeCbor(new Map())],
    ['an empty list instead', encodeCbor([])],
    ['a list around it', Buffer.concat([head(4, 1), own])],
    ...(isMap(value) ? waysOfMap([...value]) : []),
    ...(isArray(value) ? waysOfList(value) : []),
    ...(isBytes(value) ? waysOfString(2, value) : []),
    ...(typeof value === 'string' ? waysOfString(3, Buffer.from(value)) : []),
    ...(typeof value === 'number' && value >= 0 ? waysOfNumber(value) : []),
    ...(value instanceof EncodedCbor ? waysOfEmbedded(value) : []),
  ];
}

function waysOfMap(entries: readonly (readonly [string | number | bigint, Cbor])[]): readonly Way[] {
  const pairs = entries.map(([key, value]) => Buffer.concat([encodeCbor(key), encodeCbor(value)]));
  const all = Buffer.concat(pairs);
  const count = pairs.length;
  return [
    ['entries in another order', Buffer.concat([head(5, count), ...pairs.toReversed()])],
    ['an indefinite length', Buffer.concat([Buffer.of(0xbf), all, BREAK])],
    ['an indefinite length without end', Buffer.concat([Buffer.of(0xbf), all])],
    ['a long head', Buffer.concat([head(5, count, 4), all])],
    ['a length too large', Buffer.concat([head(5, count + 1), all])],
    ['a length too small', Buffer.concat([head(5, Math.max(count - 1, 0)), all])],
    ['a huge length', Buffer.concat([Buffer.from('bb00ffffffffffffff', 'hex'), all])],
    ['an entry more', Buffer.concat([head(5, count + 1), all, encodeCbor('more'), encodeCbor(0)])],
    ['an entry with a key of bytes', Buffer.concat([head(5, count + 1), all, Buffer.of(0x41, 0x61, 0)])],
    ...pairs.flatMap((pair, at): Way[] => [
      ['an entry left out', Buffer.concat([head(5, count - 1), ...pairs.toSpliced(at, 1)])],
      ['an entry twice', Buffer.concat([head(5, count + 1), all, pair])],
      [
        'a key twice, first with another value',
        Buffer.concat([head(5, count + 1), encodeCbor(entries[at]?.[0] ?? 0), encodeCbor(0), all]),
      ],
      [
        'a key twice, then with another value',
        Buffer.concat([head(5, count + 1), all, encodeCbor(entries[at]?.[0] ?? 0), encodeCbor(0)]),
      ],
    ]),
  ];
}

function waysOfList(values: readonly Cbor[]): readonly Way[] {
  const members = values.map((value) => encodeCbor(value));
  const all = Buffer.concat(members);
  const count = members.length;
  return [
    ['members in another order', Buffer.concat([head(4, count), ...members.toReversed()])],
    ['an indefinite length', Buffer.concat([Buffer.of(0x9f), all, BREAK])],
    ['an indefinite length without end', Buffer.concat([Buffer.of(0x9f), all])],
    ['a long head', Buffer.concat([head(4, count, 2), all])],
    ['a length too large', Buffer.concat([head(4, count + 1), all])],
    ['a length too small', Buffer.concat([head(4, Math.max(count - 1, 0)), all])],
    ['a huge length', Buffer.concat([Buffer.from('9b00ffffffffffffff', 'hex'), all])],
    ['a member more', Buffer.concat([head(4, count + 1), all, encodeCbor(null)])],
    ...members.flatMap((member, at): Way[] => [
      ['a member left out', Buffer.concat([head(4, count - 1), ...members.toSpliced(at, 1)])],
      ['a member twice', Buffer.concat([head(4, count + 1), all, member])],
    ]),
  ];
}

function waysOfString(major: 2 | 3, content: Buffer): readonly Way[] {
  const { length } = content;
  const half = length >> 1;
  const chunks = [content.subarray(0, half), content.subarray(half)];
  return [
    ['a long head', Buffer.concat([head(major, length, 4), content])],
    ['a length too large', Buffer.concat([head(major, length + 1), content])],
    ['a length too small', Buffer.concat([head(major, Math.max(length - 1, 0)), content])],
    ['a byte more', Buffer.concat([head(major, length + 1), content, Buffer.of(0x41)])],
    ['a byte less', Buffer.concat([head(major, Math.max(length - 1, 0)), content.subarray(0, -1)])],
    ['the other kind of string', Buffer.concat([head(major === 2 ? 3 : 2, length), content])],
    [
      'in chunks',
      Buffer.concat([
        Buffer.of((major << 5) | 31),
        ...chunks.flatMap((one) => [head(major, one.length), one]),
        BREAK,
      ]),
    ],
  ];
}

function waysOfNumber(value: number): readonly Way[] {
  return [
    ['a long head', head(0, value, 4)],
    ['a negative number', head(1, value)],
    ['the next number', head(0, value + 1)],
    ['a float of the value', Buffer.concat([Buffer.of(0xfa), float(value)])],
  ];
}

function float(value: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeFloatBE(value);
  return buffer;
}

function waysOfEmbedded({ content }: EncodedCbor): readonly Way[] {
  const string = Buffer.concat([head(2, content.length), content]);
  return [
    ['without tag 24', string],
    ['its content alone', content],
    ['another tag', Buffer.concat([head(6, 25), string])],
    ['tag 24 twice', Buffer.concat([head(6, 24), head(6, 24), string])],
    ['a long head of the tag', Buffer.concat([head(6, 24, 2), string])],
    ['a long head of its bytes', Buffer.concat([head(6, 24), head(2, content.length, 4), content])],
    ['a byte more inside', Buffer.concat([head(6, 24), head(2, content.length + 1), content, Buffer.of(0)])],
  ];
}
