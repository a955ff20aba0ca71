import { createRequire } from 'node:module';

/**
 * As much of the document object model as is used here. The libraries' own declarations bring that of browsers along, which
 * changes types everywhere.
 */
export type DomNode = {
  readonly nodeType: number;
  readonly nodeValue: string | null;
  readonly parentNode: DomNode | null;
  readonly firstChild: DomNode | null;
  readonly nextSibling: DomNode | null;
};
type Items<T> = { readonly length: number; item(index: number): T | null };
export type DomElement = DomNode & {
  readonly namespaceURI: string | null;
  readonly localName: string;
  readonly textContent: string | null;
  readonly attributes: Items<{
    readonly name: string;
    readonly value: string;
    readonly namespaceURI: string | null;
  }>;
  getAttribute(name: string): string | null;
  hasAttribute(name: string): boolean;
  getElementsByTagNameNS(namespace: string, name: string): Items<DomElement>;
};
export type DomDocument = Pick<DomElement, 'getElementsByTagNameNS'> & {
  readonly documentElement: DomElement | null;
};

/** `SignedXml` of `xml-crypto`. */
export type SignatureChecker = {
  SignatureAlgorithms: Readonly<Record<string, new () => object>>;
  readonly signatureAlgorithm?: string;
  readonly signatureValue?: string;
  loadSignature(signature: DomNode): void;
  /** What the value of the signature is over. */
  getCanonSignedInfoXml(document: DomDocument): string;
  checkSignature(xml: string): boolean;
  /** Canonical forms of what was signed, after the signature was found good. */
  getSignedReferences(): readonly string[];
};

type Libraries = {
  readonly SignedXml: new (options: {
    readonly publicCert: string;
    readonly getCertFromKeyInfo: () => null;
  }) => SignatureChecker;
  readonly DOMParser: new (options: {
    readonly errorHandler: Readonly<Record<'warning' | 'error' | 'fatalError', () => never>>;
  }) => { parseFromString(xml: string, type: 'text/xml'): DomDocument | undefined };
};

let loaded: Libraries | undefined;

/** Loaded when the first list in XML is read; most services never read one. */
export function xmlLibraries(): Libraries {
  if (loaded !== undefined) return loaded;
  const require = createRequire(import.meta.url);
  const { SignedXml } = require('xml-crypto') as Pick<Libraries, 'SignedXml'>;
  const { DOMParser } = require('@xmldom/xmldom') as Pick<Libraries, 'DOMParser'>;
  loaded = { SignedXml, DOMParser };
  return loaded;
}
