import type { TenantId } from '../../domain/shared/ids.ts';
import type { TrustList } from '../../domain/trust-lists/lote.ts';
import type { TrustAnchor } from './certificates.ts';

/** A list that was verified and read, with all that its use would otherwise compute from its certificates. */
export type OpenedList = {
  readonly list: TrustList;
  /** SHA-256, base64url: of the document, and of its content without dates. */
  readonly documentHash: string;
  readonly contentHash: string;
  /** Bytes that the list takes in memory, roughly. */
  readonly size: number;
  /** The certificate that the list was verified with, DER in standard base64, where it was to be the one that it shows itself. */
  readonly signer?: string;
};

export type ReadingOptions = {
  /** Certificates of which one has to vouch for the list; `shown`: the one that the list shows itself. */
  readonly signers: readonly TrustAnchor[] | 'shown';
  readonly now: Date;
  /** The tenant that waits for it: tenants take turns, and each has a budget. */
  readonly tenantId: TenantId;
};

/** Verifies and reads trust lists in either format without holding up the thread that serves requests. */
export abstract class TrustListReader {
  /** @throws TrustListRefusal also `unavailable` when too many lists wait to be read. */
  abstract open(bytes: Uint8Array, options: ReadingOptions): Promise<OpenedList>;
}
