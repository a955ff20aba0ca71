import { hash } from 'node:crypto';
import { type OpenedXmlList, SignedXmlDocuments } from '../../application/ports/signed-xml.ts';
import { readCertificate } from '../../domain/formats/der/certificate.ts';
import { decodeUtf8 } from '../../domain/shared/utf8.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import {
  contentHashOfTree,
  type ListElement,
  readTrustedList,
  TRUSTED_LIST_ROOT,
} from '../../domain/trust-lists/trusted-list.ts';
import { type DomDocument, type DomElement, type SignatureChecker, xmlLibraries } from './libraries.ts';
import { SIGNATURE_ALGORITHMS } from './signature-algorithms.ts';
import { checkSignatureForm, DSIG } from './signature-form.ts';

type Root = { readonly namespace: string; readonly name: string };

/** How much a document may cost to read. */
export type XmlLimits = {
  readonly bytes: number;
  readonly elements: number;
  /** That are declared: parsing costs up to the square of them. */
  readonly namespaces: number;
  /** That are in scope, over all elements: a canonical form looks at each of them again. */
  readonly inScope: number;
  /** Nodes below one element, squared, over all elements: the library looks for each among them. */
  readonly siblings: number;
};

/** What the thread that serves everybody may read. */
export const INLINE_LIMITS: XmlLimits = {
  bytes: 256 * 1024,
  elements: 20_000,
  namespaces: 200,
  inScope: 200_000,
  siblings: 20_000_000,
};
/** Its cost grows with the square of it. A list has two dozen levels. */
const MAX_DEPTH = 40;
/** Of one element, namespaces among them; they are sorted. */
const MAX_ATTRIBUTES = 250;
const MAX_CERTIFICATES = 10;
/** Types of nodes. */
const ELEMENT = 1;
const TEXT = new Set([3, 4]);

/** XML Signature by `xml-crypto`, over documents of `@xmldom/xmldom`. */
export class XmlCryptoDocuments extends SignedXmlDocuments {
  readonly #limits: XmlLimits;

  constructor(limits = INLINE_LIMITS) {
    super();
    this.#limits = limits;
  }

  override async trustedList(text: Buffer, signers: readonly string[], now: Date): Promise<OpenedXmlList> {
    const { document, documentHash } = this.open(text, TRUSTED_LIST_ROOT, signers, now);
    // Parts of a text keep all of it in memory, copies do not.
    const list = structuredClone(readTrustedList(document, now));
    return { list, documentHash, contentHash: contentHashOfTree(document) };
  }

  /** @returns what was signed; the hash is of its canonical form. @throws TrustListRefusal */
  open(
    text: Buffer,
    root: Root,
    signers: readonly string[],
    now: Date,
  ): { readonly document: ListElement; readonly documentHash: string } {
    const { SignedXml } = xmlLibraries();
    const xml = readText(text, this.#limits);
    const whole = parseStrictly(xml);
    assertCheap(whole.root, this.#limits);
    if (!isRoot(whole.root, root)) throw new TrustListRefusal('malformed', 'another root element');
    const signature = checkSignatureForm(whole.document, whole.root);
    const key = signerKey(signature, signers, now);
    const checker = new SignedXml({
      publicCert: key,
      // Whoever signs may not say with which key that is to be verified.
      getCertFromKeyInfo: () => null,
    });
    checker.SignatureAlgorithms = SIGNATURE_ALGORITHMS;
    const { document, content } = signedPart(checker, { whole: whole.document, signature, key, xml }, root);
    const budget = { left: this.#limits.elements };
    return { document: treeOf(document, budget, 0), documentHash: hash('sha256', content, 'base64url') };
  }
}

type Signed = {
  readonly whole: DomDocument;
  readonly signature: DomElement;
  /** PEM */
  readonly key: string;
  readonly xml: string;
};

/** What stands around it may be anything, so nothing is read but the bytes whose digest was verified. */
function signedPart(checker: SignatureChecker, { whole, signature, key, xml }: Signed, root: Root) {
  let isSigned: boolean;
  try {
    checker.loadSignature(signature);
    // The library computes the canonical form of the whole document first, which is dear: that takes a signature of the signer's.
    isSigned = isValueGood(checker, whole, key) && checker.checkSignature(xml);
  } catch (error) {
    if (error instanceof TrustListRefusal) throw error;
    throw new TrustListRefusal('signature', 'it cannot be verified');
  }
  if (!isSigned) throw new TrustListRefusal('signature');
  const parts = checker
    .getSignedReferences()
    .map((content) => ({ content, document: parseStrictly(content).root }))
    .filter(({ document }) => isRoot(document, root));
  const [part] = parts;
  if (part === undefined || parts.length !== 1) {
    throw new TrustListRefusal('signature', 'not the whole document is signed');
  }
  return part;
}

function isValueGood(checker: SignatureChecker, whole: DomDocument, key: string): boolean {
  const Algorithm = SIGNATURE_ALGORITHMS[checker.signatureAlgorithm ?? ''];
  if (Algorithm === undefined) return false;
  const signed = checker.getCanonSignedInfoXml(whole);
  return new Algorithm().verifySignature(signed, key, checker.signatureValue ?? '');
}

/** Before anything is computed: whoever stands between could send what is expensive, and need not have signed it. */
function assertCheap(root: DomElement, limits: XmlLimits): void {
  let [elements, inScope, siblings] = [0, 0, 0];
  const open: { readonly element: DomElement; readonly depth: number; readonly around: number }[] = [
    { element: root, depth: 1, around: 0 },
  ];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const { element, depth, around } = next;
    let namespaces = around;
    for (let index = 0; index < element.attributes.length; index++) {
      if (element.attributes.item(index)?.name.startsWith('xmlns') === true) namespaces++;
    }
    elements++;
    inScope += namespaces;
    let nodes = 0;
    for (let node = element.firstChild; node !== null; node = node.nextSibling) {
      nodes++;
      if (node.nodeType === ELEMENT)
        open.push({ element: node as DomElement, depth: depth + 1, around: namespaces });
    }
    siblings += nodes * nodes;
    const isOdd = depth > MAX_DEPTH || element.attributes.length > MAX_ATTRIBUTES;
    const isWide = siblings > limits.siblings || inScope > limits.inScope;
    if (isOdd || isWide || elements > limits.elements) throw new TrustListRefusal('malformed', 'too large');
  }
}

function readText(bytes: Buffer, limits: XmlLimits): string {
  if (bytes.length > limits.bytes) {
    throw new TrustListRefusal('malformed', `lists in XML are read up to ${limits.bytes / 1024} KiB`);
  }
  const text = decodeUtf8(bytes)?.replace(/^\uFEFF/, '');
  if (text === undefined) throw new TrustListRefusal('malformed', 'not UTF-8');
  // Entities can make anything of a small text, and nobody needs them here.
  if (/<!(?:DOCTYPE|ENTITY)/i.test(text)) throw new TrustListRefusal('malformed', 'a document type');
  // As it stands in the text: to parse a document, all that is in scope is copied where something is added.
  if (text.split('xmlns', limits.namespaces + 2).length > limits.namespaces + 1) {
    throw new TrustListRefusal('malformed', 'too large');
  }
  return text;
}

function parseStrictly(xml: string): { readonly document: DomDocument; readonly root: DomElement } {
  const refuse = (): never => {
    throw new TrustListRefusal('malformed', 'not well-formed XML');
  };
  const { DOMParser } = xmlLibraries();
  const errorHandler = { warning: refuse, error: refuse, fatalError: refuse };
  const document = new DOMParser({ errorHandler }).parseFromString(xml, 'text/xml');
  const root = document?.documentElement;
  if (document === undefined || root === undefined || root === null) return refuse();
  return { document, root };
}

function isRoot(element: DomElement, { namespace, name }: Root): boolean {
  return element.namespaceURI === namespace && element.localName === name;
}

/** @returns the key of the pinned signer whose certificate stands in the signature, PEM. */
function signerKey(signature: DomElement, signers: readonly string[], now: Date): string {
  const found = signature.getElementsByTagNameNS(DSIG, 'X509Certificate');
  const named = Array.from({ length: Math.min(found.length, MAX_CERTIFICATES) }, (_, index) =>
    (found.item(index)?.textContent ?? '').replaceAll(/\s/g, ''),
  );
  const der = signers.find((signer) => named.includes(signer));
  const certificate = der === undefined ? undefined : readCertificate(Buffer.from(der, 'base64'));
  if (certificate === undefined) throw new TrustListRefusal('untrusted_signer', 'none of the pinned ones');
  if (now < certificate.notBefore || now > certificate.notAfter) {
    throw new TrustListRefusal('untrusted_signer', 'the pinned certificate is not valid now');
  }
  return certificate.publicKey.export({ format: 'pem', type: 'spki' }) as string;
}

function treeOf(element: DomElement, budget: { left: number }, depth: number): ListElement {
  if (--budget.left < 0 || depth > MAX_DEPTH) throw new TrustListRefusal('malformed', 'too large');
  const children: ListElement[] = [];
  let text = '';
  for (let node = element.firstChild; node !== null; node = node.nextSibling) {
    if (node.nodeType === ELEMENT) children.push(treeOf(node as DomElement, budget, depth + 1));
    else if (TEXT.has(node.nodeType)) text += node.nodeValue ?? '';
  }
  const attributes = new Map<string, string>();
  for (let index = 0; index < element.attributes.length; index++) {
    const attribute = element.attributes.item(index);
    if (attribute !== null && !attribute.namespaceURI) attributes.set(attribute.name, attribute.value);
  }
  const { namespaceURI, localName } = element;
  return { namespace: namespaceURI ?? '', name: localName, attributes, children, text: text.trim() };
}
