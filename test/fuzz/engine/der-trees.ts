import type { Random } from './random.ts';

/** DER as it is written, read without the service's own reader. */
export type DerNode = { tag: number; content: Buffer; children: DerNode[] | undefined };

/** @returns undefined for what is no sequence of elements. */
export function readDerTree(bytes: Buffer, depth = 0): DerNode[] | undefined {
  const nodes: DerNode[] = [];
  for (let at = 0; at < bytes.length; ) {
    const tag = bytes[at];
    const first = bytes[at + 1];
    if (tag === undefined || first === undefined || first > 0x83 || first === 0x80 || depth > 30)
      return undefined;
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
  const bytes = Buffer.from(
    length.toString(16).padStart(length > 0xffff ? 6 : length > 0xff ? 4 : 2, '0'),
    'hex',
  );
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
      if (children !== undefined && children.length > 0)
        children.push(structuredClone(random.pick(children)));
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
