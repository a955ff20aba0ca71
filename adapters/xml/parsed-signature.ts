import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import type { Canonicalization } from './canonical-xml.ts';
import { SIGNATURE_METHODS } from './signature-algorithms.ts';
import { attributeOf, childrenOf, DSIG, elementsIn, type SignatureNode, textOf, walk } from './signature-node.ts';
import type { XmlElement } from './xml-parser.ts';

const ENVELOPED = `${DSIG}enveloped-signature`;
const EXCLUSIVE = 'http://www.w3.org/2001/10/xml-exc-c14n#';
/** Algorithms without comments: the signed content is then the content that is read. */
const CANONICAL = [EXCLUSIVE, 'http://www.w3.org/TR/2001/REC-xml-c14n-20010315'];
const DIGESTS: Readonly<Record<string, DigestName>> = {
  'http://www.w3.org/2001/04/xmlenc#sha256': 'sha256',
  'http://www.w3.org/2001/04/xmlenc#sha512': 'sha512',
};
/** The document, and the properties of the signature (ETSI EN 319 132-1 section 4.3). */
const MAX_REFERENCES = 2;
/** The canonical form is computed before the signer is known; two references have two dozen elements. */
const MAX_SIGNED_INFO_ELEMENTS = 100;
const MAX_TRANSFORMS = 4;
const PLAIN_ID = /^#[\w.-]{1,200}$/;
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;

type DigestName = 'sha256' | 'sha512';

type SignedReference = { readonly canonicalization: Canonicalization; readonly digest: DigestName; readonly digestValue: Buffer };

/** A parsed signature. It is not verified yet. */
export type ParsedSignature = {
  readonly signedInfo: SignatureNode;
  readonly canonicalization: Canonicalization;
  readonly method: string;
  readonly value: Buffer;
  /** `isWholeDocument`: the URI is empty, so processing instructions outside the root element are signed too. */
  readonly documentReference: SignedReference & { readonly isWholeDocument: boolean };
  /** The reference to the signed properties within the signature, with their ancestors. */
  readonly signedPropertiesReference:
    | (SignedReference & { readonly node: SignatureNode; readonly around: readonly XmlElement[] })
    | undefined;
};

/**
 * Parses a signature before anything is computed for it: it must cover the whole document except itself, with the algorithms of these lists
 * only.
 * @param signature directly below `root`.
 * @throws TrustListRefusal `malformed`, `algorithm`.
 */
export function parseSignature(signature: SignatureNode, root: XmlElement): ParsedSignature {
  const signedInfo = only(signature, 'SignedInfo');
  if ([...walk(signedInfo)].length > MAX_SIGNED_INFO_ELEMENTS + 1) throw new TrustListRefusal('malformed', 'SignedInfo is too large');
  const method = supportedAlgorithmOf(only(signedInfo, 'SignatureMethod'), SIGNATURE_METHODS);
  const references = childrenOf(signedInfo, 'Reference');
  const documentReference = references.find((reference) => isDocumentReference(reference, root));
  if (documentReference === undefined) throw new TrustListRefusal('malformed', 'the signature is not over the whole document');
  if (references.length > MAX_REFERENCES) {
    throw new TrustListRefusal('malformed', `SignedInfo has more than ${MAX_REFERENCES} references`);
  }
  const otherReferences = references.filter((reference) => reference !== documentReference);
  return {
    signedInfo,
    canonicalization: canonicalizationOf([only(signedInfo, 'CanonicalizationMethod')]),
    method,
    value: base64Of(only(signature, 'SignatureValue')),
    documentReference: {
      ...parseReference(documentReference, true),
      isWholeDocument: attributeOf(documentReference.element, 'URI') === '',
    },
    signedPropertiesReference: otherReferences.map((reference) => parseSignedPropertiesReference(reference, signature, root))[0],
  };
}

function isDocumentReference({ element }: SignatureNode, root: XmlElement): boolean {
  const uri = attributeOf(element, 'URI');
  const id = attributeOf(root, 'Id');
  return uri === '' || (uri !== undefined && id !== undefined && uri === `#${id}` && PLAIN_ID.test(uri));
}

function parseSignedPropertiesReference(reference: SignatureNode, signature: SignatureNode, root: XmlElement) {
  const uri = attributeOf(reference.element, 'URI') ?? '';
  const candidates = [...walk(signature, [root])].filter(({ node }) => `#${attributeOf(node.element, 'Id')}` === uri);
  const [part] = candidates;
  if (!PLAIN_ID.test(uri) || part === undefined || candidates.length > 1)
    throw new TrustListRefusal('malformed', 'Reference does not identify exactly one part of the signature');
  return { ...parseReference(reference, false), ...part };
}

function parseReference(reference: SignatureNode, coversDocument: boolean): SignedReference {
  const digest = DIGESTS[supportedAlgorithmOf(only(reference, 'DigestMethod'), Object.keys(DIGESTS))];
  const [list, ...more] = childrenOf(reference, 'Transforms');
  const steps = list === undefined ? [] : childrenOf(list, 'Transform');
  if (more.length > 0 || steps.length > MAX_TRANSFORMS || digest === undefined) {
    throw new TrustListRefusal('malformed', 'Transforms is repeated or has too many steps');
  }
  const [firstStep, ...otherSteps] = steps;
  const isEnveloped = coversDocument && firstStep !== undefined && attributeOf(firstStep.element, 'Algorithm') === ENVELOPED;
  // A signature that is part of its own input cannot be valid.
  if (coversDocument && !isEnveloped && steps.every(isCanonicalization)) {
    throw new TrustListRefusal('malformed', 'Transforms does not exclude the signature itself');
  }
  return {
    canonicalization: canonicalizationOf(isEnveloped ? otherSteps : steps),
    digest,
    digestValue: base64Of(only(reference, 'DigestValue')),
  };
}

function isCanonicalization({ element }: SignatureNode): boolean {
  return CANONICAL.includes(attributeOf(element, 'Algorithm') ?? '');
}

/** If several canonicalizations are listed, the result is that of the exclusive one, in any order, because it removes unused namespaces. */
function canonicalizationOf(steps: readonly SignatureNode[]): Canonicalization {
  for (const step of steps) supportedAlgorithmOf(step, CANONICAL);
  const exclusive = steps.filter(({ element }) => attributeOf(element, 'Algorithm') === EXCLUSIVE);
  const prefixes = exclusive.map(inclusivePrefixes);
  // XML Signature section 4.4.3.2: without one, Canonical XML 1.0
  if (exclusive.length === 0) return { isExclusive: false, prefixes: [] };
  if (prefixes.length > 1 && prefixes.some((names) => names.length > 0)) {
    throw new TrustListRefusal('malformed', 'Transforms has several canonicalizations with prefixes');
  }
  return { isExclusive: true, prefixes: prefixes[0] ?? [] };
}

/** Exclusive XML Canonicalization section 4 */
function inclusivePrefixes(step: SignatureNode): readonly string[] {
  const lists = elementsIn(step).filter(({ element }) => element.namespace === EXCLUSIVE && element.local === 'InclusiveNamespaces');
  const names = lists.flatMap(({ element }) => (attributeOf(element, 'PrefixList') ?? '').split(/\s+/));
  return names.filter((name) => name !== '').map((name) => (name === '#default' ? '' : name));
}

/** @throws TrustListRefusal `algorithm` */
function supportedAlgorithmOf({ element }: SignatureNode, algorithms: readonly string[]): string {
  const algorithm = attributeOf(element, 'Algorithm') ?? '';
  if (!algorithms.includes(algorithm)) throw new TrustListRefusal('algorithm', `${element.local} has an unsupported algorithm`);
  return algorithm;
}

function only(parent: SignatureNode, name: string): SignatureNode {
  const [node, ...more] = childrenOf(parent, name);
  if (node === undefined || more.length > 0) throw new TrustListRefusal('malformed', `${name} is missing or repeated`);
  return node;
}

function base64Of(node: SignatureNode): Buffer {
  const text = textOf(node).replaceAll(/\s/g, '');
  if (elementsIn(node).length > 0 || text.length % 4 !== 0 || !BASE64.test(text)) {
    throw new TrustListRefusal('signature', `${node.element.local} is not base64`);
  }
  return Buffer.from(text, 'base64');
}
