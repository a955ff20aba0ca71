import type { EntityManager } from '@mikro-orm/core';
import type { Documents, TenantRepositories } from '../../../application/ports/repositories.ts';
import { parseCertificate } from '../../../domain/formats/der/certificate.ts';
import { compromisedKeys, issuedCertificates, type RecordedKey } from '../../../domain/keys/compromised-keys.ts';
import { isCompromised, type KeyChain, leavesOf } from '../../../domain/keys/key-chain.ts';
import { Failure, invalidInput } from '../../../domain/shared/failure.ts';
import type { TenantId } from '../../../domain/shared/ids.ts';
import { thumbprint } from '../../../domain/shared/jwk.ts';
import { RecordedKeyRow } from '../rows/administration.row.ts';
import { FRESH } from './documents.ts';

/** Limit of certificates that are kept per key after the key chains were removed. */
const MAX_CERTIFICATES_PER_KEY = 256;

type RecordedKeys = TenantRepositories['recordedKeys'];

export function recordedKeysOf(em: EntityManager, tenantId: TenantId, touch: () => Promise<void>): RecordedKeys {
  return {
    async list() {
      const rows = await em.find(RecordedKeyRow, { tenantId }, FRESH);
      return rows.map(({ thumbprint: key, compromisedAt, certificates }) => ({
        thumbprint: key,
        compromisedAt: compromisedAt === null || compromisedAt === undefined ? null : new Date(Number(compromisedAt)),
        certificates,
      }));
    },
    async put({ thumbprint: key, compromisedAt, certificates }) {
      await touch();
      const row = { tenantId, thumbprint: key, compromisedAt: compromisedAt?.getTime() ?? null, certificates };
      await em.upsert(RecordedKeyRow, row);
    },
  };
}

/** Key chains of a tenant that reject compromised keys and record the certificates of removed chains, so that they can still be revoked. */
export function withRecordedKeys(chains: Documents<KeyChain>, recordedKeys: RecordedKeys): Documents<KeyChain> {
  /** Runs after the write, which holds the tenant's row lock, so a concurrent marking of the key waits for it. */
  async function assertAcceptable(chain: KeyChain): Promise<void> {
    if (isCompromised(chain)) return;
    const compromised = compromisedKeys(await chains.list(), await recordedKeys.list());
    if (!compromised.has(thumbprint(chain.active.key.publicJwk))) return;
    throw invalidInput('key', 'This key is marked as compromised. Use another one.');
  }

  return {
    ...chains,
    async add(chain) {
      await chains.add(chain);
      await assertAcceptable(chain);
    },
    async put(chain) {
      await chains.put(chain);
      await assertAcceptable(chain);
    },
    async remove(id) {
      const chain = await chains.find(id);
      await chains.remove(id);
      if (chain === undefined) return;
      const existingRecords = await recordedKeys.list();
      for (const record of recordsOf(chain, await chains.list(), existingRecords, new Date())) await recordedKeys.put(record);
    },
  };
}

/**
 * Records to keep of a removed key chain: that its keys are compromised, and its certificates while their authority still publishes a
 * revocation list and the key is compromised or in use.
 * @param otherChains the remaining key chains of the tenant.
 * @throws Failure `conflict` if too many certificates of one key would be kept.
 */
function recordsOf(
  chain: KeyChain,
  otherChains: readonly KeyChain[],
  existingRecords: readonly RecordedKey[],
  now: Date,
): readonly RecordedKey[] {
  const compromised = compromisedKeys([chain, ...otherChains], existingRecords);
  const keysInUse = new Set(otherChains.flatMap(leavesOf).map(({ key }) => thumbprint(key.publicJwk)));
  const roots = new Set(otherChains.map(({ root }) => root?.certificate));
  const issued = issuedCertificates(chain);
  const keys = new Set(leavesOf(chain).map(({ key }) => thumbprint(key.publicJwk)));
  return [...keys].flatMap((key): readonly RecordedKey[] => {
    const compromisedAt = compromised.get(key) ?? null;
    if (compromisedAt === null && !keysInUse.has(key)) return [];
    const storedCertificates = existingRecords.find((record) => record.thumbprint === key)?.certificates ?? [];
    const added = issued
      .filter((entry) => entry.thumbprint === key && roots.has(entry.root))
      .map(({ root, certificate }) => ({ root, certificate }));
    const certificates = [...storedCertificates, ...added].filter(({ certificate }) => !hasExpired(certificate, now));
    if (certificates.length > MAX_CERTIFICATES_PER_KEY) {
      throw new Failure(
        'conflict',
        `${MAX_CERTIFICATES_PER_KEY} certificates of this key were removed and have not expired: rotate the key before you remove more`,
      );
    }
    return compromisedAt === null && certificates.length === 0 ? [] : [{ thumbprint: key, compromisedAt, certificates }];
  });
}

function hasExpired(certificate: string, now: Date): boolean {
  const read = parseCertificate(Buffer.from(certificate, 'base64'));
  return read === undefined || read.notAfter <= now;
}
