import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';

export const XML_NAMESPACE = 'http://www.w3.org/XML/1998/namespace';

export type XmlAttribute = {
  /** Qualified name as in the document, with its prefix. */
  readonly name: string;
  readonly prefix: string;
  readonly local: string;
  /** Empty for an attribute without a prefix. */
  readonly namespace: string;
  /** Normalized (XML 1.0 section 3.3.3). */
  readonly value: string;
};

export type XmlElement = {
  readonly name: string;
  readonly prefix: string;
  readonly local: string;
  /** Empty for an element in no namespace. */
  readonly namespace: string;
  /** The attributes that declare no namespace. */
  readonly attributes: readonly XmlAttribute[];
  /** Prefix and URI of the namespaces that its start tag declares; `['', '']` removes the default namespace. */
  readonly declarations: readonly (readonly [string, string])[];
  /** Position of its start tag in the document. */
  readonly offset: number;
};

/** Events of a document in the order of its text. Comments are left out. */
export type XmlHandler = {
  start(element: XmlElement): void;
  /** Text of an element, possibly in several parts of at most about 64 KiB. */
  text(text: string): void;
  end(element: XmlElement): void;
  /** Called for instructions outside the root element, too. */
  instruction(target: string, data: string): void;
};

/** Limits of a document. Parsing builds no tree, so memory does not grow with these. */
export type XmlLimits = { readonly bytes: number; readonly elements: number; readonly namespaces: number };

/** Levels of elements; a list has two dozen. */
const MAX_DEPTH = 40;
/** Attributes and namespace declarations of one element; they are sorted for its canonical form. */
const MAX_ATTRIBUTES = 250;
/** Characters of one tag or processing instruction. */
const MAX_TAG = 128 * 1024;
const MAX_NAME = 4_096;
/** Characters of one text event. */
const MAX_PART = 64 * 1024;

const NAME_START =
  ':A-Z_a-z\\u00C0-\\u00D6\\u00D8-\\u00F6\\u00F8-\\u02FF\\u0370-\\u037D\\u037F-\\u1FFF\\u200C\\u200D\\u2070-\\u218F\\u2C00-\\u2FEF\\u3001-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFFD\\u{10000}-\\u{EFFFF}';
/** XML 1.0 section 2.3 */
const NAME = new RegExp(`^[${NAME_START}][${NAME_START}\\-.0-9\\u00B7\\u0300-\\u036F\\u203F\\u2040]*$`, 'u');
/** Namespaces in XML 1.0 section 4: at most one colon, and a name on either side of it. */
const QUALIFIED = new RegExp(`^[^:]+(?::(?!:)[${NAME_START}][^:]*)?$`, 'u');
/** Characters that no document contains (XML 1.0 section 2.2). */
// biome-ignore lint/suspicious/noControlCharactersInRegex: the rule of XML is about control characters
const FORBIDDEN = /[\u0000-\u0008\u000B\u000C\u000E-\u001F\uFFFE\uFFFF]/;
const ENTITIES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" };
/** Characters of the longest reference, `&#x10FFFF;` with leading zeros. */
const MAX_REFERENCE = 24;

type OpenElement = { readonly element: XmlElement; readonly hidden: readonly [string, string | undefined][] };

/**
 * Parses well-formed XML 1.0 with namespaces and without document type, in one pass over the text.
 * @param text with normalized line ends.
 * @throws TrustListRefusal `malformed`
 */
export function parseXml(text: string, handler: XmlHandler, limits: XmlLimits): void {
  new XmlParser(text, handler, limits).parse();
}

class XmlParser {
  readonly #text: string;
  readonly #handler: XmlHandler;
  readonly #limits: XmlLimits;
  readonly #open: OpenElement[] = [];
  readonly #namespaces = new Map<string, string>([['xml', XML_NAMESPACE]]);
  #position = 0;
  #elements = 0;
  #declarations = 0;

  constructor(text: string, handler: XmlHandler, limits: XmlLimits) {
    this.#text = text;
    this.#handler = handler;
    this.#limits = limits;
  }

  parse(): void {
    const text = this.#text;
    if (FORBIDDEN.test(text)) throw notWellFormed();
    while (this.#position < text.length) {
      if (text[this.#position] !== '<') this.#characters();
      else if (text.startsWith('</', this.#position)) this.#endTag();
      else if (text.startsWith('<?', this.#position)) this.#instruction();
      else if (text.startsWith('<!', this.#position)) this.#declaration();
      else this.#startTag();
    }
    if (this.#open.length > 0 || this.#elements === 0) throw notWellFormed();
  }

  #characters(): void {
    const begin = this.#position;
    const nextTag = this.#text.indexOf('<', begin);
    const end = nextTag < 0 ? this.#text.length : nextTag;
    if (this.#open.length === 0) {
      for (let position = begin; position < end; position++) if (!isSpace(this.#text, position)) throw notWellFormed();
    } else {
      // Searches are limited to this run: unlimited ones would take quadratic time.
      const run = this.#text.slice(begin, end);
      // XML 1.0 section 2.4
      if (run.includes(']]>')) throw notWellFormed();
      decode(run, (part) => this.#handler.text(part));
    }
    this.#position = end;
  }

  /** Comments and CDATA sections. */
  #declaration(): void {
    const text = this.#text;
    if (text.startsWith('<!--', this.#position)) {
      // XML 1.0 section 2.5: `--` does not occur in a comment.
      const end = text.indexOf('--', this.#position + 4);
      if (end < 0 || text[end + 2] !== '>') throw notWellFormed();
      this.#position = end + 3;
      return;
    }
    if (text.startsWith('<![CDATA[', this.#position) && this.#open.length > 0) {
      const begin = this.#position + 9;
      const end = text.indexOf(']]>', begin);
      if (end < 0) throw notWellFormed();
      const section = text.slice(begin, end);
      const offset = emitAllButLast(section, 0, section.length, (part) => this.#handler.text(part));
      if (offset < section.length) this.#handler.text(section.slice(offset));
      this.#position = end + 3;
      return;
    }
    // Entities can expand a small text without limit, and no list needs them.
    if (/^<!(?:DOCTYPE|ENTITY)/i.test(text.slice(this.#position, this.#position + 12))) {
      throw new TrustListRefusal('malformed', 'it has a document type declaration');
    }
    throw notWellFormed();
  }

  #instruction(): void {
    const text = this.#text;
    const begin = this.#position;
    const end = text.indexOf('?>', begin);
    if (end < 0) throw notWellFormed();
    if (end - begin > MAX_TAG) throw tooLarge();
    this.#position += 2;
    const target = this.#name();
    if (this.#position !== end && !isSpace(text, this.#position)) throw notWellFormed();
    const data = text.slice(this.#position, end).replace(/^[ \t\n]+/, '');
    this.#position = end + 2;
    if (target.toLowerCase() === 'xml') {
      // The XML declaration is no instruction.
      if (begin !== 0 || target !== 'xml') throw notWellFormed();
      return;
    }
    if (target.includes(':')) throw notWellFormed();
    this.#handler.instruction(target, data);
  }

  #endTag(): void {
    this.#position += 2;
    const name = this.#name();
    this.#skipSpace();
    const open = this.#open.pop();
    if (open === undefined || open.element.name !== name || this.#text[this.#position] !== '>') throw notWellFormed();
    this.#position++;
    this.#close(open);
  }

  #close({ element, hidden }: OpenElement): void {
    this.#handler.end(element);
    for (const [prefix, uri] of hidden) {
      if (uri === undefined) this.#namespaces.delete(prefix);
      else this.#namespaces.set(prefix, uri);
    }
  }

  #startTag(): void {
    const text = this.#text;
    const offset = this.#position;
    if (this.#open.length === 0 && this.#elements > 0) throw notWellFormed();
    if (++this.#elements > this.#limits.elements || this.#open.length >= MAX_DEPTH) throw tooLarge();
    this.#position++;
    const name = this.#name();
    const values = new Map<string, string>();
    let isEmpty = false;
    for (;;) {
      const hasSpace = this.#skipSpace();
      const char = text[this.#position];
      if (char === '>') break;
      if (char === '/' && text[this.#position + 1] === '>') {
        this.#position++;
        isEmpty = true;
        break;
      }
      if (!hasSpace) throw notWellFormed();
      const attribute = this.#name();
      this.#skipSpace();
      if (text[this.#position] !== '=') throw notWellFormed();
      this.#position++;
      this.#skipSpace();
      if (values.has(attribute)) throw notWellFormed();
      values.set(attribute, this.#attributeValue(offset));
      if (values.size > MAX_ATTRIBUTES) throw tooLarge();
    }
    this.#position++;
    const open = this.#resolve(name, values, offset);
    this.#handler.start(open.element);
    if (isEmpty) this.#close(open);
    else this.#open.push(open);
  }

  #attributeValue(tag: number): string {
    const text = this.#text;
    const quote = text[this.#position];
    if (quote !== '"' && quote !== "'") throw notWellFormed();
    const begin = this.#position + 1;
    const end = text.indexOf(quote, begin);
    if (end < 0) throw notWellFormed();
    if (end - tag > MAX_TAG) throw tooLarge();
    this.#position = end + 1;
    const raw = text.slice(begin, end);
    if (raw.includes('<')) throw notWellFormed();
    // XML 1.0 section 3.3.3: references keep the white space that they stand for.
    const spaced = raw.replace(/[\t\n]/g, ' ');
    if (!spaced.includes('&')) return spaced;
    const parts: string[] = [];
    decode(spaced, (part) => parts.push(part));
    return parts.join('');
  }

  /** Namespaces in XML 1.0 */
  #resolve(name: string, values: ReadonlyMap<string, string>, offset: number): OpenElement {
    const declarations: [string, string][] = [];
    const hidden: [string, string | undefined][] = [];
    for (const [attribute, uri] of values) {
      if (attribute !== 'xmlns' && !attribute.startsWith('xmlns:')) continue;
      if (++this.#declarations > this.#limits.namespaces) throw tooLarge();
      const prefix = attribute === 'xmlns' ? '' : attribute.slice('xmlns:'.length);
      assertDeclarable(prefix, uri);
      if (prefix === 'xml') continue;
      declarations.push([prefix, uri]);
      hidden.push([prefix, this.#namespaces.get(prefix)]);
      this.#namespaces.set(prefix, uri);
    }
    const attributes: XmlAttribute[] = [];
    for (const [attribute, value] of values) {
      if (attribute === 'xmlns' || attribute.startsWith('xmlns:')) continue;
      const { prefix, local } = split(attribute);
      const namespace = prefix === '' ? '' : this.#namespaceOf(prefix);
      attributes.push({ name: attribute, prefix, local, namespace, value });
    }
    // Section 6.3: two prefixes of one namespace must not yield two attributes of one name.
    const prefixed = attributes.filter(({ prefix }) => prefix !== '');
    if (prefixed.length > 1) {
      const names = new Set(prefixed.map(({ namespace, local }) => `${namespace} ${local}`));
      if (names.size < prefixed.length) throw notWellFormed();
    }
    const { prefix, local } = split(name);
    const namespace = prefix === '' ? (this.#namespaces.get('') ?? '') : this.#namespaceOf(prefix);
    return { element: { name, prefix, local, namespace, attributes, declarations, offset }, hidden };
  }

  #namespaceOf(prefix: string): string {
    const uri = this.#namespaces.get(prefix);
    if (uri === undefined) throw notWellFormed();
    return uri;
  }

  #name(): string {
    const begin = this.#position;
    let end = begin;
    // A regular expression on the whole text would recurse once for each character of a long name.
    while (end < this.#text.length && isNamePart(this.#text.charCodeAt(end))) {
      if (++end - begin > MAX_NAME) throw tooLarge();
    }
    const name = this.#text.slice(begin, end);
    if (!NAME.test(name)) throw notWellFormed();
    if (name.includes(':') && !QUALIFIED.test(name)) throw notWellFormed();
    this.#position = end;
    return name;
  }

  #skipSpace(): boolean {
    const begin = this.#position;
    while (isSpace(this.#text, this.#position)) this.#position++;
    return this.#position > begin;
  }
}

/** Namespaces in XML 1.0 sections 2.2 and 3 */
function assertDeclarable(prefix: string, uri: string): void {
  const isReserved = prefix === 'xmlns' || uri === 'http://www.w3.org/2000/xmlns/';
  const isXml = (prefix === 'xml') === (uri === XML_NAMESPACE);
  if (isReserved || !isXml || (prefix !== '' && uri === '')) throw notWellFormed();
}

function split(name: string): { readonly prefix: string; readonly local: string } {
  const colon = name.indexOf(':');
  return colon < 0 ? { prefix: '', local: name } : { prefix: name.slice(0, colon), local: name.slice(colon + 1) };
}

/** Letters, digits, `-`, `.`, `:`, `_`, and all non-ASCII characters, which `NAME` checks. */
function isNamePart(code: number): boolean {
  if (code >= 0x80) return true;
  const isLetter = (code >= 0x61 && code <= 0x7a) || (code >= 0x41 && code <= 0x5a);
  return isLetter || (code >= 0x2d && code <= 0x3a && code !== 0x2f) || code === 0x5f;
}

function isSpace(text: string, position: number): boolean {
  const code = text.charCodeAt(position);
  return code === 0x20 || code === 0x0a || code === 0x09;
}

/** Resolves references in character data, in parts of bounded size. */
function decode(text: string, emit: (part: string) => void): void {
  let from = 0;
  let pending = '';
  for (;;) {
    const reference = text.indexOf('&', from);
    const stop = reference < 0 ? text.length : reference;
    if (pending !== '' && stop - from > MAX_PART) {
      emit(pending);
      pending = '';
    }
    if (pending === '') from = emitAllButLast(text, from, stop, emit);
    pending += text.slice(from, stop);
    if (reference < 0) break;
    const semicolon = text.slice(reference, reference + MAX_REFERENCE).indexOf(';');
    if (semicolon < 0) throw notWellFormed();
    pending += resolveReference(text.slice(reference + 1, reference + semicolon));
    from = reference + semicolon + 1;
    if (pending.length >= MAX_PART) {
      emit(pending);
      pending = '';
    }
  }
  if (pending !== '') emit(pending);
}

/** @returns the start of the last part. */
function emitAllButLast(text: string, begin: number, end: number, emit: (part: string) => void): number {
  let from = begin;
  while (end - from > MAX_PART) {
    // Both halves of a surrogate pair stay together, because each part is encoded as UTF-8 by itself.
    const to = isHighSurrogate(text, from + MAX_PART - 1) ? from + MAX_PART - 1 : from + MAX_PART;
    emit(text.slice(from, to));
    from = to;
  }
  return from;
}

function isHighSurrogate(text: string, position: number): boolean {
  const code = text.charCodeAt(position);
  return code >= 0xd800 && code <= 0xdbff;
}

/** XML 1.0 sections 4.1 and 4.6 */
function resolveReference(name: string): string {
  const predefined = Object.hasOwn(ENTITIES, name) ? ENTITIES[name] : undefined;
  if (predefined !== undefined) return predefined;
  const [, decimal, hexadecimal] = /^#(?:(\d+)|x([0-9A-Fa-f]+))$/.exec(name) ?? [];
  const code = decimal === undefined ? Number.parseInt(hexadecimal ?? '', 16) : Number(decimal);
  const isCharacter = code <= 0x10ffff && !(code >= 0xd800 && code <= 0xdfff);
  const character = isCharacter ? String.fromCodePoint(code) : '\0';
  if (FORBIDDEN.test(character)) throw notWellFormed();
  return character;
}

function notWellFormed(): TrustListRefusal {
  return new TrustListRefusal('malformed', 'it is not well-formed XML');
}

export function tooLarge(): TrustListRefusal {
  return new TrustListRefusal('malformed', 'it is too large');
}
