import { hash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { type KeyChain, pickKeyChain, signingChain } from '../../domain/keys/key-chain.ts';
import { covers } from '../../domain/registrar/coverage.ts';
import { organizationIdentifiers } from '../../domain/registrar/organization-identifier.ts';
import {
  isOfSubject,
  RegistrationCertificateRefusal,
  type StoredRegistrationCertificate,
  timeFault,
} from '../../domain/registrar/registration-certificate.ts';
import {
  canonical,
  type RegistrationCertificateRequest,
} from '../../domain/registrar/registration-certificate-request.ts';
import { Failure, invalidInput } from '../../domain/shared/failure.ts';
import type { Json, JsonObject } from '../../domain/shared/json.ts';
import type { PresentationConfigurationBody } from '../../domain/verification/configuration.ts';
import type { DcqlQuery } from '../../domain/verification/dcql/query.ts';
import { StaleView } from '../caller.ts';
import type { Registrar, RegistrarAccount } from '../ports/registrar.ts';
import type { Store } from '../ports/store.ts';
import { obtainFromRegistrar } from '../registrar/obtain-from-registrar.ts';
import { accountOf } from '../registrar/registrar-account.ts';
import { registrarFailure } from '../registrar/registrar-failures.ts';
import type {
  CheckedCertificate,
  RegistrationCertificateChecker,
} from '../registrar/registration-certificate-checker.ts';
import type { TenantView } from './tenant-views.ts';

const PATH = 'registrationCert';
/** Certificates that one tenant keeps; the one that was obtained first goes first. */
const MAX_PER_TENANT = 200;
const MAX_IN_MEMORY = 5_000;
/** A certificate is replaced so long before it ends, or at half of its time if that is shorter. */
const RENEWAL_MS = 60_000;
/** Certificates may be revoked, which is looked up again after so long. */
const CHECK_MS = 60 * 60 * 1000;
/** Nobody asks a registrar again so soon after it did not answer, */
const OUTAGE_MS = 15_000;
/** or after it gave what is of no use: it would issue more of the same with every request. */
const REFUSAL_MS = 5 * 60 * 1000;

type Ports = {
  readonly store: Store;
  readonly registrar: Registrar;
  readonly registrationCertificateChecker: RegistrationCertificateChecker;
};

type Wanted = {
  /** Hash of all that the certificate depends on. */
  readonly id: string;
  readonly request: RegistrationCertificateRequest;
  readonly query: DcqlQuery;
  readonly account: RegistrarAccount | undefined;
};

type Usable = {
  readonly certificate: CheckedCertificate;
  readonly checkedAt: number;
  /** When it is time for another one; never for one that was not issued for this request. */
  readonly renewAt: number;
};

type Configuration = Pick<PresentationConfigurationBody, 'id' | 'dcql_query' | 'registrationCert'>;

/** Says to wallets what the tenant may ask for: registration certificates of presentation configurations. */
export class RegistrationCertificates {
  readonly #ports: Ports;
  readonly #usable = new LRUCache<string, Usable>({ max: MAX_IN_MEMORY });
  readonly #failures = new LRUCache<string, { readonly failure: Failure; readonly until: number }>({
    max: MAX_IN_MEMORY,
  });
  readonly #underWay = new Map<string, Promise<Usable>>();

  constructor(ports: Ports) {
    this.#ports = ports;
  }

  /**
   * The entry for `verifier_info` (ETSI TS 119 472-2 section 6.3.2.2). Costs nothing once the certificate is there.
   * @param configuration of `view`.
   * @param chain that signs the request; undefined for one that is not signed.
   * @returns undefined when the configuration wants none.
   * @throws Failure when there is no certificate for this very request: it is never made without.
   */
  async entryFor(
    view: TenantView,
    configuration: Configuration,
    chain: KeyChain | undefined,
    now: Date,
  ): Promise<JsonObject | undefined> {
    const { registrationCert: request } = configuration;
    if (request === undefined || request === null) return undefined;
    const wanted = await view.derive(`registration-certificate/${configuration.id}`, () =>
      wantedOf(view, configuration, request),
    );
    const { certificate } = await this.#get(view, wanted, now);
    if (chain !== undefined) assertOfSubject(certificate, chain);
    return { format: 'registration_cert', data: certificate.jwt };
  }

  /**
   * Whether a configuration that is about to be saved can be used. Whatever failed before is tried again.
   * @throws Failure `invalid_input` at `registrationCert`, `unavailable` when the registrar does not answer.
   */
  async check(view: TenantView, configuration: PresentationConfigurationBody, now: Date): Promise<void> {
    const { registrationCert: request, accessKeyChainId } = configuration;
    if (request === undefined || request === null) return;
    const wanted = await wantedOf(view, configuration, request);
    const usable = await this.#resolveOnce(view, wanted, now, true);
    const chain = accessChain(await view.keyChains(), now, accessKeyChainId ?? undefined);
    if (chain !== undefined) assertOfSubject(usable.certificate, chain);
  }

  async #get(view: TenantView, wanted: Wanted, now: Date): Promise<Usable> {
    const name = nameOf(view, wanted);
    const known = this.#usable.get(name);
    if (known !== undefined && isUsable(known, now)) return known;
    const failed = this.#failures.get(name);
    if (failed !== undefined && now.getTime() < failed.until) throw failed.failure;
    return this.#resolveOnce(view, wanted, now, false);
  }

  #resolveOnce(view: TenantView, wanted: Wanted, now: Date, isSaved: boolean): Promise<Usable> {
    const name = nameOf(view, wanted);
    const underWay = this.#underWay.get(name);
    if (underWay !== undefined) return underWay;
    const resolving = this.#resolve(view, wanted, now, isSaved)
      .then((usable) => {
        this.#usable.set(name, usable);
        this.#failures.delete(name);
        return usable;
      })
      .catch((error: unknown) => {
        this.#usable.delete(name);
        if (error instanceof Failure) {
          const restMs = error.code === 'unavailable' ? OUTAGE_MS : REFUSAL_MS;
          this.#failures.set(name, { failure: error, until: now.getTime() + restMs });
        }
        throw error;
      })
      .finally(() => this.#underWay.delete(name));
    this.#underWay.set(name, resolving);
    return resolving;
  }

  async #resolve(view: TenantView, wanted: Wanted, now: Date, isSaved: boolean): Promise<Usable> {
    const { jwt, id } = wanted.request;
    if (jwt !== undefined) return this.#accept(view, wanted, jwt, now, Number.POSITIVE_INFINITY);
    const kept = isSaved && id !== undefined ? undefined : await this.#kept(view, wanted, now);
    if (kept !== undefined) return kept;
    if (!isSaved) await this.#assertCurrent(view);
    return this.#obtain(view, wanted, now);
  }

  /** What was obtained before, perhaps by another process, while it is good. */
  async #kept(view: TenantView, wanted: Wanted, now: Date): Promise<Usable | undefined> {
    const stored = await this.#ports.store.forTenant(view.tenantId, (own) =>
      own.registrationCertificates.find(wanted.id),
    );
    if (stored === undefined) return undefined;
    try {
      const check = this.#ports.registrationCertificateChecker;
      const certificate = await check.check(view, stored.jwt, now);
      const renewAt = renewalOf(certificate, wanted, stored.updatedAt);
      return renewAt > now.getTime() ? { certificate, checkedAt: now.getTime(), renewAt } : undefined;
    } catch (error) {
      if (!(error instanceof RegistrationCertificateRefusal)) throw error;
      if (error.isTemporary) throw registrarFailure(error, PATH);
      return undefined;
    }
  }

  /** Nothing may have happened before a caller turns out to be out of date. */
  async #assertCurrent(view: TenantView): Promise<void> {
    const head = await this.#ports.store.beats(view.tenantId).head();
    if (head?.revision !== view.head.revision || head.status !== 'active') throw new StaleView();
  }

  async #obtain(view: TenantView, wanted: Wanted, now: Date): Promise<Usable> {
    const { account, request, query } = wanted;
    if (account === undefined) {
      throw invalidInput(PATH, 'No registrar is configured; POST /registrar/config comes first.');
    }
    const issued = await obtainFromRegistrar(this.#ports.registrar, { account, request, query, path: PATH });
    const usable = await this.#accept(view, wanted, issued.jwt, now, undefined);
    await this.#keep(view, {
      id: wanted.id,
      certificateId: issued.id,
      jwt: issued.jwt,
      createdAt: now,
      updatedAt: now,
    });
    return usable;
  }

  async #accept(
    view: TenantView,
    wanted: Wanted,
    jwt: string,
    now: Date,
    renewal: number | undefined,
  ): Promise<Usable> {
    try {
      const certificate = await this.#ports.registrationCertificateChecker.check(view, jwt, now);
      const coverage = covers(certificate, wanted.query);
      if (!coverage.covered) {
        throw new RegistrationCertificateRefusal(`it does not cover the query: ${coverage.gap}`);
      }
      const renewAt = renewal ?? renewalOf(certificate, wanted, now);
      return { certificate, checkedAt: now.getTime(), renewAt };
    } catch (error) {
      throw registrarFailure(error, PATH);
    }
  }

  async #keep(view: TenantView, certificate: StoredRegistrationCertificate): Promise<void> {
    await this.#ports.store.forTenant(
      view.tenantId,
      async ({ registrationCertificates: documents }) => {
        await documents.put(certificate);
        const oldestFirst = (await documents.list()).sort(
          (one, other) => one.updatedAt.getTime() - other.updatedAt.getTime(),
        );
        for (const { id } of oldestFirst.slice(0, -MAX_PER_TENANT)) await documents.remove(id);
      },
      { alone: true },
    );
  }
}

async function wantedOf(
  view: TenantView,
  { dcql_query: query }: Pick<Configuration, 'dcql_query'>,
  request: RegistrationCertificateRequest,
): Promise<Wanted> {
  const account = await accountOf(view);
  const registrar = account && {
    ...account.configuration,
    // Neither says whose certificates these are.
    password: null,
    clientSecret: null,
    createdAt: null,
    updatedAt: null,
  };
  const id = hash('sha256', canonical([query, request, registrar ?? null] as unknown as Json), 'base64url');
  return { id, request, query, account };
}

function nameOf({ tenantId }: TenantView, { id }: Wanted): string {
  return `${tenantId} ${id}`;
}

/** Milliseconds since the epoch. Only what was issued for this very request can be issued again. */
function renewalOf({ expiresAt }: CheckedCertificate, { request }: Wanted, obtainedAt: Date): number {
  if (expiresAt === undefined || request.body === undefined) return Number.POSITIVE_INFINITY;
  const lifetime = expiresAt.getTime() - obtainedAt.getTime();
  return expiresAt.getTime() - Math.min(RENEWAL_MS, lifetime / 2);
}

function isUsable({ certificate, checkedAt, renewAt }: Usable, now: Date): boolean {
  const age = now.getTime() - checkedAt;
  return age >= 0 && age < CHECK_MS && now.getTime() < renewAt && timeFault(certificate, now) === undefined;
}

/** The chain that requests would be signed with; undefined as long as there is none. */
function accessChain(chains: readonly KeyChain[], now: Date, wantedId: string | undefined) {
  try {
    return pickKeyChain(chains, 'access', now, wantedId);
  } catch (error) {
    if (error instanceof Failure) return undefined;
    throw error;
  }
}

/** Organizations by key chain; the chains of a tenant's view live as long as the view does. */
const organizations = new WeakMap<KeyChain, readonly string[]>();

/** @throws Failure `invalid_input` when wallets would see two organizations. */
function assertOfSubject(certificate: CheckedCertificate, chain: KeyChain): void {
  let identifiers = organizations.get(chain);
  if (identifiers === undefined) {
    identifiers = organizationIdentifiers(signingChain(chain)[0] ?? '');
    organizations.set(chain, identifiers);
  }
  if (isOfSubject(certificate, identifiers)) return;
  throw invalidInput(
    PATH,
    `The registration certificate is for ${certificate.subject}, the access certificate of the key chain ` +
      `"${chain.id}" for ${identifiers.join(', ')}.`,
  );
}
