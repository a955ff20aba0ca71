import type { TenantId } from '../../domain/shared/ids.ts';
import { openSignedList } from '../../domain/trust-lists/signed-list.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import type { Certificates } from '../ports/certificates.ts';
import type { Remote } from '../ports/remote.ts';
import type { Signatures } from '../ports/signatures.ts';
import type { SignedXmlDocuments } from '../ports/signed-xml.ts';
import { download } from './fetched-lists.ts';
import { type PinnedSigners, type VerifiedList, verifyTrustList } from './verify-trust-list.ts';

/** National lists in XML have up to 8 MB. One that is a compact JWS has a limit of its own. */
const MAX_BYTES = 16 * 1024 * 1024;

type Ports = {
  readonly signatures: Signatures;
  readonly certificates: Certificates;
  readonly signedXmlDocuments: SignedXmlDocuments;
};

/** When a list is read, and for whom. */
export type Reading = { readonly now: Date; readonly tenantId: TenantId };

/** @throws TrustListRefusal `unavailable`. */
export async function downloadTrustList(remote: Remote, tenantId: TenantId, uri: string): Promise<Buffer> {
  const accept = 'application/jwt, application/jose, application/vnd.etsi.tsl+xml;q=0.9, */*;q=0.1';
  const wanted = { tenantId, accept, maxBytes: MAX_BYTES };
  const refusal = (why: string) => new TrustListRefusal('unavailable', why);
  const { body } = await download(remote, uri, wanted, refusal);
  return body;
}

/** A list in XML (ETSI TS 119 612) is told by how it begins. */
export function isXml(bytes: Buffer): boolean {
  return /^(?:\xEF\xBB\xBF)?\s*</.test(bytes.toString('latin1', 0, 1_000));
}

export function compactText(bytes: Buffer): string {
  return bytes.toString('latin1').trim();
}

/**
 * Verifies a list in either form, and reads it.
 * @throws TrustListRefusal also for a list that no pinned certificate vouches for.
 */
export async function openList(
  ports: Ports,
  bytes: Buffer,
  signers: PinnedSigners,
  { now, tenantId }: Reading,
): Promise<VerifiedList> {
  if (!isXml(bytes)) return verifyTrustList(ports, compactText(bytes), signers, now);
  // Who signs such a list is named by its own certificate, as lists of lists do; a CA says nothing here.
  const certificates = signers.anchors.map(({ certificate }) => certificate);
  return ports.signedXmlDocuments.trustedList(bytes, certificates, now, tenantId);
}

/**
 * Who signed a list that nobody pinned vouches for, so that a person can decide about them.
 * @returns the certificate, DER in standard base64; undefined where the list does not hold under it either.
 */
export async function shownSigner(
  ports: Ports,
  bytes: Buffer,
  reading: Reading,
): Promise<string | undefined> {
  try {
    const certificate = isXml(bytes) ? shownInXml(bytes) : shownInHeader(compactText(bytes));
    if (certificate === undefined) return undefined;
    await openList(ports, bytes, { anchors: [{ certificate }], id: '' }, reading);
    return certificate;
  } catch (error) {
    if (error instanceof TrustListRefusal) return undefined;
    throw error;
  }
}

function shownInHeader(text: string): string | undefined {
  const { signer } = openSignedList(text);
  return 'chain' in signer ? signer.chain[0] : undefined;
}

/** The first certificate of the signature. Whether it is the right one is found out by verifying with it. */
function shownInXml(bytes: Buffer): string | undefined {
  const text = bytes.toString('latin1');
  const signature = /<(?:[\w.-]{1,40}:)?Signature[\s>]/.exec(text)?.index ?? text.length;
  const pattern = /<(?:[\w.-]{1,40}:)?X509Certificate>([A-Za-z0-9+/=\s]{1,20000})</;
  return pattern.exec(text.slice(signature))?.[1]?.replaceAll(/\s/g, '');
}
