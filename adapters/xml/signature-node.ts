import { tooLarge, type XmlElement, type XmlHandler } from './xml-parser.ts';

export const DSIG = 'http://www.w3.org/2000/09/xmldsig#';

/** Element of a signature, the only part of a list that is read as a tree before it is verified. */
export type SignatureNode = {
  readonly element: XmlElement;
  readonly children: (SignatureNode | string | { readonly target: string; readonly data: string })[];
};

/** A signature has some dozens of elements; with time stamps and revocation data some hundreds. */
const MAX_ELEMENTS = 5_000;

/** Collects the tree of one element from its events. */
export class SignatureTree implements XmlHandler {
  readonly #open: SignatureNode[] = [];
  #elements = 0;
  root: SignatureNode | undefined;

  start(element: XmlElement): void {
    if (++this.#elements > MAX_ELEMENTS) throw tooLarge();
    const node: SignatureNode = { element, children: [] };
    this.#open.at(-1)?.children.push(node);
    this.root ??= node;
    this.#open.push(node);
  }

  text(text: string): void {
    this.#open.at(-1)?.children.push(text);
  }

  end(): void {
    this.#open.pop();
  }

  instruction(target: string, data: string): void {
    this.#open.at(-1)?.children.push({ target, data });
  }
}

/** Passes the events of a node on to a handler. */
export function replay(node: SignatureNode, handler: XmlHandler): void {
  handler.start(node.element);
  for (const child of node.children) {
    if (typeof child === 'string') handler.text(child);
    else if ('element' in child) replay(child, handler);
    else handler.instruction(child.target, child.data);
  }
  handler.end(node.element);
}

/** Child elements of a name in the namespace of XML Signature. */
export function childrenOf(parent: SignatureNode, name: string): readonly SignatureNode[] {
  return elementsIn(parent).filter(({ element }) => isSignatureElement(element, name));
}

export function isSignatureElement({ namespace, local }: XmlElement, name: string): boolean {
  return namespace === DSIG && local === name;
}

export function elementsIn({ children }: SignatureNode): readonly SignatureNode[] {
  return children.filter((child) => typeof child === 'object' && 'element' in child);
}

/** Yields the node itself and all its elements in document order, with the elements around each. */
export function* walk(
  node: SignatureNode,
  around: readonly XmlElement[] = [],
): Generator<{ readonly node: SignatureNode; readonly around: readonly XmlElement[] }> {
  yield { node, around };
  const inside = [...around, node.element];
  for (const child of elementsIn(node)) yield* walk(child, inside);
}

export function textOf({ children }: SignatureNode): string {
  return children.filter((child) => typeof child === 'string').join('');
}

/** Value of an attribute without a prefix. */
export function attributeOf({ attributes }: XmlElement, name: string): string | undefined {
  return attributes.find((attribute) => attribute.name === name)?.value;
}
