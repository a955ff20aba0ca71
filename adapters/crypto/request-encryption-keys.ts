import { hkdfSync, type KeyObject } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { boundedBytes } from '../../application/bounded.ts';
import type { EncryptionKeyPair } from '../../application/ports/encryption.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import { keyPairOf } from './ecdh-es.ts';

/** Order of P-256 (NIST SP 800-186 section 3.2.1.3). */
const ORDER = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551n;
/** The order's 256 bits and 64 more, as FIPS 186-5 appendix A.2.1 wants at least, and then some. */
const SEED_BYTES = 48;
const MAX_BYTES = 4 * 1024 * 1024;
/** A pair with its key object. */
const PAIR_BYTES = 4_000;

/**
 * The keys that wallets encrypt credential requests to. They follow from master secret and tenant, so that nothing is
 * stored and every instance has them; a wallet that read the metadata before a new secret was put in front still finds
 * its key.
 */
export class RequestEncryptionKeys {
  readonly #tenants: LRUCache<TenantId, readonly EncryptionKeyPair[]>;

  constructor(masterKeys: readonly KeyObject[]) {
    const memoMethod = (tenantId: TenantId) => masterKeys.map((key) => keyPairOf(scalarOf(key, tenantId)));
    this.#tenants = new LRUCache<TenantId, readonly EncryptionKeyPair[]>({
      ...boundedBytes<readonly EncryptionKeyPair[]>(MAX_BYTES, ({ length }) => length * PAIR_BYTES),
      memoMethod,
    });
  }

  /** @returns one for each master secret, in their order. */
  of(tenantId: TenantId): readonly EncryptionKeyPair[] {
    return this.#tenants.memo(tenantId);
  }
}

/** FIPS 186-5 appendix A.2.1: a number between 1 and the order less 1, with no noticeable bias. */
function scalarOf(key: KeyObject, tenantId: TenantId): Buffer {
  const seed = Buffer.from(hkdfSync('sha256', key, Buffer.alloc(0), tenantId, SEED_BYTES));
  const scalar = (BigInt(`0x${seed.toString('hex')}`) % (ORDER - 1n)) + 1n;
  return Buffer.from(scalar.toString(16).padStart(64, '0'), 'hex');
}
