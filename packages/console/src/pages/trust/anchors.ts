import { at, textAt } from '../../parts/json-paths.ts';
import { readCertificate } from '../decoder/certificate.ts';
import { derOfPem } from './read-certificates.ts';

export type Anchor = Readonly<Record<string, unknown>>;

const names = new WeakMap<object, string>();

export function nameOf(anchor: unknown): string {
  if (typeof anchor !== 'object' || anchor === null) return nameAnew(anchor);
  const name = names.get(anchor) ?? nameAnew(anchor);
  names.set(anchor, name);
  return name;
}

function nameAnew(anchor: unknown): string {
  if (at(anchor, 'ownAuthorities') === true) return 'all own key chains that issue';
  const keyChain = textAt(anchor, 'keyChainId');
  if (keyChain !== '') return `the key chain ${keyChain}`;
  const list = textAt(anchor, 'trustList');
  if (at(anchor, 'trustList') !== undefined) return `the trust list ${list || 'without an address'}`;
  return certificateName(textAt(anchor, 'certificate'));
}

export function certificateName(pem: string): string {
  try {
    const der = derOfPem(pem);
    if (der === undefined) throw new Error('no PEM');
    const { subject, notAfter } = readCertificate(der, new Date());
    return `a certificate of ${subject || 'nobody'}, until ${new Date(notAfter).toLocaleDateString()}`;
  } catch {
    const body = pem.replaceAll(/-----[A-Z ]+-----|\s/g, '');
    return `a certificate that ends with ${body.slice(-12)}`;
  }
}

/** Those of `added` that are not there yet. */
export function newAmong(anchors: readonly unknown[], added: readonly Anchor[]): readonly Anchor[] {
  const known = new Set(anchors.map(identityOf));
  return added.filter((anchor) => {
    const identity = identityOf(anchor);
    if (known.has(identity)) return false;
    known.add(identity);
    return true;
  });
}

/** A certificate is the same however it is broken into lines; a list is the same whatever is said about it. */
function identityOf(anchor: unknown): string {
  return textAt(anchor, 'certificate').replaceAll(/\s/g, '') || textAt(anchor, 'trustList') || `key chain ${textAt(anchor, 'keyChainId')}`;
}
