import { createHash, type KeyObject, timingSafeEqual } from 'node:crypto';
import { type XmlTrustedList, XmlTrustedListReader } from '../../application/ports/xml-trusted-list-reader.ts';
import { parseCertificate } from '../../domain/formats/der/certificate.ts';
import { decodeUtf8 } from '../../domain/shared/utf8.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import {
  isProvider,
  type ListElement,
  TRUSTED_LIST_ROOT,
  TrustedListDigest,
  TrustedListReader,
} from '../../domain/trust-lists/trusted-list.ts';
import { type AncestorContext, CanonicalXml } from './canonical-xml.ts';
import { type ParsedSignature, parseSignature } from './parsed-signature.ts';
import { verifySignatureValue } from './signature-algorithms.ts';
import { isSignatureElement, replay, type SignatureNode, SignatureTree, textOf, walk } from './signature-node.ts';
import { parseXml, tooLarge, type XmlAttribute, type XmlElement, type XmlHandler, type XmlLimits } from './xml-parser.ts';

/** Twice the size of the largest national list, which has 8 MB and a hundred thousand elements. */
export const MAX_XML_BYTES = 16_000_000;
const LIMITS: XmlLimits = { bytes: MAX_XML_BYTES, elements: 600_000, namespaces: 20_000 };
/** Characters directly in one element outside the signature. The longest in a list are certificates. */
const MAX_TEXT = 1024 * 1024;
/** Elements of the scheme information with all pointers, and of one service or provider. */
const MAX_PART = 50_000;
/** Characters of the canonical form of SignedInfo. */
const MAX_SIGNED_INFO_CHARACTERS = 256 * 1024;
const MAX_CERTIFICATES = 10;

/**
 * Verifies and reads trusted lists in XML in several passes over the text with the same parser: for the signature and the limits, for the
 * digest of the canonical form, and for the content. No tree of the document is built, so memory is bounded by the size of the text.
 */
export class XmlTrustedLists extends XmlTrustedListReader {
  readonly #limits: XmlLimits;

  constructor(limits: Partial<XmlLimits> = {}) {
    super();
    this.#limits = { ...LIMITS, ...limits };
  }

  override verify(bytes: Uint8Array, signers: readonly string[], now: Date): XmlTrustedList {
    const text = parseText(bytes, this.#limits);
    const { root, signature, children, texts } = scan(text, this.#limits);
    const parsedSignature = parseSignature(signature, root);
    assertSigned(parsedSignature, signature, root, signerKey(signature, signers, now));
    const documentHash = verifyDigests(parsedSignature, text, { root, signature, limits: this.#limits });
    const content = new ContentReader({ children, texts }, now);
    parseXml(text, new OmittingHandler(signature.element, content), this.#limits);
    return { list: content.reader.finish(), documentHash, contentHash: content.digest.value() };
  }

  override shownSigner(bytes: Uint8Array): string | undefined {
    const { signature } = scan(parseText(bytes, this.#limits), this.#limits);
    return certificatesIn(signature)[0];
  }
}

/** @throws TrustListRefusal `malformed` */
function parseText(bytes: Uint8Array, limits: XmlLimits): string {
  if (bytes.length > limits.bytes) throw new TrustListRefusal('malformed', `lists in XML may have up to ${limits.bytes / 1_000_000} MB`);
  const hasMark = bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf;
  const text = decodeUtf8(withLineFeeds(hasMark ? bytes.subarray(3) : bytes));
  if (text === undefined) throw new TrustListRefusal('malformed', 'it is not UTF-8');
  return text;
}

const CR = 0x0d;
const LF = 0x0a;

/** Normalizes line ends (XML 1.0 section 2.11) on bytes: replacing millions of matches in a text takes ten times its size. */
function withLineFeeds(bytes: Uint8Array): Uint8Array {
  if (!bytes.includes(CR)) return bytes;
  const result = new Uint8Array(bytes.length);
  let length = 0;
  for (let position = 0; position < bytes.length; position++) {
    const byte = bytes[position] as number;
    if (byte === LF && bytes[position - 1] === CR) continue;
    result[length++] = byte === CR ? LF : byte;
  }
  return result.subarray(0, length);
}

type ScannedList = {
  readonly root: XmlElement;
  readonly signature: SignatureNode;
  /** Numbers of child elements, by the index of each element among all outside the signature. */
  readonly children: Uint32Array;
  /** Trimmed text of elements that also have child elements, by the same index. */
  readonly texts: ReadonlyMap<number, string>;
};

/** @throws TrustListRefusal `malformed` for a document of another structure, or one that exceeds the limits. */
function scan(text: string, limits: XmlLimits): ScannedList {
  const scanner = new Scanner();
  parseXml(text, scanner, limits);
  const { root, signature, isMisplaced } = scanner;
  const { namespace, name } = TRUSTED_LIST_ROOT;
  if (root?.namespace !== namespace || root.local !== name) throw new TrustListRefusal('malformed', `its root element is not ${name}`);
  if (signature === undefined || isMisplaced) {
    throw new TrustListRefusal('malformed', 'exactly one signature is required, directly below the root element');
  }
  return { root, signature, children: scanner.children.subarray(0), texts: scanner.texts };
}

class Scanner implements XmlHandler {
  children = new Uint32Array(1_024);
  readonly texts = new Map<number, string>();
  root: XmlElement | undefined;
  isMisplaced = false;
  readonly #open: { readonly position: number; text: string }[] = [];
  #count = 0;
  #tree: SignatureTree | undefined;
  #depthInSignature = 0;

  get signature(): SignatureNode | undefined {
    return this.#tree?.root;
  }

  start(element: XmlElement): void {
    if (isSignatureElement(element, 'Signature')) {
      if (this.#tree === undefined && this.#open.length === 1) this.#tree = new SignatureTree();
      else this.isMisplaced = true;
      if (this.#depthInSignature === 0 && !this.isMisplaced) {
        this.#depthInSignature = 1;
        this.#tree?.start(element);
        return;
      }
    }
    if (this.#depthInSignature > 0) {
      this.#depthInSignature++;
      this.#tree?.start(element);
      return;
    }
    this.root ??= element;
    const position = this.#count++;
    if (position === this.children.length) {
      const larger = new Uint32Array(position * 2);
      larger.set(this.children);
      this.children = larger;
    }
    const parent = this.#open.at(-1);
    if (parent !== undefined) this.children[parent.position] = (this.children[parent.position] ?? 0) + 1;
    this.#open.push({ position, text: '' });
  }

  text(text: string): void {
    if (this.#depthInSignature > 0) {
      this.#tree?.text(text);
      return;
    }
    const open = this.#open.at(-1);
    if (open !== undefined) open.text = appendText(open.text, text);
  }

  end(): void {
    if (this.#depthInSignature > 0) {
      this.#depthInSignature--;
      this.#tree?.end();
      return;
    }
    const open = this.#open.pop();
    if (open === undefined || (this.children[open.position] ?? 0) === 0) return;
    const text = open.text.trim();
    if (text !== '') this.texts.set(open.position, text);
  }

  instruction(target: string, data: string): void {
    if (this.#depthInSignature > 0) this.#tree?.instruction(target, data);
  }
}

/** Leading white space is dropped at once, because it is most of the text between elements. */
function appendText(text: string, addition: string): string {
  const added = text === '' ? addition.trimStart() : addition;
  if (text.length + added.length > MAX_TEXT) throw tooLarge();
  return text === '' ? added : text + added;
}

function certificatesIn(signature: SignatureNode): readonly string[] {
  const certificates: string[] = [];
  for (const { node } of walk(signature)) {
    if (!isSignatureElement(node.element, 'X509Certificate')) continue;
    certificates.push(textOf(node).replaceAll(/\s/g, ''));
    if (certificates.length === MAX_CERTIFICATES) break;
  }
  return certificates;
}

/** @returns the key of the pinned signer whose certificate is in the signature. */
function signerKey(signature: SignatureNode, signers: readonly string[], now: Date): KeyObject {
  const certificatesOfSignature = certificatesIn(signature);
  const der = signers.find((signer) => certificatesOfSignature.includes(signer));
  const certificate = der === undefined ? undefined : parseCertificate(Buffer.from(der, 'base64'));
  if (certificate === undefined) throw new TrustListRefusal('untrusted_signer', 'its signature contains none of the pinned certificates');
  if (now < certificate.notBefore || now > certificate.notAfter) {
    throw new TrustListRefusal('untrusted_signer', 'the pinned certificate is not valid now');
  }
  return certificate.publicKey;
}

/** @throws TrustListRefusal `signature` unless the pinned key signed SignedInfo. */
function assertSigned(parsedSignature: ParsedSignature, signature: SignatureNode, root: XmlElement, key: KeyObject): void {
  let signed = '';
  const canonical = new CanonicalXml(
    parsedSignature.canonicalization,
    (piece) => {
      signed += piece;
      if (signed.length > MAX_SIGNED_INFO_CHARACTERS) throw new TrustListRefusal('malformed', 'SignedInfo is too large');
    },
    surroundingsOf([root, signature.element]),
  );
  replay(parsedSignature.signedInfo, canonical);
  canonical.finish();
  if (!verifySignatureValue(parsedSignature.method, key, signed, parsedSignature.value)) throw new TrustListRefusal('signature');
}

/** @returns SHA-256 of the canonical form of the document, base64url. @throws TrustListRefusal `signature` */
function verifyDigests(
  { documentReference, signedPropertiesReference }: ParsedSignature,
  text: string,
  { root, signature, limits }: { root: XmlElement; signature: SignatureNode; limits: XmlLimits },
): string {
  if (signedPropertiesReference !== undefined) {
    const { digest: name, digestValue, canonicalization, node, around } = signedPropertiesReference;
    const digest = createHash(name);
    const canonical = new CanonicalXml(canonicalization, (piece) => digest.update(piece), surroundingsOf(around));
    replay(node, canonical);
    canonical.finish();
    assertEqual(digest.digest(), digestValue);
  }
  const document = createHash('sha256');
  const digest = documentReference.digest === 'sha256' ? undefined : createHash(documentReference.digest);
  const canonical = new CanonicalXml(documentReference.canonicalization, (piece) => {
    document.update(piece);
    digest?.update(piece);
  });
  const handler = new OmittingHandler(signature.element, canonical, documentReference.isWholeDocument ? undefined : root);
  parseXml(text, handler, limits);
  canonical.finish();
  const documentHash = document.digest();
  assertEqual(digest?.digest() ?? documentHash, documentReference.digestValue);
  return documentHash.toString('base64url');
}

function assertEqual(digest: Buffer, expected: Buffer): void {
  if (digest.length !== expected.length || !timingSafeEqual(digest, expected)) throw new TrustListRefusal('signature');
}

function surroundingsOf(around: readonly XmlElement[]): AncestorContext {
  const namespaces = new Map<string, string>();
  const xmlAttributes = new Map<string, XmlAttribute>();
  for (const { declarations, attributes } of around) {
    for (const [prefix, uri] of declarations) namespaces.set(prefix, uri);
    for (const attribute of attributes) if (attribute.prefix === 'xml') xmlAttributes.set(attribute.name, attribute);
  }
  return { namespaces, xmlAttributes };
}

/** Passes on all events except those of one element, and except instructions outside the root element if that is given. */
class OmittingHandler implements XmlHandler {
  readonly #offset: number;
  readonly #handler: XmlHandler;
  readonly #root: XmlElement | undefined;
  #depth = 0;
  /** Depth of the omitted element. */
  #omitted: number | undefined;

  constructor(element: XmlElement, handler: XmlHandler, root?: XmlElement) {
    this.#offset = element.offset;
    this.#handler = handler;
    this.#root = root;
  }

  start(element: XmlElement): void {
    if (element.offset === this.#offset) this.#omitted = this.#depth;
    this.#depth++;
    if (this.#omitted === undefined) this.#handler.start(element);
  }

  text(text: string): void {
    if (this.#omitted === undefined) this.#handler.text(text);
  }

  end(element: XmlElement): void {
    this.#depth--;
    if (this.#omitted === undefined) this.#handler.end(element);
    else if (this.#omitted === this.#depth) this.#omitted = undefined;
  }

  instruction(target: string, data: string): void {
    if (this.#omitted !== undefined || (this.#depth === 0 && this.#root !== undefined)) return;
    this.#handler.instruction(target, data);
  }
}

type OpenElement = {
  readonly position: number;
  readonly namespace: string;
  readonly name: string;
  readonly attributes: ReadonlyMap<string, string>;
  text: string;
  isDigested: boolean;
  /** Child elements, only within a part that is read. */
  readonly children: ListElement[] | undefined;
};

const NO_ATTRIBUTES: ReadonlyMap<string, string> = new Map();

/** Reads the content of a verified list, and computes its digest without dates. */
class ContentReader implements XmlHandler {
  readonly reader: TrustedListReader;
  readonly digest = new TrustedListDigest();
  readonly #scanned: Pick<ScannedList, 'children' | 'texts'>;
  readonly #open: OpenElement[] = [];
  /** Local names below the root. */
  readonly #path: string[] = [];
  #count = 0;
  /** Number of elements of the current part. */
  #inPart = 0;

  constructor(scanned: Pick<ScannedList, 'children' | 'texts'>, now: Date) {
    this.#scanned = scanned;
    this.reader = new TrustedListReader(now);
  }

  start({ namespace, local: name, attributes: allAttributes }: XmlElement): void {
    const parent = this.#open.at(-1);
    if (parent !== undefined) {
      this.#digestOnce(parent);
      // Elements of other namespaces are never read.
      this.#path.push(namespace === TRUSTED_LIST_ROOT.namespace ? name : `{}${name}`);
      if (parent.children === undefined && isProvider(this.#path)) this.reader.beginProvider();
    }
    const isPart = parent?.children !== undefined || TrustedListReader.isPart(this.#path);
    if (isPart && ++this.#inPart > MAX_PART) throw tooLarge();
    const plain = allAttributes.filter(({ prefix }) => prefix === '');
    const attributes = plain.length === 0 ? NO_ATTRIBUTES : new Map(plain.map(({ name: attributeName, value }) => [attributeName, value]));
    const position = this.#count++;
    this.#open.push({ position, namespace, name, attributes, text: '', isDigested: false, children: isPart ? [] : undefined });
  }

  text(text: string): void {
    const open = this.#open.at(-1);
    if (open !== undefined) open.text = appendText(open.text, text);
  }

  end(): void {
    const open = this.#open.pop();
    if (open === undefined) return;
    this.#digestOnce(open);
    this.digest.close();
    const { namespace, name, attributes, children } = open;
    if (children !== undefined) {
      const element: ListElement = { namespace, name, attributes, children, text: open.text.trim() };
      const parent = this.#open.at(-1)?.children;
      if (parent !== undefined) parent.push(element);
      else {
        this.reader.addPart(element);
        this.#inPart = 0;
      }
    }
    this.#path.pop();
  }

  /** Canonical XML keeps instructions, but they have no meaning in a list. */
  instruction(): void {}

  /** Digests an element before its children, with its whole text. */
  #digestOnce(open: OpenElement): void {
    if (open.isDigested) return;
    open.isDigested = true;
    const { position, namespace, name, attributes } = open;
    const children = this.#scanned.children[position] ?? 0;
    const text = children === 0 ? open.text.trim() : (this.#scanned.texts.get(position) ?? '');
    this.digest.open({ namespace, name, attributes, text }, children);
  }
}
