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

/** Certificates of one key that are kept after their key chains were removed. */
const MAX_CERTIFICATES = 256;

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

/** Key chains of a tenant that never take a compromised key again, and whose certificates can still be revoked after they were removed. */
export function recordingKeys(chains: Documents<KeyChain>, recordedKeys: RecordedKeys): Documents<KeyChain> {
  /** It runs after the write, which holds the row of the tenant: who marks a key at the same time waits for it. */
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
      const known = await recordedKeys.list();
      for (const record of recordsOf(chain, await chains.list(), known, new Date())) await recordedKeys.put(record);
    },
  };
}

/**
 * What is kept of a removed key chain: that its keys are compromised; and its certificates, while their authority goes on
 * to publish a list and the key is compromised or still in use.
 * @param rest of the key chains of the tenant.
 * @throws Failure `conflict` when too many certificates of one key would be kept.
 */
function recordsOf(chain: KeyChain, rest: readonly KeyChain[], known: readonly RecordedKey[], now: Date): readonly RecordedKey[] {
  const compromised = compromisedKeys([chain, ...rest], known);
  const keysInUse = new Set(rest.flatMap(leavesOf).map(({ key }) => thumbprint(key.publicJwk)));
  const roots = new Set(rest.map(({ root }) => root?.certificate));
  const issued = issuedCertificates(chain);
  const keys = new Set(leavesOf(chain).map(({ key }) => thumbprint(key.publicJwk)));
  return [...keys].flatMap((key): readonly RecordedKey[] => {
    const compromisedAt = compromised.get(key) ?? null;
    if (compromisedAt === null && !keysInUse.has(key)) return [];
    const before = known.find((record) => record.thumbprint === key)?.certificates ?? [];
    const added = issued
      .filter((one) => one.thumbprint === key && roots.has(one.root))
      .map(({ root, certificate }) => ({ root, certificate }));
    const certificates = [...before, ...added].filter(({ certificate }) => !hasExpired(certificate, now));
    if (certificates.length > MAX_CERTIFICATES) {
      throw new Failure(
        'conflict',
        `${MAX_CERTIFICATES} certificates of this key were removed and have not expired: rotate the key before you remove more`,
      );
    }
    return compromisedAt === null && certificates.length === 0 ? [] : [{ thumbprint: key, compromisedAt, certificates }];
  });
}

function hasExpired(certificate: string, now: Date): boolean {
  const read = parseCertificate(Buffer.from(certificate, 'base64'));
  return read === undefined || read.notAfter <= now;
}
