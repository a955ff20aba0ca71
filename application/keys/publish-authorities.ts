import { hash } from 'node:crypto';
import type { RecordedKey } from '../../domain/keys/compromised-keys.ts';
import type { KeyChain, KeyRoot } from '../../domain/keys/key-chain.ts';
import { authorityOf, listTimes, type RevokedCertificate, revokedCertificatesOf } from '../../domain/keys/revoked-leaves.ts';
import { signingKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { CertificateAuthority } from '../ports/certificate-authority.ts';
import { TRANSACTION_PORTS } from '../transactions/tenant-transaction.ts';

export type AuthorityDocument = {
  readonly der: Buffer;
  readonly etag: string;
  /** Seconds for which it may be cached. */
  readonly maxAgeSeconds: number;
};

type PublishedDocument = AuthorityDocument & { readonly thisUpdate: number };

const MAX_AGE_SECONDS = 60 * 60;
/** The certificate of an authority never changes. */
const CERTIFICATE_SECONDS = 24 * 60 * 60;

/**
 * Publishes revocation lists and certificates of a tenant's internal CAs (RFC 5280 sections 4.2.1.13 and 4.2.2.1), also while
 * the tenant is suspended, since certificates that it issued are still in use.
 */
export class AuthorityPublisher extends needs({ ...TRANSACTION_PORTS, certificateAuthority: CertificateAuthority }) {
  /** Signed once per period; cached as long as the configuration that contains the authority. */
  readonly #lists = new WeakMap<KeyRoot, Promise<PublishedDocument>>();

  /** The CRL of an authority. @throws Failure `not_found` for an unknown authority, and one that has expired. */
  async revocationList(tenantId: TenantId, authorityId: string): Promise<AuthorityDocument> {
    const { chains, root, records } = await this.#find(tenantId, authorityId);
    const now = this.ports.clock.now();
    if (root.notAfter <= now) throw unknownAddressError();
    const revoked = revokedCertificatesOf(chains, root, records);
    const { thisUpdate } = listTimes(revoked, now);
    const cached = await this.#lists.get(root)?.catch(() => undefined);
    if (cached?.thisUpdate === thisUpdate.getTime()) return cached;
    const signed = this.#sign(tenantId, root, revoked);
    this.#lists.set(root, signed);
    signed.catch(() => this.#lists.delete(root));
    return signed;
  }

  /** @throws Failure `not_found`. */
  async certificate(tenantId: TenantId, authorityId: string): Promise<AuthorityDocument> {
    const { root } = await this.#find(tenantId, authorityId);
    return documentOf(Buffer.from(root.certificate, 'base64'), CERTIFICATE_SECONDS);
  }

  async #find(
    tenantId: TenantId,
    authorityId: string,
  ): Promise<{ readonly chains: readonly KeyChain[]; readonly root: KeyRoot; readonly records: readonly RecordedKey[] }> {
    const tenant = await this.ports.tenantConfigurations.readStored(tenantId);
    const chains = await tenant?.keyChains();
    const root = chains && authorityOf(chains, authorityId);
    if (tenant === undefined || chains === undefined || root === undefined) throw unknownAddressError();
    return { chains, root, records: await tenant.recordedKeys() };
  }

  async #sign(tenantId: TenantId, root: KeyRoot, revoked: readonly RevokedCertificate[]): Promise<PublishedDocument> {
    const { certificateAuthority, clock } = this.ports;
    const { thisUpdate, nextUpdate } = listTimes(revoked, clock.now());
    const request = { thisUpdate, nextUpdate, number: thisUpdate.getTime() / 1000, revoked };
    const signer = { key: signingKey(tenantId, root.key), certificate: root.certificate };
    const der = await certificateAuthority.revocationList(request, signer);
    return { ...documentOf(der, MAX_AGE_SECONDS), thisUpdate: thisUpdate.getTime() };
  }
}

function documentOf(der: Buffer, maxAgeSeconds: number): AuthorityDocument {
  return { der, etag: `"${hash('sha256', der, 'base64url')}"`, maxAgeSeconds };
}

function unknownAddressError(): Failure {
  return new Failure('not_found', 'unknown address');
}
