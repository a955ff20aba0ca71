import type { TenantId } from '../../domain/shared/ids.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import type { TrustAnchor } from './certificates.ts';

/** A verified and parsed list, with everything that its users would otherwise compute from its certificates. */
export type OpenedList = {
  readonly list: TrustList;
  /** SHA-256, base64url: of the document, and of its content without dates. */
  readonly documentHash: string;
  readonly contentHash: string;
  /** Approximate memory use in bytes. */
  readonly size: number;
  /** The certificate that verified the list, DER in standard base64, if the list's own certificate was accepted (`shown`). */
  readonly signer?: string;
};

export type ReadingOptions = {
  /** Certificates of which one has to vouch for the list; `shown`: the certificate that the list itself contains. */
  readonly signers: readonly TrustAnchor[] | 'shown';
  readonly now: Date;
  /** Tenant that requested the list: reading is scheduled fairly between tenants, and each has a budget. */
  readonly tenantId: TenantId;
};

/** Verifies and parses trust lists in either format without blocking the thread that serves requests. */
export abstract class TrustListReader {
  /** @throws TrustListRefusal; with `unavailable` when too many lists wait to be read. */
  abstract open(bytes: Uint8Array, options: ReadingOptions): Promise<OpenedList>;
}
