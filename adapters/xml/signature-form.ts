import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import type { DomDocument, DomElement } from './libraries.ts';
import { SIGNATURE_METHODS } from './signature-algorithms.ts';

export const DSIG = 'http://www.w3.org/2000/09/xmldsig#';

const ENVELOPED = `${DSIG}enveloped-signature`;
/** Without comments: what is signed is then what is read. */
const CANONICAL = [
  'http://www.w3.org/2001/10/xml-exc-c14n#',
  'http://www.w3.org/TR/2001/REC-xml-c14n-20010315',
];
const DIGESTS = ['http://www.w3.org/2001/04/xmlenc#sha256', 'http://www.w3.org/2001/04/xmlenc#sha512'];
/** The document, and the properties of the signature (ETSI EN 319 132-1 section 4.3). */
const MAX_REFERENCES = 2;
/** Its canonical form is computed before anybody knows who made it; two references have two dozen. */
const MAX_SIGNED_INFO = 100;
const MAX_TRANSFORMS = 4;
const PLAIN_ID = /^#[\w.-]{1,200}$/;

/**
 * Holds a document to the one form that lists have, before anything is computed: one signature, below the root, over the whole
 * document but itself, made with nothing but what this list of algorithms has.
 * @returns the signature. @throws TrustListRefusal `malformed`, `algorithm`.
 */
export function checkSignatureForm(document: DomDocument, root: DomElement): DomElement {
  const all = document.getElementsByTagNameNS(DSIG, 'Signature');
  const signature = all.item(0);
  if (signature === null || all.length !== 1 || signature.parentNode !== root) {
    throw new TrustListRefusal('malformed', 'one signature is wanted, directly below the root element');
  }
  const signed = only(signature, 'SignedInfo');
  if (signed.getElementsByTagNameNS('*', '*').length > MAX_SIGNED_INFO) {
    throw new TrustListRefusal('malformed', 'SignedInfo is too large');
  }
  known(only(signed, 'CanonicalizationMethod'), CANONICAL);
  known(only(signed, 'SignatureMethod'), SIGNATURE_METHODS);
  const references = childrenOf(signed, 'Reference');
  const [whole, ...others] = [
    ...references.filter((reference) => isWhole(reference, root)),
    ...references.filter((reference) => !isWhole(reference, root)),
  ];
  if (whole === undefined || !isWhole(whole, root) || references.length > MAX_REFERENCES) {
    throw new TrustListRefusal('malformed', 'the signature is not over the whole document');
  }
  checkReference(whole, [ENVELOPED, ...CANONICAL]);
  for (const other of others) {
    // It becomes part of a query over the document.
    if (!PLAIN_ID.test(other.getAttribute('URI') ?? '')) throw new TrustListRefusal('malformed', 'Reference');
    checkReference(other, CANONICAL);
  }
  return signature;
}

function isWhole(reference: DomElement, root: DomElement): boolean {
  const uri = reference.getAttribute('URI');
  const id = root.getAttribute('Id');
  return (
    reference.hasAttribute('URI') && (uri === '' || (id !== null && uri === `#${id}` && PLAIN_ID.test(uri)))
  );
}

function checkReference(reference: DomElement, transforms: readonly string[]): void {
  known(only(reference, 'DigestMethod'), DIGESTS);
  const [list, ...more] = childrenOf(reference, 'Transforms');
  const steps = list === undefined ? [] : childrenOf(list, 'Transform');
  // Each is one more canonical form of the document.
  if (more.length > 0 || steps.length > MAX_TRANSFORMS) throw new TrustListRefusal('malformed', 'Transforms');
  for (const step of steps) known(step, transforms);
}

function known(element: DomElement, algorithms: readonly string[]): void {
  const algorithm = element.getAttribute('Algorithm') ?? '';
  if (!algorithms.includes(algorithm)) throw new TrustListRefusal('algorithm', element.localName);
}

function only(parent: DomElement, name: string): DomElement {
  const [element, ...more] = childrenOf(parent, name);
  if (element === undefined || more.length > 0) throw new TrustListRefusal('malformed', name);
  return element;
}

function childrenOf(parent: DomElement, name: string): readonly DomElement[] {
  const found: DomElement[] = [];
  for (let node = parent.firstChild; node !== null; node = node.nextSibling) {
    const element = node as DomElement;
    if (node.nodeType === 1 && element.localName === name && element.namespaceURI === DSIG)
      found.push(element);
  }
  return found;
}
