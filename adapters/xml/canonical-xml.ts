import { tooLarge, type XmlAttribute, type XmlElement, type XmlHandler } from './xml-parser.ts';

export type Canonicalization = {
  readonly isExclusive: boolean;
  /** InclusiveNamespaces of exclusive canonicalization; the default namespace is ''. */
  readonly prefixes: readonly string[];
};

/** Context of the canonicalized element: namespaces in scope and `xml:` attributes of its ancestors. */
export type AncestorContext = {
  readonly namespaces: ReadonlyMap<string, string>;
  readonly xmlAttributes: ReadonlyMap<string, XmlAttribute>;
};

const MAX_CHARACTERS = 64 * 1024 * 1024;
const FLUSH_AT = 32 * 1024;

/**
 * Canonical XML 1.0 and Exclusive XML Canonicalization 1.0, without comments, of the events of a document or of one element. The output is
 * passed on in pieces, so that it is never in memory as a whole.
 */
export class CanonicalXml implements XmlHandler {
  readonly #method: Canonicalization;
  readonly #write: (piece: string) => void;
  readonly #inherited: ReadonlyMap<string, XmlAttribute>;
  /** URIs by prefix: of all prefixes in scope, and of those that the output declares. */
  readonly #scope: Map<string, string>;
  readonly #rendered = new Map<string, string>();
  readonly #undo: {
    readonly scope: readonly [string, string | undefined][];
    readonly rendered: readonly [string, string | undefined][];
  }[] = [];
  #isAfterRoot = false;
  #pending = '';
  #length = 0;

  constructor(method: Canonicalization, write: (piece: string) => void, surroundings?: AncestorContext) {
    this.#method = method;
    this.#write = write;
    this.#scope = new Map(surroundings?.namespaces);
    this.#inherited = surroundings?.xmlAttributes ?? new Map();
  }

  start(element: XmlElement): void {
    const isApex = this.#undo.length === 0;
    const scope = element.declarations.map(([prefix, uri]) => this.#set(this.#scope, prefix, uri));
    const candidates = this.#method.isExclusive
      ? this.#exclusiveCandidates(element)
      : isApex
        ? [...this.#scope.keys()]
        : element.declarations.map(([prefix]) => prefix);
    const rendered: [string, string | undefined][] = [];
    let tag = `<${element.name}`;
    for (const prefix of candidates.sort(compareCodePoints)) {
      const uri = this.#scope.get(prefix) ?? '';
      if (prefix === 'xml' || (this.#rendered.get(prefix) ?? '') === uri) continue;
      rendered.push(this.#set(this.#rendered, prefix, uri));
      tag += ` ${prefix === '' ? 'xmlns' : `xmlns:${prefix}`}="${escapeAttribute(uri)}"`;
    }
    const attributes = isApex ? this.#withInherited(element.attributes) : element.attributes;
    for (const { name, value } of attributes.length > 1 ? attributes.toSorted(compareAttributes) : attributes)
      tag += ` ${name}="${escapeAttribute(value)}"`;
    this.#undo.push({ scope, rendered });
    this.#append(`${tag}>`);
  }

  text(text: string): void {
    this.#append(escapeText(text));
  }

  end({ name }: XmlElement): void {
    this.#append(`</${name}>`);
    const undo = this.#undo.pop();
    for (const [prefix, uri] of undo?.scope ?? []) restore(this.#scope, prefix, uri);
    for (const [prefix, uri] of undo?.rendered ?? []) restore(this.#rendered, prefix, uri);
    if (this.#undo.length === 0) this.#isAfterRoot = true;
  }

  instruction(target: string, data: string): void {
    const instruction = `<?${target}${data === '' ? '' : ` ${data}`}?>`;
    if (this.#undo.length > 0) this.#append(instruction);
    else this.#append(this.#isAfterRoot ? `\n${instruction}` : `${instruction}\n`);
  }

  /** Passes on the remaining output. */
  finish(): void {
    if (this.#pending !== '') this.#write(this.#pending);
    this.#pending = '';
  }

  /** Prefixes that are visibly utilized (Exclusive XML Canonicalization section 3), and the inclusive ones. */
  #exclusiveCandidates({ prefix, attributes }: XmlElement): string[] {
    const candidates = new Set([prefix]);
    for (const attribute of attributes) if (attribute.prefix !== '') candidates.add(attribute.prefix);
    for (const always of this.#method.prefixes) if (this.#scope.has(always)) candidates.add(always);
    return [...candidates];
  }

  /** Canonical XML section 2.4: `xml:` attributes of omitted ancestors count for the first element. */
  #withInherited(attributes: readonly XmlAttribute[]): readonly XmlAttribute[] {
    if (this.#method.isExclusive || this.#inherited.size === 0) return attributes;
    const names = new Set(attributes.map(({ name }) => name));
    return [...attributes, ...[...this.#inherited.values()].filter(({ name }) => !names.has(name))];
  }

  #set(map: Map<string, string>, prefix: string, uri: string): [string, string | undefined] {
    const previousUri = map.get(prefix);
    map.set(prefix, uri);
    return [prefix, previousUri];
  }

  #append(piece: string): void {
    this.#length += piece.length;
    // Exclusive canonicalization may repeat the URI of a namespace with each element.
    if (this.#length > MAX_CHARACTERS) throw tooLarge();
    this.#pending += piece;
    if (this.#pending.length < FLUSH_AT) return;
    this.#write(this.#pending);
    this.#pending = '';
  }
}

function restore(map: Map<string, string>, prefix: string, uri: string | undefined): void {
  if (uri === undefined) map.delete(prefix);
  else map.set(prefix, uri);
}

function compareAttributes(a: XmlAttribute, b: XmlAttribute): number {
  return compareCodePoints(a.namespace, b.namespace) || compareCodePoints(a.local, b.local);
}

/** UTF-16 puts characters beyond U+FFFF before some that are smaller; UTF-8 keeps the order of code points. */
function compareCodePoints(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b));
}

function escapeText(text: string): string {
  if (!/[&<>\r]/.test(text)) return text;
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('\r', '&#xD;');
}

function escapeAttribute(text: string): string {
  if (!/[&<"\t\n\r]/.test(text)) return text;
  return text
    .replaceAll('&', '&amp;')
    .replaceAll('<', '&lt;')
    .replaceAll('"', '&quot;')
    .replaceAll('\t', '&#x9;')
    .replaceAll('\n', '&#xA;')
    .replaceAll('\r', '&#xD;');
}
