import { hash } from 'node:crypto';
import type { RecordedKey } from '../../domain/keys/compromised-keys.ts';
import type { KeyChain, KeyRoot } from '../../domain/keys/key-chain.ts';
import { authorityOf, listTimes, type RevokedCertificate, revokedUnder } from '../../domain/keys/revoked-leaves.ts';
import { signingKey } from '../../domain/keys/signing-key.ts';
import { Failure } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { needs } from '../needs.ts';
import { CertificateAuthority } from '../ports/certificate-authority.ts';
import { WORLD } from '../transactions/known.ts';

/** Something of an authority as everybody may have it. */
export type AuthorityDocument = {
  readonly der: Buffer;
  readonly etag: string;
  /** Seconds for which it may be kept. */
  readonly maxAgeSeconds: number;
};

type Published = AuthorityDocument & { readonly thisUpdate: number };

const MAX_AGE_SECONDS = 60 * 60;
/** The certificate of an authority never changes. */
const CERTIFICATE_SECONDS = 24 * 60 * 60;

/**
 * What the internal authorities of a tenant publish about the certificates that they issued (RFC 5280 sections 4.2.1.13 and
 * 4.2.2.1), also while the tenant is suspended: what it signed is still out there.
 */
export class AuthorityPublisher extends needs({ ...WORLD, certificateAuthority: CertificateAuthority }) {
  /** Signed once per period; kept as long as the configuration that the authority is read from. */
  readonly #lists = new WeakMap<KeyRoot, Promise<Published>>();

  /** The list of what an authority revoked. @throws Failure `not_found` for an unknown authority, and one that has ended. */
  async revocationList(tenantId: TenantId, authorityId: string): Promise<AuthorityDocument> {
    const { chains, root, records } = await this.#find(tenantId, authorityId);
    const now = this.ports.clock.now();
    if (root.notAfter <= now) throw unknown();
    const revoked = revokedUnder(chains, root, records);
    const { thisUpdate } = listTimes(revoked, now);
    const known = await this.#lists.get(root)?.catch(() => undefined);
    if (known?.thisUpdate === thisUpdate.getTime()) return known;
    const signed = this.#sign(tenantId, root, revoked);
    this.#lists.set(root, signed);
    signed.catch(() => this.#lists.delete(root));
    return signed;
  }

  /** @throws Failure `not_found`. */
  async certificate(tenantId: TenantId, authorityId: string): Promise<AuthorityDocument> {
    const { root } = await this.#find(tenantId, authorityId);
    return publishedAs(Buffer.from(root.certificate, 'base64'), CERTIFICATE_SECONDS);
  }

  async #find(
    tenantId: TenantId,
    authorityId: string,
  ): Promise<{ readonly chains: readonly KeyChain[]; readonly root: KeyRoot; readonly records: readonly RecordedKey[] }> {
    const configured = await this.ports.tenantConfigurations.stored(tenantId);
    const chains = await configured?.keyChains();
    const root = chains && authorityOf(chains, authorityId);
    if (configured === undefined || chains === undefined || root === undefined) throw unknown();
    return { chains, root, records: await configured.recordedKeys() };
  }

  async #sign(tenantId: TenantId, root: KeyRoot, revoked: readonly RevokedCertificate[]): Promise<Published> {
    const { certificateAuthority, clock } = this.ports;
    const { thisUpdate, nextUpdate } = listTimes(revoked, clock.now());
    const request = { thisUpdate, nextUpdate, number: thisUpdate.getTime() / 1000, revoked };
    const signer = { key: signingKey(tenantId, root.key), certificate: root.certificate };
    const der = await certificateAuthority.revocationList(request, signer);
    return { ...publishedAs(der, MAX_AGE_SECONDS), thisUpdate: thisUpdate.getTime() };
  }
}

function publishedAs(der: Buffer, maxAgeSeconds: number): AuthorityDocument {
  return { der, etag: `"${hash('sha256', der, 'base64url')}"`, maxAgeSeconds };
}

function unknown(): Failure {
  return new Failure('not_found', 'unknown address');
}
