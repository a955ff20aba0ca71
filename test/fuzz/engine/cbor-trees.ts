import type { Random } from './random.ts';

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
  const argument =
    width === 0 ? BigInt(info) : BigInt(`0x${bytes.toString('hex', cursor.at, cursor.at + width)}`);
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
  return Buffer.concat([
    head(major, argument, node.width),
    content ?? Buffer.alloc(0),
    ...even.map(writeTree),
  ]);
}

function head(major: number, argument: bigint, wanted: CborNode['width']): Buffer {
  if (wanted === 0 && argument < 24n) return Buffer.of((major << 5) | Number(argument));
  const width = WIDTHS.find((one) => one >= wanted && argument < 1n << BigInt(8 * one)) ?? 8;
  const hex = BigInt.asUintN(64, argument)
    .toString(16)
    .padStart(2 * width, '0');
  return Buffer.concat([Buffer.of((major << 5) | (24 + WIDTHS.indexOf(width))), Buffer.from(hex, 'hex')]);
}

const ARGUMENTS = [
  0n,
  1n,
  23n,
  24n,
  255n,
  256n,
  65535n,
  65536n,
  2n ** 31n,
  2n ** 32n,
  2n ** 53n,
  2n ** 64n - 1n,
];

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
      if (node.children.length > 0)
        node.children.splice(random.below(node.children.length), node.major === 5 ? 2 : 1);
      break;
    case 5: {
      if (node.children.length === 0) break;
      const at = random.below(node.children.length) & (node.major === 5 ? ~1 : ~0);
      node.children.splice(
        at,
        0,
        ...node.children.slice(at, at + (node.major === 5 ? 2 : 1)).map(structuredCopy),
      );
      break;
    }
    case 6: {
      const inside = structuredCopy(node);
      const tagged = {
        major: 6,
        argument: BigInt(random.pick([0, 1, 2, 3, 18, 24, 1004, 55799])),
        width: 0 as const,
      };
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
