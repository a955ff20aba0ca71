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
import { chooseSigner, MAX_LISTS, type PublishedList, type Signer } from '../../domain/trust-lists/published-list.ts';
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

/** What a release is made of, as of one moment. */
export type Ground = {
  readonly tenant: Tenant;
  readonly chains: readonly KeyChain[];
  /** The list as it is; undefined when there is none of this id. */
  readonly known: PublishedList | undefined;
  readonly lastNumber: number;
  readonly now: Date;
};

/**
 * Decides what the next release shall be; asked again when somebody else was faster.
 * @returns undefined when there shall be none.
 */
export type Change = (ground: Ground) => TrustListConfiguration | undefined;

/**
 * Checks a document before it is signed.
 * @param signer certificate of the signer, DER in standard base64. @throws Failure
 */
export type Judgement = (document: JsonObject, signer: string, tenant: Tenant) => void;

/** Releases of other processes that may come in between. */
const ATTEMPTS = 20;

/** Makes releases of trust lists. Each has a number that no other release of its list ever has. */
export class TrustListPublisher extends needs({
  store: Store,
  kms: Kms,
  random: Random,
  clock: Clock,
  settings: ServiceSettings,
}) {
  /** Writers of one list run one after the other in this process, so that they do not sign in vain. */
  readonly #writers = createKeyedQueue(100);

  /**
   * @returns the new release, or undefined when `change` wants none.
   * @throws Failure of `change`; `invalid_input` when there is no key to sign with or an entity's key chain is gone,
   *   `conflict` when the tenant has no room for another list.
   */
  async publish(tenantId: TenantId, id: string, by: TenantActor, change: Change, judge?: Judgement): Promise<PublishedList | undefined> {
    return this.#writers.run(`${tenantId} ${id}`, async () => {
      for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
        const ground = await this.#ground(tenantId, id);
        const wanted = change(ground);
        if (wanted === undefined) return undefined;
        // Nobody waits for the signature with a transaction open; whether it still fits is asked afterwards.
        const list = await this.#sign(ground, withStatuses(wanted, ground.known, ground.now), judge);
        if (await this.#keep(tenantId, ground, list, by)) return list;
      }
      throw new Failure('conflict', 'the trust list is being changed by others at this moment; try again');
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
        if (!removed) throw new Failure('conflict', 'the trust list was changed meanwhile; try again');
      },
      { by, alone: true },
    );
  }

  #ground(tenantId: TenantId, id: string): Promise<Ground> {
    const { store, clock } = this.ports;
    return store.forTenant(tenantId, async ({ tenant, keyChains, trustLists }) => ({
      tenant: await tenant.get(),
      chains: await keyChains.list(),
      known: await trustLists.find(id),
      lastNumber: await trustLists.lastNumber(id),
      now: clock.now(),
    }));
  }

  async #sign(ground: Ground, wanted: TrustListConfiguration, judge?: Judgement): Promise<PublishedList> {
    const { kms, settings } = this.ports;
    const { tenant, chains, known, lastNumber, now } = ground;
    const { chain, nextUpdate } = signerOf(ground, wanted.keyChainId);
    const sequenceNumber = lastNumber + 1;
    const payload = composeList({
      configuration: wanted,
      chains,
      owner: tenant,
      tenantUri: issuerIdentifier(settings, tenant.id),
      sequenceNumber,
      issuedAt: now,
      nextUpdate,
    });
    judge?.(payload, signingChain(chain)[0] ?? '', tenant);
    // TS 119 602 section 6.8, JAdES baseline B-B; the time of signing as TS 119 182-1 section 5.1.11 has it
    const header = { iat: Math.floor(now.getTime() / 1000) };
    const jwt = await signJwt(kms, { chain, typ: TRUST_LIST_JWT_TYPE, payload, header });
    if (jwt.length > MAX_LIST_BYTES) throw invalidInput('entities', 'The list would be larger than its readers take. Divide it.');
    const createdAt = known?.createdAt ?? now;
    return { ...wanted, signedBy: chain.id, sequenceNumber, jwt, nextUpdate, createdAt, updatedAt: now };
  }

  /** @returns false, with nothing changed, when what the release was made of has changed. */
  #keep(tenantId: TenantId, { tenant, known, lastNumber }: Ground, list: PublishedList, by: TenantActor): Promise<boolean> {
    const { store, random } = this.ports;
    return store.forTenant(
      tenantId,
      async (own) => {
        const { trustLists } = own;
        if (!(await areThere(own, list)) || (await trustLists.lastNumber(list.id)) !== lastNumber) return false;
        // A profile that the tenant took on meanwhile may forbid this release.
        if ((await own.tenant.get()).profile !== tenant.profile) return false;
        if (known !== undefined) return trustLists.replace(list, { id: random.token(), list: known });
        if ((await trustLists.list()).length >= MAX_LISTS) {
          throw new Failure('conflict', `a tenant has ${MAX_LISTS} trust lists at most; delete one first`);
        }
        await trustLists.add(list);
        return true;
      },
      { by, alone: true },
    );
  }
}

/** A key chain that a list names does not go, but it may have gone between the look and the write. */
async function areThere({ keyChains }: TenantRepositories, list: PublishedList): Promise<boolean> {
  const chains = await keyChains.list();
  const signer = chains.find(({ id }) => id === list.signedBy);
  const known = new Set(chains.map(({ id }) => id));
  return signer?.usages.includes('trustList') === true && keyChainIdsOf(list.entities).every((id) => known.has(id));
}

/** @throws Failure `invalid_input` that says what is wrong with the wanted key chain, or that there is none. */
function signerOf({ chains, now }: Ground, wantedId: string | undefined): Signer {
  try {
    return chooseSigner(chains, now, wantedId);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    const advice = 'POST /key-chain makes one for {"usageType": "trustList"}.';
    throw invalidInput('keyChainId', `${error.message} ${advice}`);
  }
}
