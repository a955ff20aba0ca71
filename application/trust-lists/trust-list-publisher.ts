import type { TenantActor } from '../../domain/audit/audit-entry.ts';
import { type KeyChain, signingChain } from '../../domain/keys/key-chain.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { TenantId } from '../../domain/shared/ids.ts';
import type { JsonObject } from '../../domain/shared/json.ts';
import type { Tenant } from '../../domain/tenants/tenant.ts';
import { composeList } from '../../domain/trust-lists/compose-list.ts';
import { keyChainIdsOf } from '../../domain/trust-lists/entity-certificates.ts';
import { withStatuses } from '../../domain/trust-lists/entity-status.ts';
import type { TrustListConfiguration } from '../../domain/trust-lists/list-configuration.ts';
import { MAX_LISTS, type PublishedList, type Signer, selectListSigner } from '../../domain/trust-lists/published-list.ts';
import { MAX_LIST_BYTES } from '../../domain/trust-lists/signed-list.ts';
import { signJwt } from '../keys/sign-jwt.ts';
import { needs } from '../needs.ts';
import { Clock } from '../ports/clock.ts';
import { Kms } from '../ports/kms.ts';
import { Random } from '../ports/random.ts';
import type { TenantRepositories } from '../ports/repositories.ts';
import { issuerIdentifier, ServiceSettings } from '../ports/settings.ts';
import { Store } from '../ports/store.ts';
import { createKeyedQueue } from '../queues/keyed-queue.ts';

export const TRUST_LIST_JWT_TYPE = 'trustlist+jwt';

/** A consistent read of everything that a version is created from. */
export type VersionBasis = {
  readonly tenant: Tenant;
  readonly chains: readonly KeyChain[];
  /** The current list; undefined when there is none of this id. */
  readonly storedList: PublishedList | undefined;
  readonly lastNumber: number;
  readonly now: Date;
};

/**
 * Decides about the next version; called again after a concurrent publication.
 * @returns undefined when there shall be none.
 */
export type Change = (ground: VersionBasis) => TrustListConfiguration | undefined;

/**
 * Checks a document before it is signed.
 * @param signer certificate of the signer, DER in standard base64. @throws Failure
 */
export type DocumentCheck = (document: JsonObject, signer: string, tenant: Tenant) => void;

/** Limit of retries after concurrent publications by other processes. */
const MAX_ATTEMPTS = 20;

/** Publishes versions of trust lists. Each has a unique number within its list. */
export class TrustListPublisher extends needs({ store: Store, kms: Kms, random: Random, clock: Clock, settings: ServiceSettings }) {
  /** Serializes writers of one list in this process, so that they do not sign in vain. */
  readonly #writers = createKeyedQueue(100);

  /**
   * @returns the new version, or undefined when `change` returns none.
   * @throws Failure of `change`; `invalid_input` when there is no key to sign with or an entity's key chain was removed,
   *   `conflict` when the limit of lists is reached.
   */
  async publish(
    tenantId: TenantId,
    id: string,
    by: TenantActor,
    change: Change,
    check?: DocumentCheck,
  ): Promise<PublishedList | undefined> {
    return this.#writers.run(`${tenantId} ${id}`, async () => {
      for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt++) {
        const basis = await this.#readBasis(tenantId, id);
        const configuration = change(basis);
        if (configuration === undefined) return undefined;
        // Signs outside of a transaction; the write checks that the basis is unchanged.
        const list = await this.#sign(basis, withStatuses(configuration, basis.storedList, basis.now), check);
        if (await this.#store(tenantId, basis, list, by)) return list;
      }
      throw new Failure('conflict', 'the trust list is being changed concurrently; try again');
    });
  }

  /** @throws Failure `not_found`. */
  async remove(tenantId: TenantId, id: string, by: TenantActor): Promise<void> {
    const { store, random } = this.ports;
    await store.forTenant(
      tenantId,
      async ({ trustLists }) => {
        const list = await trustLists.get(id);
        const removed = await trustLists.remove({ id: random.token(), list });
        if (!removed) throw new Failure('conflict', 'the trust list was changed concurrently; try again');
      },
      { by, exclusive: true },
    );
  }

  #readBasis(tenantId: TenantId, id: string): Promise<VersionBasis> {
    const { store, clock } = this.ports;
    return store.forTenant(tenantId, async ({ tenant, keyChains, trustLists }) => ({
      tenant: await tenant.get(),
      chains: await keyChains.list(),
      storedList: await trustLists.find(id),
      lastNumber: await trustLists.lastNumber(id),
      now: clock.now(),
    }));
  }

  async #sign(basis: VersionBasis, configuration: TrustListConfiguration, check?: DocumentCheck): Promise<PublishedList> {
    const { kms, settings } = this.ports;
    const { tenant, chains, storedList, lastNumber, now } = basis;
    const { chain, nextUpdate } = signerOf(basis, configuration.keyChainId);
    const sequenceNumber = lastNumber + 1;
    const payload = composeList({
      configuration,
      chains,
      owner: tenant,
      tenantUri: issuerIdentifier(settings, tenant.id),
      sequenceNumber,
      issuedAt: now,
      nextUpdate,
    });
    check?.(payload, signingChain(chain)[0] ?? '', tenant);
    // TS 119 602 section 6.8, JAdES baseline B-B; the time of signing as TS 119 182-1 section 5.1.11 has it
    const header = { iat: Math.floor(now.getTime() / 1000) };
    const jwt = await signJwt(kms, { chain, typ: TRUST_LIST_JWT_TYPE, payload, header });
    if (jwt.length > MAX_LIST_BYTES) throw invalidInput('entities', 'The list exceeds the size limit of its readers. Divide it.');
    const createdAt = storedList?.createdAt ?? now;
    return { ...configuration, signedBy: chain.id, sequenceNumber, jwt, nextUpdate, createdAt, updatedAt: now };
  }

  /** @returns false, with nothing changed, when the basis of the version has changed. */
  #store(tenantId: TenantId, { tenant, storedList, lastNumber }: VersionBasis, list: PublishedList, by: TenantActor): Promise<boolean> {
    const { store, random } = this.ports;
    return store.forTenant(
      tenantId,
      async (repositories) => {
        const { trustLists } = repositories;
        if (!(await keyChainsExist(repositories, list)) || (await trustLists.lastNumber(list.id)) !== lastNumber) return false;
        // The tenant may have adopted a profile meanwhile that forbids this version.
        if ((await repositories.tenant.get()).profile !== tenant.profile) return false;
        if (storedList !== undefined) return trustLists.replace(list, { id: random.token(), list: storedList });
        if ((await trustLists.list()).length >= MAX_LISTS) {
          throw new Failure('conflict', `a tenant has at most ${MAX_LISTS} trust lists; delete one first`);
        }
        await trustLists.add(list);
        return true;
      },
      { by, exclusive: true },
    );
  }
}

/** A key chain in use cannot be removed, but it may have been removed between the read and the write. */
async function keyChainsExist({ keyChains }: TenantRepositories, list: PublishedList): Promise<boolean> {
  const chains = await keyChains.list();
  const signer = chains.find(({ id }) => id === list.signedBy);
  const knownIds = new Set(chains.map(({ id }) => id));
  return signer?.usages.includes('trustList') === true && keyChainIdsOf(list.entities).every((id) => knownIds.has(id));
}

/** @throws Failure `invalid_input` with the problem of the requested key chain, or when there is none. */
function signerOf({ chains, now }: VersionBasis, wantedId: string | undefined): Signer {
  try {
    return selectListSigner(chains, now, wantedId);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const advice = 'Create one by POST /key-chain with {"usageType": "trustList"}.';
    throw invalidInput('keyChainId', `${error.message} ${advice}`);
  }
}
