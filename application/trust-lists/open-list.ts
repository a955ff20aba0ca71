import type { TenantId } from '../../domain/shared/ids.ts';
import { parseListed } from '../../domain/trust-lists/listed-certificate.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import { parseSignedList } from '../../domain/trust-lists/signed-list.ts';
import { TrustListRefusal } from '../../domain/trust-lists/trust-list-refusal.ts';
import type { Certificates } from '../ports/certificates.ts';
import type { Remote } from '../ports/remote.ts';
import type { Signatures } from '../ports/signatures.ts';
import { type OpenedList, type ReadingOptions, TrustListReader } from '../ports/trust-list-reader.ts';
import type { XmlTrustedListReader } from '../ports/xml-trusted-list-reader.ts';
import { sizeOfDocument } from '../tenant-cache/size-of.ts';
import { download } from './fetched-lists.ts';
import { verifyTrustList } from './verify-trust-list.ts';

/** Twice the size of the largest national list in XML. Lists in compact JWS have their own limit. */
const MAX_BYTES = 16_000_000;

type Ports = { readonly signatures: Signatures; readonly certificates: Certificates; readonly xmlTrustedListReader: XmlTrustedListReader };

/** @throws TrustListRefusal `unavailable`. */
export async function downloadTrustList(remote: Remote, tenantId: TenantId, uri: string): Promise<Buffer> {
  const accept = 'application/jwt, application/jose, application/vnd.etsi.tsl+xml;q=0.9, */*;q=0.1';
  const options = { tenantId, accept, maxBytes: MAX_BYTES };
  const refusal = (reason: string) => new TrustListRefusal('unavailable', reason);
  const { body } = await download(remote, uri, options, refusal);
  return body;
}

/** Minimum size of documents whose memory is released explicitly. Smaller ones may share their memory with other buffers. */
const LARGE_BYTES = 128 * 1024;

/**
 * Releases the memory of a downloaded document at once; afterwards it is empty. A document that waited to be read has outlived the minor
 * collections of the heap, so several of them would stay until the next full one.
 */
export function releaseDocument({ buffer, length }: Buffer): void {
  const isWhole = buffer instanceof ArrayBuffer && buffer.byteLength === length;
  if (isWhole && length >= LARGE_BYTES) buffer.transfer(0);
}

/** Recognizes a list in XML (ETSI TS 119 612) by its beginning. */
export function isXml(bytes: Uint8Array): boolean {
  return /^(?:\xEF\xBB\xBF)?\s*</.test(Buffer.from(bytes.subarray(0, 1_000)).toString('latin1'));
}

function compactText(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1').trim();
}

/**
 * Verifies and parses a list in either format with its certificates. It runs synchronously, which takes long for a large list.
 * @throws TrustListRefusal; also for a list that none of the signers vouches for.
 */
export function openTrustList(ports: Ports, bytes: Uint8Array, { signers, now }: Omit<ReadingOptions, 'tenantId'>): OpenedList {
  const ownSigner = signers === 'shown' ? shownSigner(ports, bytes) : undefined;
  const anchors = signers === 'shown' ? [{ certificate: ownSigner ?? '' }] : signers;
  const openedList = isXml(bytes)
    ? // The signer of such a list is named by its own certificate, as lists of lists do; a CA vouches for none.
      ports.xmlTrustedListReader.verify(
        bytes,
        anchors.map(({ certificate }) => certificate),
        now,
      )
    : verifyTrustList(ports, compactText(bytes), anchors, now);
  const list = withCertificates(openedList.list);
  return { ...openedList, list, size: sizeOfDocument(list), ...(ownSigner !== undefined && { signer: ownSigner }) };
}

/** Reads lists synchronously in the calling thread. */
export class InlineTrustLists extends TrustListReader {
  readonly #ports: Ports;

  constructor(ports: Ports) {
    super();
    this.#ports = ports;
  }

  override async open(bytes: Uint8Array, options: ReadingOptions): Promise<OpenedList> {
    return openTrustList(this.#ports, bytes, options);
  }
}

/** @throws TrustListRefusal */
function shownSigner(ports: Ports, bytes: Uint8Array): string {
  if (isXml(bytes)) {
    const certificate = ports.xmlTrustedListReader.shownSigner(bytes);
    if (certificate === undefined) throw new TrustListRefusal('untrusted_signer', 'its signature contains no certificate');
    return certificate;
  }
  const { signer } = parseSignedList(compactText(bytes));
  if ('chain' in signer) return signer.chain[0] ?? '';
  throw new TrustListRefusal('untrusted_signer', 'it names its signer only by a hash; set the certificate');
}

/** Parses all certificates in advance. Certificates that do not parse are left out. */
function withCertificates(list: TrustList): TrustList {
  const entities = list.entities.map((entity) => ({
    ...entity,
    services: entity.services.map((service) => ({ ...service, ...parseListed(service.certificates) })),
  }));
  return { ...list, entities };
}
